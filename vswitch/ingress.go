package vswitch

import (
	"encoding/binary"

	"github.com/gswitch/gswitch/frame"
)

// The stages on the way in, in the order in which a frame meets them. Each
// takes a vector and returns what is left of it; what it takes out was
// dropped, consumed or handed to the slow path.

// screen takes out MAC control frames, which act on the port at once (a pause
// must not wait for the frames before it), and counts what the parser found
// wrong. A frame whose Ethernet header is sound but whose upper layers
// contradict themselves may still be bridged, as any bridge would do, unless
// the switch is strict; it is never routed.
func (n *Node) screen(ps *portState, v []frame.Ref) []frame.Ref {
	keep := v[:0]
	for _, r := range v {
		m := n.arena.Meta(r)
		if m.Reason == frame.Keep && m.Flags&frame.IsMACControl == 0 {
			keep = append(keep, r)
			continue
		}
		if m.Reason == frame.Keep {
			n.control(r, m)
			continue
		}
		ps.parseErrors[m.Reason]++
		if n.prog.Config.Strict || m.Reason <= frame.ParseTooManyTags || m.Flags&frame.IsMACControl != 0 {
			n.drop(r, m.Reason)
			continue
		}
		keep = append(keep, r) // its Reason stays, and keeps it from being routed
	}
	return keep
}

// Groups of reserved addresses: IEEE 802.1Q 8.6.3, table 8-1. Frames to
// 01-80-C2-00-00-00 .. 0F are never forwarded.
const reservedGroup = 0x0180c2000000

// admitPort checks what must hold for any frame on this port.
func (n *Node) admitPort(pp *portProgram, v []frame.Ref) []frame.Ref {
	keep := v[:0]
	self := n.selfMAC
	for _, r := range v {
		m := n.arena.Meta(r)
		b := n.arena.Bytes(r)
		head := (*[14]byte)(b)
		dst := binary.BigEndian.Uint64(head[0:8]) >> 16
		src := binary.BigEndian.Uint64(head[6:14]) >> 16
		switch {
		case dst&^0xf == reservedGroup:
			n.drop(r, frame.ReservedMulticast)
		case m.Wire > pp.maxFrame && untagged(m) > pp.maxFrame:
			n.drop(r, frame.Oversize)
		case m.Wire < pp.minFrame:
			n.drop(r, frame.Undersize)
		case src&(1<<40) != 0:
			n.drop(r, frame.SourceMulticast)
		case src == 0:
			n.drop(r, frame.SourceZero)
		case src == self:
			n.drop(r, frame.SourceSelf)
		default:
			keep = append(keep, r)
		}
	}
	return keep
}

// classify finds the VLAN and the traffic class of each frame.
func (n *Node) classify(pp *portProgram, ps *portState, v []frame.Ref) []frame.Ref {
	class := &n.prog.class
	keep := v[:0]
	for _, r := range v {
		m := n.arena.Meta(r)
		if !pp.assignVLAN(m) {
			n.drop(r, frame.VLANIngress)
			continue
		}
		c := pp.class
		tagged, ip := m.Flags&frame.HasVLAN != 0, m.Flags&(frame.HasIPv4|frame.HasIPv6) != 0
		switch pp.trust {
		case TrustPCP:
			if tagged {
				c = class.PCP[m.TCI>>13]
			} else if ip {
				c = class.DSCP[m.DSCP&63]
			}
		case TrustDSCP:
			if ip {
				c = class.DSCP[m.DSCP&63]
			} else if tagged {
				c = class.PCP[m.TCI>>13]
			}
		}
		m.Class = c & 7
		ps.rxClass[m.Class].add(m.Wire)
		keep = append(keep, r)
	}
	return keep
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
