package vswitch

import (
	"math/bits"

	"gswitch/frame"
	"gswitch/wire"
)

// finish completes frames that the scheduler just released: they leave their accounts,
// features see them (depth and departure are known here), marks are written, features may
// write into what is sent, and the port counts it. It returns how many frames are sent.
func (n *Node) finish(now frame.Time, port uint16, v []frame.Ref) int {
	ps := &n.ports[port]
	n.leave(now, ps, v)
	if ps.arc.departing != 0 {
		v = n.showDeparting(ps, port, v)
	}
	bytes := uint64(0)
	for _, r := range v {
		m := n.arena.Meta(r)
		if m.Flags&frame.MarkCE != 0 {
			wire.MarkCE(n.arena, r)
		}
		bytes += uint64(m.Wire)
	}
	if ps.arc.sends != 0 {
		n.showSent(ps, port, v)
		return len(v)
	}
	ps.tx.Frames += uint64(len(v))
	ps.tx.Bytes += bytes
	return len(v)
}

// showDeparting shows features the frames that the scheduler released, and returns those
// that go on.
func (n *Node) showDeparting(ps *portState, port uint16, v []frame.Ref) []frame.Ref {
	for b := ps.arc.departs; b != 0; b &= b - 1 {
		n.stages.features[bits.TrailingZeros32(b)].Departs(port, v)
	}
	if ps.arc.sheds != 0 {
		v = n.sift(v)
	}
	return v
}

// showSent shows features what a port sends, which may change its length.
func (n *Node) showSent(ps *portState, port uint16, v []frame.Ref) {
	for b := ps.arc.sends; b != 0; b &= b - 1 {
		n.stages.features[bits.TrailingZeros32(b)].Sends(port, v)
	}
	for _, r := range v {
		ps.tx.add(n.arena.Meta(r).Wire)
	}
}

// sift drops frames that a feature has discarded at the last moment, and returns the
// others.
func (n *Node) sift(v []frame.Ref) []frame.Ref {
	keep := v[:0]
	for _, r := range v {
		if n.arena.Meta(r).Reason != frame.QueueShed {
			keep = append(keep, r)
			continue
		}
		n.drop(r, frame.QueueShed)
	}
	n.freeDropped()
	return keep
}
