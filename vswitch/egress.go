package vswitch

import (
	"github.com/gswitch/gswitch/frame"
	"github.com/gswitch/gswitch/wire"
)

// finish completes frames that the scheduler just released: their bytes leave
// the shared buffer, marks are written, the port counts them. This is where
// telemetry stamps later go, since depth and departure are known here.
func (n *Node) finish(ps *portState, v []frame.Ref) {
	for _, r := range v {
		m := n.arena.Meta(r)
		if m.Cost != 0 { // frames of flow control are not charged
			n.buffer.Release(m)
			n.held--
		}
		if m.Flags&frame.MarkCE != 0 {
			wire.MarkCE(n.arena, r)
		}
		ps.tx.add(m.Wire)
	}
}
