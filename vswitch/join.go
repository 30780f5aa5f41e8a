package vswitch

import (
	"math/bits"

	"gswitch/frame"
)

// Every frame that waits in an egress queue entered it through join, and every frame that
// leaves it passes left: frames that are sent, in finish (egress.go); those that are
// dropped from a queue, in leave; and those that are taken from the middle of a queue and
// stay charged, in Extract (services.go).

// join puts a charged frame into its egress queue and shows it to whatever watches that
// queue. at is now, or slightly earlier for a frame that has come from an input queue in
// the meantime.
func (n *Node) join(at frame.Time, ps *portState, r frame.Ref, m *frame.Meta) {
	if ps.arc.queued != 0 {
		n.noteQueued(ps, r, m)
	}
	if ps.sched.Quickens(m.Queue) { // otherwise its head determines when it sends
		n.touched.add(m.OutPort)
	}
	if m.Flags&frame.Flooded != 0 {
		ps.floods.frames++
	}
	ps.sched.Enqueue(at, r)
	n.busy.add(m.OutPort)
}

// Queued is a frame that has joined the egress queue Meta.Queue of the port
// Meta.OutPort.
type Queued struct {
	Ref   frame.Ref
	Ahead uint64 // bytes that waited in the queue before it
	Place uint64 // position among all frames that ever joined the queue; the first has 1
}

// noteQueued keeps a frame for the features that look at what joins queues.
func (n *Node) noteQueued(ps *portState, r frame.Ref, m *frame.Meta) {
	if n.joinedN == len(n.joined) {
		n.showQueued()
	}
	bytes, place := ps.sched.Ahead(m.Queue)
	n.joined[n.joinedN] = Queued{r, bytes, place + 1}
	n.joinedN++
	n.joinedFor |= ps.arc.queued
}

// showQueued shows features the frames that have joined queues since it was last
// called.
func (n *Node) showQueued() {
	v, b := n.joined[:n.joinedN], n.joinedFor
	n.joinedN, n.joinedFor = 0, 0
	for ; b != 0; b &= b - 1 {
		n.features[bits.TrailingZeros32(b)].Queued(v)
	}
}

// left shows features the frames of a port that no longer wait in its egress
// queues.
func (n *Node) left(ps *portState, v []frame.Ref) {
	if n.joinedN > 0 { // they may have joined in this vector
		n.showQueued()
	}
	for b := ps.arc.left; b != 0; b &= b - 1 {
		n.features[bits.TrailingZeros32(b)].Left(v)
	}
}

// leave is left for frames that are dropped from their queues: it also gives back what
// they were charged to.
func (n *Node) leave(now frame.Time, ps *portState, v []frame.Ref) {
	n.left(ps, v)
	n.released(ps, v)
	for _, r := range v {
		n.uncharge(now, n.arena.Meta(r))
	}
}

// released shows features the frames that leave the switch by a port.
func (n *Node) released(ps *portState, v []frame.Ref) {
	if ps.arc.released == 0 || len(v) == 0 {
		return
	}
	port := n.arena.Meta(v[0]).OutPort
	for b := ps.arc.released; b != 0; b &= b - 1 {
		n.features[bits.TrailingZeros32(b)].Released(port, v)
	}
}

// uncharge gives back what a frame that leaves was charged to.
func (n *Node) uncharge(now frame.Time, m *frame.Meta) {
	if m.Flags&frame.Flooded != 0 {
		n.ports[m.OutPort].floods.leave(m)
	}
	if m.Cost != 0 { // frames of flow control are not charged
		n.release(now, m)
	}
}
