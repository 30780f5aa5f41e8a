// Package point is the switch's side of slack (package lstf): at ports to hosts
// it writes slack into packets that enter and takes it off those that leave, at
// all ports it charges the time that packets wait. Importing it registers the
// feature.
package point

import (
	"errors"
	"fmt"

	"gswitch/frame"
	"gswitch/histogram"
	"gswitch/lstf"
	"gswitch/vswitch"
	"gswitch/wire"
)

// Name is the key of a Config in vswitch.PortConfig.Options.
const Name = "lstf"

// Config gives the packets of a port slack. A port to a host
// (vswitch.PortConfig.Edge) is where they enter the network and leave it.
type Config struct {
	// Queues is a bitmap of the queues whose packets get slack. Those that have it
	// are charged in any.
	Queues uint8
	Policy lstf.Policy
	Edge   lstf.Edge
	// Fixed makes the slack with which packets that come by the port entered the
	// network their rank: a priority that no wait changes (scheduler.RankKept).
	Fixed bool
	// Trusted leaves a host the slack that it wrote itself, within Min and Max.
	Trusted  bool
	Min, Max int64 // ns
	// Late is from how much on packets count as late that leave the network with
	// less than no slack.
	Late frame.Time
	// Recorded is where the waits of packets that leave the network are entered;
	// nil: nowhere.
	Recorded *lstf.Schedule
}

func init() {
	vswitch.Register(vswitch.Feature{Name: Name, Check: check, New: newPoints, Counters: counters,
		Section: func() vswitch.Section { return new(Section) },
		Doc:     "Slack in packets (LSTF): ports to hosts write it into packets that enter and take it off those that leave, all ports charge the time that packets wait. Queues serve the least first with order ranked and rank slack."})
}

func check(cfg *vswitch.Config) error {
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		o, on := p.Options[Name].(Config)
		if !on {
			continue
		}
		if err := o.validate(); err != nil {
			return fmt.Errorf("port %s: %w", p.Name, err)
		}
	}
	return nil
}

func (c *Config) validate() error {
	if err := c.Policy.Validate(); err != nil {
		return err
	}
	if c.Min > c.Max {
		return errors.New("slack: the least that a host may write is above the most")
	}
	return c.Edge.Validate()
}

// points are the ports of a worker.
type points struct {
	node  *vswitch.Node
	arena *frame.Arena
	ports []*point // nil where there is none
}

type point struct {
	Config
	edge    bool
	classes uint8 // a bitmap of those that Queues serve
	writer  lstf.Writer
	judge   lstf.Judge
	judged  bool              // what leaves may be marked or dropped
	used    histogram.Buckets // waits of packets that left the network here
	waited  int64             // their sum, ns
	without uint64            // packets that could not be given slack
	policed uint64            // that came with a slack of a host's, which was changed
	late    [2]uint64         // with less than no slack, and by more than Late
	marked  uint64
	dropped uint64
}

func newPoints(n *vswitch.Node) vswitch.Instance {
	p := &points{node: n, arena: n.Arena()}
	return vswitch.Instance{State: p, Adopt: p.adopt, Listens: p.listens, Port: p.port, Forwards: p.forwards, Departs: p.departs, Read: p.read}
}

// adopt removes the ports that a configuration no longer has.
func (p *points) adopt(frame.Time) {
	p.ports = p.ports[:min(len(p.ports), len(p.node.Config().Ports))]
}

// listens brings a port in line with its options, on every worker: packets come by
// a port to any of them, and each writes slack. It need not see what arrives.
func (p *points) listens(port uint16, c *vswitch.PortConfig) bool {
	for len(p.ports) <= int(port) {
		p.ports = append(p.ports, nil)
	}
	o, on := c.Options[Name].(Config)
	if !on {
		p.ports[port] = nil
		return false
	}
	if p.ports[port] == nil {
		p.ports[port] = &point{}
	}
	x := p.ports[port]
	x.Config, x.edge, x.classes = o, c.Edge, 0
	for class := range uint8(8) {
		x.classes |= o.Queues >> p.node.QueueOf(class) & 1 << class
	}
	x.writer.Configure(o.Policy)
	return false
}

// port has what leaves by it judged on the worker that owns it.
func (p *points) port(_ frame.Time, port uint16, _ *vswitch.PortConfig) vswitch.Stages {
	x := p.at(port)
	if x == nil {
		return 0
	}
	x.judge.Configure(x.Edge)
	x.judged = x.Edge != lstf.Edge{}
	if !x.judged {
		return vswitch.AtDeparts
	}
	return vswitch.AtDeparts | vswitch.AtSheds
}

