package vswitch

import (
	"math/bits"

	"gswitch/frame"
)

// Wait is an egress queue with frames in it that the neighbour at its port has paused: it
// shows which port waits for which.
type Wait struct {
	Port  uint16
	Class uint8
	Since frame.Time // the pause has lasted without interruption since then
	From  []uint16   // the ingress ports of the frames in it, ascending
	// Frames and bytes of the class that wait in the queue.
	Frames, Bytes uint64
}

// HeldBack returns how long the neighbour at an own port has paused each class that has
// frames waiting there, 0 for the others.
func (n *Node) HeldBack(now frame.Time, port uint16) (by [8]frame.Time) {
	ps := &n.ports[port]
	for m := ps.pfc.Paused(now) & n.waitingClasses(ps); m != 0; m &= m - 1 {
		c := bits.TrailingZeros8(m)
		by[c] = now - ps.pfc.Class(c).PausedSince
	}
	return by
}

// Waits appends the egress queues of this worker that wait for a neighbour. A queue that
// serves several paused classes is listed for each. Like all readers of a node's state it
// must be called between two steps of the node.
func (n *Node) Waits(now frame.Time, v []Wait) []Wait {
	for i := range n.ports {
		ps := &n.ports[i]
		if ps.pfc == nil {
			continue
		}
		for paused := ps.pfc.Paused(now) & n.waitingClasses(ps); paused != 0; paused &= paused - 1 {
			class := bits.TrailingZeros8(paused)
			var from portSet
			w := Wait{Port: uint16(i), Class: uint8(class), Since: ps.pfc.Class(class).PausedSince}
			ps.sched.Each(int(n.prog.class.Queue[class]), func(r frame.Ref) bool {
				if m := n.arena.Meta(r); int(m.Class) == class && m.InPort < MaxPorts {
					from.add(m.InPort)
					w.Frames++
					w.Bytes += uint64(m.Wire)
				}
				return true
			})
			if n.inputs != nil {
				n.inputs.Blocked(uint16(i), uint8(class), from.add)
			}
			for p := from.next(0); p >= 0; p = from.next(p + 1) {
				w.From = append(w.From, uint16(p))
			}
			if len(w.From) > 0 {
				v = append(v, w)
			}
		}
	}
	return v
}
