package vswitch

import (
	"math/bits"

	"gswitch/frame"
	"gswitch/wire"
)

// finish completes frames that the scheduler just released: features see them (depth and
// departure are known here), their bytes leave the shared buffer, marks are written,
// features may write into what is sent, and the port counts it. It returns how many
// frames are sent.
func (n *Node) finish(now frame.Time, port uint16, v []frame.Ref) int {
	ps := &n.ports[port]
	if ps.arc.leaving|n.joinedFor != 0 {
		v = n.showLeaving(now, ps, port, v)
	}
	if len(v) > 1 && n.inputs == nil { // a single frame has no others to be summed with
		n.held -= n.buffer.ReleaseAll(n.arena, v)
	}
	bytes := uint64(0)
	for _, r := range v {
		m := n.arena.Meta(r)
		bytes += uint64(m.Wire)
		if m.Flags&(frame.MarkCE|frame.Flooded) != 0 {
			n.finishMarked(ps, r, m)
		}
		if m.Cost != 0 {
			n.release(now, m)
		}
	}
	if ps.arc.sends != 0 {
		n.showSent(ps, port, v)
		return len(v)
	}
	ps.tx.Frames += uint64(len(v))
	ps.tx.Bytes += bytes
	return len(v)
}

// showLeaving shows features the frames that the scheduler released, and returns those
// that go on.
func (n *Node) showLeaving(now frame.Time, ps *portState, port uint16, v []frame.Ref) []frame.Ref {
	n.left(ps, v)
	n.released(ps, v)
	for b := ps.arc.departs; b != 0; b &= b - 1 {
		n.features[bits.TrailingZeros32(b)].Departs(port, v)
	}
	if ps.arc.sheds != 0 {
		v = n.sift(now, v)
	}
	return v
}

// finishMarked writes the mark of congestion, and counts a copy of a flood as gone.
func (n *Node) finishMarked(ps *portState, r frame.Ref, m *frame.Meta) {
	if m.Flags&frame.MarkCE != 0 {
		wire.MarkCE(n.arena, r)
	}
	ps.floods.leave(m)
}

// showSent shows features what a port sends, which may change its length.
func (n *Node) showSent(ps *portState, port uint16, v []frame.Ref) {
	for b := ps.arc.sends; b != 0; b &= b - 1 {
		n.features[bits.TrailingZeros32(b)].Sends(port, v)
	}
	for _, r := range v {
		ps.tx.add(n.arena.Meta(r).Wire)
	}
}

// sift drops frames that a feature has discarded at the last moment, and returns the
// others.
func (n *Node) sift(now frame.Time, v []frame.Ref) []frame.Ref {
	keep := v[:0]
	for _, r := range v {
		m := n.arena.Meta(r)
		if m.Reason != frame.QueueShed {
			keep = append(keep, r)
			continue
		}
		n.uncharge(now, m)
		n.drop(r, frame.QueueShed)
	}
	n.freeDropped()
	return keep
}
