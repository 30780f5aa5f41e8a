package vswitch

import (
	"encoding/binary"

	"gswitch/frame"
)

// The ingress stages, in the order in which a frame passes them. Each takes a vector and
// returns what is left of it; the frames that it removes were dropped, consumed or passed
// to the slow path.

// admit checks what must hold for any frame on this port and determines its VLAN and
// traffic class. It is a single pass, since all of it needs the same cache line of Meta
// and the first bytes of the frame.
func (n *Node) admit(now frame.Time, port uint16, pp *portProgram, ps *portState, v []frame.Ref) []frame.Ref {
	keep := v[:0]
	self := n.selfMAC
	bytes := uint64(0)
	for _, r := range v {
		m := n.arena.Meta(r)
		m.InPort, m.Arrival = port, now
		bytes += uint64(m.Wire)
		if (m.Reason != frame.Keep || m.Flags&frame.IsMACControl != 0) && !n.screen(ps, r, m) {
			continue
		}
		head := (*[14]byte)(n.arena.Bytes(r))
		dst := binary.BigEndian.Uint64(head[0:8]) >> 16
		src := binary.BigEndian.Uint64(head[6:14]) >> 16
		why := frame.Keep
		switch {
		case dst&^0xf == reservedGroup:
			if n.linkLocal(now, r, m) {
				continue
			}
			why = frame.ReservedMulticast
		case m.Wire > pp.maxFrame && Untagged(m) > pp.maxFrame:
			why = frame.Oversize
		case m.Wire < pp.minFrame:
			why = frame.Undersize
		case src&(1<<40) != 0:
			why = frame.SourceMulticast
		case src == 0:
			why = frame.SourceZero
		case src == self:
			why = frame.SourceSelf
		case !pp.assignVLAN(m):
			why = frame.VLANIngress
		}
		if why != frame.Keep {
			n.drop(r, why)
			continue
		}
		m.Class = pp.classOf(&n.prog.class, m)
		ps.rxClass[m.Class&7].add(m.Wire)
		keep = append(keep, r)
	}
	ps.rx.Frames += uint64(len(v))
	ps.rx.Bytes += bytes
	return keep
}

// reservedGroup is the first of the addresses 01-80-C2-00-00-00 to 0F. Frames to them
// are never forwarded (IEEE 802.1Q 8.6.3, table 8-1).
const reservedGroup = 0x0180c2000000

// screen takes a MAC control frame, which acts on the port at once (a pause
// must not wait for the frames before it), or one that the parser found wrong,
// and reports whether it goes on. A frame whose Ethernet header is sound but
// whose upper layers contradict themselves may still be bridged, as any bridge
// would do, unless the switch is strict; it is never routed.
func (n *Node) screen(ps *portState, r frame.Ref, m *frame.Meta) bool {
	if m.Reason == frame.Keep {
		n.control(r, m)
		return false
	}
	ps.parseErrors[m.Reason]++
	if n.prog.Config.Strict || m.Reason <= frame.ParseTooManyTags || m.Flags&frame.IsMACControl != 0 {
		n.drop(r, m.Reason)
		return false
	}
	return true // its Reason stays, and keeps it from being routed
}

// classOf returns the traffic class of a frame.
func (pp *portProgram) classOf(maps *ClassMaps, m *frame.Meta) uint8 {
	c := pp.class
	tagged, ip := m.Flags&frame.HasVLAN != 0, m.Flags&(frame.HasIPv4|frame.HasIPv6) != 0
	switch {
	case pp.trust == TrustNone:
	case tagged && (pp.trust == TrustPCP || !ip):
		c = maps.PCP[m.TCI>>13]
	case ip:
		c = maps.DSCP[m.DSCP&63]
	}
	return c & 7
}

// assignVLAN sets Meta.VID and reports whether the port takes the frame.
func (pp *portProgram) assignVLAN(m *frame.Meta) bool {
	if pp.vlanMode == VLANTransparent {
		m.VID = defaultVLAN
		return true
	}
	vid := uint16(0) // untagged or priority-tagged
	if m.Flags&frame.HasVLAN != 0 {
		vid = m.TCI & 0xfff
	}
	if vid == 0 {
		m.VID = pp.pvid
		return pp.pvid != 0
	}
	m.VID = vid
	if pp.vlanMode == VLANAccess {
		return vid == pp.pvid
	}
	return vid < 4095 && pp.allowed[vid/64]&(1<<(vid%64)) != 0
}
