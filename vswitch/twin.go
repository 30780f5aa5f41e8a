package vswitch

import (
	"encoding/binary"
	"fmt"

	"gswitch/frame"
	"gswitch/pipeline"
	"gswitch/wire"
)

// Twin makes a port lead to the interface ("twin") that a routed port has in a kernel,
// where routing daemons run. Frames for the switch itself that arrive at the routed port
// leave through the twin's port, except those that the switch answers on its own: ARP,
// neighbour solicitations, and complete echo requests. Frames that arrive at the twin's
// port leave through the routed one, unchanged.
type Twin struct {
	Of uint16 // the routed port
	// Limit is the number of frames per second that are passed to the kernel in each of
	// the groups of twinGroup. 0: no limit.
	Limit uint32
}

// twinGroup is the share of the limit to which a frame counts, so that a flood of one
// kind does not end sessions of the others.
type twinGroup uint8

const (
	twinRouting   twinGroup = iota // OSPF, BGP, BFD, RIP, VRRP, PIM, EIGRP
	twinNeighbors                  // ARP and ICMPv6
	twinRest
	twinGroups
)

// IP protocols and ports of routing (IANA).
const (
	protoEIGRP, protoOSPF, protoPIM, protoVRRP = 88, 89, 103, 112
	portBGP                                    = 179
	portBFD, portBFDEcho, portBFDMultihop      = 3784, 3785, 4784
	portRIP, portRIPng                         = 520, 521
)

// compileTwins joins ports and their twins.
func (p *Program) compileTwins(cfg *Config) error {
	for i := range cfg.Ports {
		c := &cfg.Ports[i]
		if c.Name == "" || c.Twin == nil {
			continue
		}
		of := c.Twin.Of
		switch {
		case int(of) >= len(p.ports) || p.ports[of].iface == noIface:
			return fmt.Errorf("switch %s port %s: is the twin of a port that is not routed", cfg.Name, c.Name)
		case len(c.Addresses) > 0:
			return fmt.Errorf("switch %s port %s: a twin has the addresses of its port, and none of its own", cfg.Name, c.Name)
		case p.ports[of].twin != frame.NoPort:
			return fmt.Errorf("switch %s port %s: port %s has a twin already", cfg.Name, c.Name, p.ports[of].name)
		}
		p.ports[of].twin, p.ports[i].twinOf = uint16(i), of
	}
	return nil
}

// twinOf returns the twin of the port that a frame came by, or frame.NoPort.
func (p *Program) twinOf(port uint16) uint16 {
	if int(port) >= len(p.ports) {
		return frame.NoPort
	}
	return p.ports[port].twin
}

// adoptTwin sets the limits of a twin.
func (n *Node) adoptTwin(now frame.Time, ps *portState, c *PortConfig) {
	limit := uint32(0)
	if c.Twin != nil {
		limit = c.Twin.Limit
	}
	if limit == ps.twinLimit {
		return
	}
	ps.twinLimit, ps.twin = limit, [twinGroups]pipeline.Meter{}
	for g := range ps.twin {
		if limit > 0 {
			// A tenth of a second at once: a burst of updates.
			ps.twin[g], _ = pipeline.NewEventMeter(int64(limit), max(int64(limit)/10, 16))
			ps.twin[g].Take(now, 0)
		}
	}
}

// fromTwin takes what the kernel sends to the port that it means.
func (n *Node) fromTwin(now frame.Time, port uint16, pp *portProgram, ps *portState, v []frame.Ref) {
	for _, r := range v {
		m := n.arena.Meta(r)
		m.InPort, m.Arrival, m.VID = port, now, defaultVLAN
		ps.rx.add(m.Wire)
		switch {
		case m.Reason != frame.Keep:
			ps.parseErrors[m.Reason]++
			n.drop(r, m.Reason)
			continue
		case m.Flags&frame.IsMACControl != 0:
			n.drop(r, frame.ReservedMulticast)
			continue
		case m.Flags&(frame.HasIPv4|frame.HasIPv6) != 0:
			m.Class = n.prog.class.DSCP[m.DSCP&63] & 7
		default:
			m.Class = n.prog.class.DSCP[networkControl] & 7
		}
		ps.rxClass[m.Class].add(m.Wire)
		m.OutPort = pp.twinOf
		n.emit(r)
	}
}