// forwards gives queues the slack of packets, and writes it where they enter.
func (p *points) forwards(_ frame.Time, v []frame.Ref) {
	port, x := frame.NoPort, (*point)(nil)
	for _, r := range v {
		m := p.arena.Meta(r)
		if m.Flags&(frame.ToLocal|frame.Own) != 0 {
			continue
		}
		if m.InPort != port { // most packets of a vector came by one
			port, x = m.InPort, p.at(m.InPort)
		}
		if x != nil && x.edge {
			m.Rank = x.enter(p, r, m)
			continue
		}
		switch h := p.slack(r, m); {
		case h == nil:
			m.Rank = 0
		case x != nil && x.Fixed:
			m.Rank = h.Initial()
		default:
			m.Rank = h.Left()
		}
	}
}

// slack returns that of a packet, nil if it has none.
func (p *points) slack(r frame.Ref, m *frame.Meta) *wire.Slack {
	if m.L3 < wire.EthernetLen+wire.NSHLen { // most that have none: their bytes need not be looked at
		return nil
	}
	return wire.SlackAt(m, p.arena.Bytes(r))
}

// at returns a port, nil if it has no slack.
func (p *points) at(port uint16) *point {
	if int(port) < len(p.ports) {
		return p.ports[port]
	}
	return nil
}

// enter gives a packet its slack, or polices what a host gave it, and returns what
// it has then, of which all is left.
func (x *point) enter(p *points, r frame.Ref, m *frame.Meta) int64 {
	if m.L3 >= wire.EthernetLen+wire.NSHLen { // most that have none: their bytes need not be looked at
		if given, kept := x.police(p, r, m); kept {
			return given
		}
	}
	if x.classes>>(m.Class&7)&1 == 0 || m.Flags&(frame.HasIPv4|frame.HasIPv6) == 0 {
		return 0
	}
	slack := int64(x.Policy.Of)
	if x.Policy.Kind != lstf.Constant { // whose writer does not look at the packet
		slack = x.writer.Slack(m.Arrival, m, p.arena.Bytes(r))
	}
	if wire.PushSlack(p.arena, r, slack) == nil {
		x.without++
		return 0
	}
	return slack
}

// police takes the slack off that a host gave a packet, or returns it, within its
// limits, where the host is trusted.
func (x *point) police(p *points, r frame.Ref, m *frame.Meta) (given int64, kept bool) {
	h := p.slack(r, m)
	switch {
	case h == nil:
		return 0, false
	case !x.Trusted:
		x.policed++
		wire.PopSlack(p.arena, r)
		return 0, false
	}
	given = min(max(h.Left(), x.Min), x.Max)
	if given != h.Left() || given != h.Initial() {
		x.policed++
		h.Set(given, given)
	}
	return given, true
}

// departs charges packets what they waited here, and takes the slack off those
// that leave the network.
func (p *points) departs(port uint16, v []frame.Ref) {
	x := p.ports[port]
	if x.edge {
		x.exit(p.arena, v)
		return
	}
	for _, r := range v {
		m := p.arena.Meta(r)
		if h := wire.SlackAt(m, p.arena.Bytes(r)); h != nil {
			h.SetLeft(h.Left() - int64(m.Depart-m.Arrival))
		}
	}
}

// exit takes the slack off packets that leave the network, and counts them.
func (x *point) exit(a *frame.Arena, v []frame.Ref) {
	waited, wait, same := int64(0), frame.Time(0), uint64(0) // packets that waited the same are counted together
	for _, r := range v {
		initial, left, ok := wire.PopSlack(a, r)
		if !ok {
			continue
		}
		m := a.Meta(r)
		left -= int64(m.Depart - m.Arrival)
		used := initial - left
		if x.Policy.Kind == lstf.Exit {
			left = initial - int64(m.Depart)
		}
		if frame.Time(used) != wait {
			x.used.ObserveAll(wait, same)
			wait, same = frame.Time(used), 0
		}
		same++
		waited += used
		if left < 0 {
			x.late[0]++
			if frame.Time(-left) > x.Late {
				x.late[1]++
			}
		}
		if x.judged || x.Recorded != nil {
			x.leave(a, r, m, frame.Time(used))
		}
	}
	x.used.ObserveAll(wait, same)
	x.waited += waited
}

// leave records a packet that leaves the network, and marks or drops it.
func (x *point) leave(a *frame.Arena, r frame.Ref, m *frame.Meta, used frame.Time) {
	if x.Recorded != nil {
		x.Recorded.Record(lstf.Key(m, a.Bytes(r)), int64(used), m.Depart)
	}
	if !x.judged {
		return
	}
	switch x.judge.Verdict(m.Depart, used, m.Hash, m.Flags&frame.IsECT != 0) {
	case lstf.Mark:
		m.Flags |= frame.MarkCE
		x.marked++
	case lstf.Drop:
		m.Reason = frame.QueueShed
		x.dropped++
	}
}
