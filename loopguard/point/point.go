// Package point has a switch find loops that its ports are on, and shut them (package loopguard). Importing it registers
// the feature.
package point

import (
	"fmt"
	"slices"

	"gswitch/frame"
	"gswitch/loopguard"
	"gswitch/vswitch"
	"gswitch/wire"
)

// Name is the key of Options in vswitch.Config.Options.
const Name = "loops"

const (
	maxLooks = 16 // frames that a port looks at between two of its own
	minShut  = frame.Second
)

// guard is what a worker does at its ports.
type guard struct {
	node  *vswitch.Node
	key   loopguard.Key
	opts  Options
	ports []port
	next  frame.Time // round of probes
}

type port struct {
	on    bool
	room  int // for frames that are looked at in this round
	count counts

	from    string     // port by which the frame left for which this one was shut
	awaited frame.Time // when that was sent for which the other port of the loop is to shut; 0: there is none
}

func newGuard(n *vswitch.Node) vswitch.Instance {
	g := &guard{node: n, key: loopguard.NewKey(n.Config().Secret, n.Config().MAC), next: frame.Never}
	return vswitch.Instance{State: g, Adopt: g.adoptOptions, Port: g.adopt, Dismiss: g.dismiss, Listens: g.listens, Arrives: g.arrives, LinkLocal: g.take,
		Advance: g.advance, Read: g.read}
}

// adoptOptions begins a round where there is something new, at an instant that differs from switch to switch: of two
// that are joined by two links, and look for loops, one finds this before the other, and not each shuts another link.
func (g *guard) adoptOptions(now frame.Time) {
	c := g.node.Config()
	o, on := c.Options[Name].(Options)
	g.opts, g.next = o, frame.Never
	if on {
		g.key = loopguard.NewKey(c.Secret, c.MAC)
		g.next = now + o.Interval/4*frame.Time(g.key.Phase())/256
		g.node.Arm(g.next)
	}
}

// watched reports whether a port is.
func (g *guard) watched(c *vswitch.PortConfig) bool {
	o, on := g.node.Config().Options[Name].(Options)
	return on && c.Twin == nil && c.Name != "" && len(c.Addresses) == 0 && (len(o.Ports) == 0 || slices.Contains(o.Ports, c.Name))
}

func (g *guard) adopt(now frame.Time, at uint16, c *vswitch.PortConfig) vswitch.Stages {
	for len(g.ports) <= int(at) {
		g.ports = append(g.ports, port{})
	}
	p := &g.ports[at]
	if p.on = g.watched(c); !p.on {
		if *p = (port{}); g.node.DisabledBy(at) == Name {
			g.node.Enable(now, at)
		}
		return 0
	}
	p.room = maxLooks
	return vswitch.AtLinkLocal
}

func (g *guard) dismiss(at uint16) {
	if int(at) < len(g.ports) {
		g.ports[at] = port{}
	}
}

func (g *guard) listens(_ uint16, c *vswitch.PortConfig) bool { return g.watched(c) }

// arrives takes out of what came in by a port the frames that say that they are the switch's own, for the worker that
// has the port. Those of other switches go on: the loop may be theirs.
func (g *guard) arrives(now frame.Time, at uint16, v []frame.Ref) []frame.Ref {
	keep := v[:0]
	for _, r := range v {
		if g.node.Arena().Meta(r).EtherType == loopguard.EtherType && g.key.Claims(g.body(r)) {
			g.node.ToOwner(now, at, r)
			continue
		}
		keep = append(keep, r)
	}
	return keep
}

// body is what follows the EtherType of a frame, and its tags. The parser knows where that is.
func (g *guard) body(r frame.Ref) []byte {
	b, at := g.node.Arena().Bytes(r), int(g.node.Arena().Meta(r).L3)
	if len(b) < wire.EthernetLen || wire.Ethernet(b).Dst() != loopguard.Group || at > len(b) {
		return nil
	}
	return b[at:]
}

// take judges a frame that says that it is the switch's own.
func (g *guard) take(now frame.Time, at uint16, r frame.Ref) bool {
	if g.node.Arena().Meta(r).EtherType != loopguard.EtherType {
		return false
	}
	p := &g.ports[at]
	if p.room == 0 {
		p.count.received[overRate]++
		return true
	}
	p.room--
	p.count.received[g.judge(now, at, p, g.body(r))]++
	return true
}

// judge shuts a port that is on a loop. Of two ports that a loop joins it is the later one, so that the other still
// leads where both did; if that one goes on sending, since the way leads in one direction only, the earlier one.
func (g *guard) judge(now frame.Time, at uint16, p *port, body []byte) outcome {
	probe, ok := g.key.Decode(body)
	switch {
	case !ok:
		return forged
	case probe.Sent > now || now-probe.Sent > 2*g.opts.Interval:
		return stale
	case probe.Port > at && (p.awaited == 0 || p.awaited == probe.Sent || now-p.awaited > 2*g.opts.Interval):
		p.awaited = probe.Sent
		return awaited
	}
	p.from, p.awaited = "", 0
	if c := g.node.Config(); int(probe.Port) < len(c.Ports) {
		p.from = c.Ports[probe.Port].Name
	}
	g.node.Disable(now, at, now+g.opts.Shut, Name)
	return shut
}

// advance sends a round of probes.
func (g *guard) advance(now frame.Time) frame.Time {
	if now < g.next {
		return g.next
	}
	g.next = now + g.opts.Interval
	for at := range g.ports {
		if p := &g.ports[at]; p.on {
			p.room = maxLooks
			g.send(now, uint16(at), p)
		}
	}
	return g.next
}

// send sends the probe of a port, ahead of its queues, if it has a link.
func (g *guard) send(now frame.Time, at uint16, p *port) {
	if !g.node.LinkUp(at) {
		return
	}
	r := g.node.Alloc()
	if r == frame.Nil {
		p.count.unsent++
		return
	}
	m := g.node.Arena().Meta(r)
	m.Len, m.Wire, m.EtherType = wire.MinFrame, wire.MinFrame, loopguard.EtherType
	g.key.Encode(g.node.Arena().Bytes(r), g.node.Config().MAC, loopguard.Probe{Port: at, Sent: now})
	if g.node.SendLinkLocal(at, r) {
		p.count.sent++
	}
}

func check(cfg *vswitch.Config) error {
	o, ok := cfg.Options[Name].(Options)
	switch {
	case !ok:
		return fmt.Errorf("%s: options of a port; a switch has those of all ports together", Name)
	case o.Interval < frame.Millisecond || o.Shut < minShut:
		return fmt.Errorf("%s: every %v, and shut for %v: at least 1ms and 1s are possible", Name, o.Interval, o.Shut)
	}
	return nil
}
