package vswitch

import (
	"math/bits"

	"gswitch/frame"
)

// linkLocal offers a frame to a link-local group address to the features of the
// port that it came in by, and reports whether it is dealt with. Features keep
// what they know of a port on the worker that owns it.
func (n *Node) linkLocal(now frame.Time, r frame.Ref, m *frame.Meta) bool {
	if owner := int(n.prog.ports[m.InPort].worker); owner != n.index {
		m.OutPort = frame.NoPort
		n.handOver(owner, r)
		return true
	}
	for b := n.ports[m.InPort].arc.linkLocal; b != 0; b &= b - 1 {
		if n.stages.features[bits.TrailingZeros32(b)].LinkLocal(now, m.InPort, r) {
			n.drop(r, frame.LocalConsumed)
			return true
		}
	}
	return false
}

// ToOwner gives a frame that came in by a port, and that a feature took out of what
// arrives, to the features with AtLinkLocal of the worker that owns the port.
func (n *Node) ToOwner(now frame.Time, port uint16, r frame.Ref) {
	m := n.arena.Meta(r)
	m.InPort, m.Arrival = port, now
	n.ports[port].rx.add(m.Wire)
	if !n.linkLocal(now, r, m) {
		n.drop(r, frame.ReservedMulticast)
	}
}

// SendLinkLocal sends a frame of a feature to the neighbour at an own port: ahead
// of all queues, as flow control goes, whatever is paused. Instance.Departs sees
// it with the instant of its departure. It reports whether the port has a link;
// without one the frame is freed. The bytes are those of the first chunk.
func (n *Node) SendLinkLocal(port uint16, r frame.Ref) bool {
	ps := &n.ports[port]
	if ps.sched == nil || !n.linkUp.has(port) {
		n.pool.Free(r)
		return false
	}
	m := n.arena.Meta(r)
	m.Flags |= frame.Own
	m.InPort, m.OutPort, m.Arrival = port, port, n.now
	n.count.Made++
	n.SendControl(port, r)
	return true
}
