// Package boundary gives switches a synchronised clock (package clocksync): a
// boundary clock in PTP's words, which follows its parent by one port and sends to its
// children by others. Importing it registers the feature.
package boundary

import (
	"fmt"

	"gswitch/clocksync"
	"gswitch/feature"
	"gswitch/frame"
	"gswitch/scheduler"
	"gswitch/vswitch"
	"gswitch/wire"
)

// Name is the key of clocksync.Options in vswitch.Config.Options.
const Name = "clock"

func init() {
	vswitch.Register(vswitch.Feature{Name: Name, Check: check, New: newClock, Counters: clocksync.Counters(""), Decode: clocksync.DecodeCall,
		Whole: func() vswitch.WholeSection { return &Section{} }, Daemons: true, Stamps: true,
		Doc: "A synchronised clock with a bound on its error (Sundial), in PTP (IEEE 1588) between neighbours."})
}

func check(cfg *vswitch.Config) error {
	o, ok := cfg.Options[Name].(clocksync.Options)
	if !ok {
		return fmt.Errorf("%s: options of a port; a switch has one clock", Name)
	}
	return o.Validate()
}

// Clock is the clock of a switch, on the worker that owns its ports.
type Clock struct {
	*clocksync.Instance
	node      *vswitch.Node
	requested clocksync.Options // by the configuration
	planned
	ports []port
}

type port struct {
	rate     scheduler.RateClock
	overhead uint32
	under    int // messages that have not departed
}

// A clock has as many ports as a switch: this does not compile otherwise.
var _ = [1]struct{}{}[vswitch.MaxPorts-clocksync.MaxPorts]

// Of returns the clock of a switch, nil if it has none. Like every reader of a
// node's state it is called between two steps of it.
func Of(n *vswitch.Node) *Clock {
	c, _ := n.Feature(Name).(*Clock)
	return c
}

func newClock(n *vswitch.Node) vswitch.Instance {
	c := &Clock{node: n}
	c.Instance = clocksync.NewInstance(n.Config().MAC, c.send)
	return vswitch.Instance{State: c, Port: c.adopt, Dismiss: c.dismiss, LinkLocal: c.linkLocal, Departs: c.departs, Advance: c.advance, Read: c.read}
}

// read reads the clock, on the worker that has it: those without ports have one that
// receives no messages.
func (c *Clock) read(emit func(counter int, port uint16, value float64, labels ...string)) {
	for i := range c.node.Config().Ports {
		p := &c.node.Config().Ports[i]
		if p.Name == "" {
			continue
		}
		if p.Worker == c.node.Index() {
			c.Instance.Read(c.node.Now(), func(counter int, value float64, labels ...string) { emit(counter, 0, value, labels...) })
		}
		return
	}
}

// adopt brings a port in line with the configuration, and with the first of them
// the clock.
func (c *Clock) adopt(now frame.Time, at uint16, pc *vswitch.PortConfig) vswitch.Stages {
	o, on := c.node.Config().Options[Name].(clocksync.Options)
	if !on || at >= clocksync.MaxPorts || pc.Name == "" {
		if !on {
			c.node.Lead(0, false)
		}
		c.dismiss(at)
		return 0
	}
	if o.Origin == 0 {
		o.Origin = frame.Time(c.node.Config().Epoch)
	}
	if o != c.requested {
		c.requested, c.taken = o, feature.ClockPlan{}
		_ = c.Configure(now, o) // Check tried it
	}
	for len(c.ports) <= int(at) {
		c.ports = append(c.ports, port{})
	}
	p := &c.ports[at]
	p.rate, p.overhead = scheduler.RateClock{}, pc.Scheduler.Overhead
	p.rate.SetRate(pc.Scheduler.Rate)
	p.rate.WholeNs(pc.Scheduler.WholeNs)
	c.Use(now, int(at), true)
	c.set()
	return vswitch.AtLinkLocal | vswitch.AtDeparts
}

func (c *Clock) dismiss(at uint16) {
	if int(at) < len(c.ports) {
		c.ports[at] = port{}
		c.Use(0, int(at), false)
	}
}

// linkLocal takes what is of PTP. A frame arrives when its last bit has come; its
// stamp is the first's. One that came to another worker has waited since.
func (c *Clock) linkLocal(now frame.Time, at uint16, r frame.Ref) bool {
	m := c.node.Arena().Meta(r)
	if m.EtherType != wire.EtherTypePTP {
		return false
	}
	p, came := &c.ports[at], m.Arrival
	if m.Stamp != 0 {
		came = m.Stamp
	}
	c.Receive(now, came, p.rate.Span(m.Wire+p.overhead), m.Stamp != 0, int(at), c.node.Arena().Bytes(r))
	c.set()
	return true
}

// send makes a frame of a message.
func (c *Clock) send(at int, f *clocksync.Packet) bool {
	if at >= len(c.ports) {
		return false
	}
	r := c.node.Alloc()
	if r == frame.Nil {
		return false
	}
	m := c.node.Arena().Meta(r)
	m.Len = clocksync.MaxPacket
	k := f.Encode(c.node.Arena().Bytes(r))
	m.Len, m.Wire, m.EtherType = uint16(k), uint32(k), wire.EtherTypePTP
	if !c.node.SendLinkLocal(uint16(at), r) {
		return false
	}
	c.ports[at].under++
	return true
}

// departs stamps the messages of the clock among the frames that leave. Frames
// of which there are none in the port's queue are not looked at.
func (c *Clock) departs(at uint16, v []frame.Ref) {
	p := &c.ports[at]
	for i := 0; p.under > 0 && i < len(v); i++ {
		m := c.node.Arena().Meta(v[i])
		if m.InPort != m.OutPort {
			p.under = 0 // what is ahead of all data has left, or was dropped with the link
			return
		}
		if m.EtherType == wire.EtherTypePTP && m.Flags&frame.Own != 0 {
			p.under--
			c.Departs(m.Depart, int(at), c.node.Arena().Bytes(v[i]))
		}
	}
}

// set follows what a message or the configuration has changed.
func (c *Clock) set() {
	c.node.Lead(c.Lead())
	c.node.Arm(c.Due())
}

func (c *Clock) advance(now frame.Time) frame.Time {
	c.Advance(now)
	c.node.Lead(c.Lead())
	return c.Due()
}

// Set gives the clock other options than the configuration, as a controller does
// while it moves the network to another plan.
func (c *Clock) Set(now frame.Time, o clocksync.Options) error {
	err := c.Configure(now, o)
	c.set()
	return err
}
