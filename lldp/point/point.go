// Package point has the ports of a switch advertise it to their neighbours, and
// keeps what the neighbours advertise (package lldp). Importing it registers the feature.
package point

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"

	"gswitch/frame"
	"gswitch/lldp"
	"gswitch/vswitch"
	"gswitch/wire"
)

// Name is the key of Options in vswitch.Config.Options.
const Name = "lldp"

const (
	tick         = frame.Second // of the timers (IEEE 802.1AB clause 9.2.2)
	maxNeighbors = 4            // at a port
	maxFrames    = 16           // that a port takes in a tick
	fastFrames   = 4            // one a tick, to a new neighbour (clause 9.2.5.21, txFastInit)
	maxTTL       = 65535        // seconds
)

// agent is what a worker does at its ports.
type agent struct {
	node  *vswitch.Node
	ports []port
	next  frame.Time // tick
}

type port struct {
	advertisement []byte // frame that it sends; nil: it does not take part
	leave         []byte // frame that it still sends when it no longer takes part
	interval      frame.Time
	due           frame.Time // of the next frame
	fast          int        // frames that are sent a tick apart
	room          int        // for frames in this tick

	neighbors []neighbor
	count     counts
}

func newAgent(n *vswitch.Node) vswitch.Instance {
	a := &agent{node: n}
	return vswitch.Instance{State: a, Port: a.adopt, Dismiss: a.dismiss, LinkLocal: a.linkLocal, Advance: a.advance, Read: a.read}
}

// adopt brings a port in line with the configuration: a change is advertised at once.
func (a *agent) adopt(now frame.Time, at uint16, c *vswitch.PortConfig) vswitch.Stages {
	for len(a.ports) <= int(at) {
		a.ports = append(a.ports, port{})
	}
	p, cfg := &a.ports[at], a.node.Config()
	o, on := cfg.Options[Name].(Options)
	if on = on && c.Twin == nil && (len(o.Ports) == 0 || slices.Contains(o.Ports, c.Name)); !on {
		if p.advertisement != nil {
			*p = port{leave: goodbye(p.advertisement)}
			a.wake(now)
		}
		return 0
	}
	adv := advertisement(cfg, c, &o)
	if !bytes.Equal(adv, p.advertisement) || o.Interval != p.interval {
		p.advertisement, p.interval, p.due = adv, o.Interval, now
		a.wake(now)
	}
	return vswitch.AtLinkLocal
}

func (a *agent) dismiss(at uint16) {
	if int(at) < len(a.ports) {
		a.ports[at] = port{}
	}
}

// wake begins a tick at once.
func (a *agent) wake(now frame.Time) {
	a.next = now
	a.node.Arm(now)
}

// advance runs a tick of all ports.
func (a *agent) advance(now frame.Time) frame.Time {
	if now < a.next {
		return a.next
	}
	a.next = frame.Never
	for at := range a.ports {
		p := &a.ports[at]
		if p.leave != nil {
			a.send(uint16(at), p.leave)
			p.leave = nil
		}
		if p.advertisement != nil {
			a.next = now + tick
			a.tick(now, uint16(at), p)
		}
	}
	return a.next
}

// tick removes neighbours that are gone, and sends what is due.
func (a *agent) tick(now frame.Time, at uint16, p *port) {
	p.room = maxFrames
	if !a.node.LinkUp(at) {
		p.count.forgotten[withLink] += uint64(len(p.neighbors))
		p.neighbors, p.due = nil, now // when there is a link again
		return
	}
	p.age(now)
	if now < p.due {
		return
	}
	p.due = now + p.interval
	if p.fast = max(p.fast-1, 0); p.fast > 0 {
		p.due = now + tick
	}
	if a.send(at, p.advertisement) {
		p.count.sent++
	} else {
		p.count.unsent++
	}
}