// twinWants reports whether a frame to a group concerns the kernel: IP packets to
// groups that are not routed (RFC 5771 4, RFC 4291 2.7), as of OSPF.
func (n *Node) twinWants(r frame.Ref, m *frame.Meta) bool {
	if n.prog.ports[m.InPort].twin == frame.NoPort {
		return false
	}
	b := n.arena.Bytes(r)[m.L3:]
	switch {
	case m.Flags&frame.HasIPv4 != 0:
		dst := wire.IPv4(b).Dst()
		return binary.BigEndian.Uint32(dst[:])>>8 == 224<<16
	case m.Flags&frame.HasIPv6 != 0:
		dst := wire.IPv6(b).Dst()
		return dst[0] == 0xff && dst[1]&0xf <= 2
	}
	return false
}

// answers reports whether the switch deals with a packet to itself although its
// port has a twin.
func (l *local) answers(r frame.Ref, m *frame.Meta) bool {
	if m.Flags&frame.IsFragment != 0 || m.Next != frame.Nil || m.Flags&frame.HasICMP == 0 {
		return false
	}
	kind := l.n.arena.Bytes(r)[m.L4]
	if m.Flags&frame.HasIPv4 != 0 {
		return kind == wire.ICMPEcho
	}
	return kind == wire.ICMPv6Echo || kind == wire.ICMPv6NeighborSolicitation || kind == wire.ICMPv6NeighborAdvertisement
}

// toTwin takes a frame to the kernel, within the limit.
func (l *local) toTwin(now frame.Time, r frame.Ref, m *frame.Meta, twin uint16) {
	n := l.n
	ps := &n.ports[twin]
	if ps.twinLimit > 0 && !ps.twin[twinGroupOf(n.arena.Bytes(r), m)].Take(now, 1) {
		n.drop(r, frame.KernelLimit)
		return
	}
	m.Flags &^= frame.ToLocal
	for m.Flags&frame.HasVLAN != 0 {
		wire.PopVLAN(n.arena, r)
	}
	m.OutPort = twin
	n.emit(r)
}

// learned ends a frame from which the switch has learned a neighbour. A kernel behind
// the port gets it too: it asked, or will ask.
func (l *local) learned(now frame.Time, r frame.Ref, m *frame.Meta) {
	if twin := l.n.prog.twinOf(m.InPort); twin != frame.NoPort {
		l.toTwin(now, r, m, twin)
		return
	}
	l.n.drop(r, frame.LocalConsumed)
}

func twinGroupOf(b []byte, m *frame.Meta) twinGroup {
	if m.Flags&frame.IsARP != 0 || m.Flags&frame.HasIPv6 != 0 && m.Proto == wire.ProtoICMPv6 {
		return twinNeighbors
	}
	if m.Flags&frame.IsFragment != 0 {
		return twinRest
	}
	switch m.Proto {
	case protoEIGRP, protoOSPF, protoPIM, protoVRRP:
		return twinRouting
	case wire.ProtoTCP:
		if m.Flags&frame.HasTCP != 0 {
			if h := wire.TCP(b[m.L4:]); h.SrcPort() == portBGP || h.DstPort() == portBGP {
				return twinRouting
			}
		}
	case wire.ProtoUDP:
		if m.Flags&frame.HasUDP != 0 {
			switch wire.UDP(b[m.L4:]).DstPort() {
			case portBFD, portBFDEcho, portBFDMultihop, portRIP, portRIPng:
				return twinRouting
			}
		}
	}
	return twinRest
}
