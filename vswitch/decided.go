package vswitch

import (
	"math/bits"

	"gswitch/frame"
	"gswitch/wire"
)

// The egress stages, in the order in which a frame passes them once its egress port is
// decided. Bridge, route and the slow path only put it among the decided frames, in the
// order of their decisions; the stages take these as a vector.

// emit puts a frame whose egress port, Meta.OutPort, is decided among those that the
// egress stages take next.
func (n *Node) emit(r frame.Ref) {
	if n.vec.decidedN == len(n.vec.decided) {
		n.egress()
	}
	n.vec.decided[n.vec.decidedN] = r
	n.vec.decidedN++
}

// egress takes the decided frames to their queues, or drops them: it checks what must hold
// for any frame at its egress port, sets the VLAN tag as the port requires, and shows the
// frames that may leave to the features that must see them first.
func (n *Node) egress() {
	v := n.vec.decided[:n.vec.decidedN]
	n.vec.decidedN = 0
	k := 0
	for _, r := range v {
		m := n.arena.Meta(r)
		if !n.linkUp.has(m.OutPort) {
			n.drop(r, frame.EgressPortDown)
			continue
		}
		pp := &n.prog.ports[m.OutPort]
		if m.InPort == frame.NoPort || m.Wire > pp.maxFrame || pp.vlanMode != VLANTransparent {
			if why := n.permit(r, m, pp); why != frame.Keep {
				n.drop(r, why)
				continue
			}
		}
		v[k] = r
		k++
	}
	if k == 0 {
		return
	}
	if n.stages.forwards != 0 {
		n.showForwarded(v[:k])
	}
	n.enqueue(v[:k])
}

// permit is the part of egress for a frame about which something has to be asked.
func (n *Node) permit(r frame.Ref, m *frame.Meta, pp *portProgram) frame.Reason {
	switch {
	case m.InPort == frame.NoPort && !n.takesOwn(m):
		return frame.OwnShare
	case m.Wire > pp.maxFrame && Untagged(m) > pp.maxFrame:
		return frame.MTUExceeded
	case pp.vlanMode != VLANTransparent && !n.retag(r, m, pp):
		return frame.TxOversize // no headroom left in the chunk
	}
	return frame.Keep
}

// takesOwn charges a frame that the switch itself made to its egress port, and reports
// whether it may leave there.
func (n *Node) takesOwn(m *frame.Meta) bool {
	m.Flags |= frame.Own
	m.InPort = m.OutPort
	if m.About == m.OutPort+1 { // a notice must not add to the congestion that it is about
		return false
	}
	ps := &n.ports[m.OutPort]
	return ps.ownRate == 0 || ps.own.Take(n.now, int(m.Wire))
}

// Untagged returns the length of a frame in bytes without what stands between its Ethernet
// and its network header, VLAN tags and what features put there: that does not count
// against an MTU.
func Untagged(m *frame.Meta) uint32 {
	if m.L3 > wire.EthernetLen {
		return m.Wire - (uint32(m.L3) - wire.EthernetLen)
	}
	return m.Wire
}

// unchanged takes mirror copies, or frames of Send, to the queues of their ports without a
// change of their tags, whatever VLANs the ports have.
func (n *Node) unchanged(v []frame.Ref) {
	keep := v[:0]
	for _, r := range v {
		if !n.linkUp.has(n.arena.Meta(r).OutPort) {
			n.drop(r, frame.EgressPortDown)
			continue
		}
		keep = append(keep, r)
	}
	if len(keep) == 0 {
		return
	}
	for b := n.stages.copies; b != 0; b &= b - 1 {
		n.stages.features[bits.TrailingZeros32(b)].Copies(keep)
	}
	n.enqueue(keep)
}

// retag gives the frame the VLAN tag that its egress port sends, and reports false if its
// chunk has no room for it.
func (n *Node) retag(r frame.Ref, m *frame.Meta, pp *portProgram) bool {
	tagged := m.Flags&frame.HasVLAN != 0
	if pp.vlanMode == VLANAccess || m.VID == pp.pvid {
		if tagged {
			wire.PopVLAN(n.arena, r)
		}
		return true
	}
	if tagged {
		wire.SetTCI(n.arena, r, m.TCI&0xf000|m.VID)
		return true
	}
	return wire.PushVLAN(n.arena, r, wire.EtherTypeVLAN, uint16(n.prog.tagPCP[m.Class&7])<<13|m.VID)
}