// send sends a frame ahead of the port's queues, if there is memory and a link.
func (a *agent) send(at uint16, b []byte) bool {
	r := a.node.Alloc()
	if r == frame.Nil {
		return false
	}
	m := a.node.Arena().Meta(r)
	m.Len, m.Wire, m.EtherType = uint16(len(b)), uint32(len(b)), wire.EtherTypeLLDP
	copy(a.node.Arena().Bytes(r), b)
	return a.node.SendLinkLocal(at, r)
}

// advertisement is the frame by which a port says who it is.
func advertisement(cfg *vswitch.Config, c *vswitch.PortConfig, o *Options) []byte {
	name := o.System
	if name == "" {
		name = cfg.Name
	}
	u := lldp.Unit{Src: cfg.MAC, Chassis: lldp.ID{Kind: lldp.ChassisMAC, Value: cfg.MAC[:]}, Port: lldp.ID{Kind: lldp.PortName, Value: cut(c.Name)},
		TTL: o.ttl(), PortDescription: cut(cfg.Name + "/" + c.Name), Name: cut(name), Description: cut(o.Description),
		HasCapabilities: true, Capabilities: lldp.Bridge | lldp.Router, Enabled: enabled(cfg), Management: address(cfg), Numbering: lldp.NoNumber}
	return encode(&u)
}

// goodbye is the frame that withdraws an advertisement (IEEE 802.1AB clause
// 9.1.2: a shutdown LLDPDU).
func goodbye(adv []byte) []byte {
	var u lldp.Unit
	u.Decode(adv)
	u.TTL = 0
	return encode(&u)
}

func encode(u *lldp.Unit) []byte {
	b := make([]byte, 1024) // more than all values together, as cut leaves them
	return b[:u.Encode(b)]
}

// cut bounds a text of the configuration.
func cut(s string) []byte { return []byte(s[:min(len(s), maxText)]) }

// enabled says what the switch does by its configuration.
func enabled(cfg *vswitch.Config) (c lldp.Capabilities) {
	routed := len(cfg.Loopbacks) > 0
	for i := range cfg.VLANs {
		routed = routed || len(cfg.VLANs[i].Addresses) > 0
	}
	for i := range cfg.Ports {
		switch p := &cfg.Ports[i]; {
		case p.Name == "":
		case len(p.Addresses) > 0:
			routed = true
		default:
			c |= lldp.Bridge
		}
	}
	if routed {
		c |= lldp.Router
	}
	return c
}

// address is where the switch is reached: its first loopback, or else the first
// address of a VLAN or a port, or else its MAC address (IEEE 802.1AB clause 8.5.9).
func address(cfg *vswitch.Config) lldp.ID {
	var first netip.Addr
	found := func(v ...netip.Addr) {
		if !first.IsValid() && len(v) > 0 {
			first = v[0]
		}
	}
	found(cfg.Loopbacks...)
	for i := range cfg.VLANs {
		for _, a := range cfg.VLANs[i].Addresses {
			found(a.Addr())
		}
	}
	for i := range cfg.Ports {
		for _, a := range cfg.Ports[i].Addresses {
			found(a.Addr())
		}
	}
	switch {
	case first.Is4():
		return lldp.ID{Kind: lldp.FamilyIPv4, Value: first.AsSlice()}
	case first.Is6():
		return lldp.ID{Kind: lldp.FamilyIPv6, Value: first.AsSlice()}
	}
	return lldp.ID{Kind: lldp.FamilyMAC, Value: cfg.MAC[:]}
}

func check(cfg *vswitch.Config) error {
	o, ok := cfg.Options[Name].(Options)
	switch {
	case !ok:
		return fmt.Errorf("%s: options of a port; a switch has those of all ports together", Name)
	case o.Interval < tick || o.Hold < 1:
		return fmt.Errorf("%s: an interval of %v that holds for %d: at least 1s and 1 are possible", Name, o.Interval, o.Hold)
	}
	return nil
}
