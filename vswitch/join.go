package vswitch

import (
	"math/bits"

	"gswitch/buffer"
	"gswitch/frame"
)

// Every frame that waits in an egress queue came into it by join, alone or with the others
// of its train, and every one that leaves it passes left: what is sent, dropped or
// flushed in leave, which also gives back what it was charged to, and what is taken from
// the middle of a queue and stays charged in Extract (services.go).

// join puts a charged frame, or a charged train, into its egress queue and shows it to
// whatever watches that queue. Nothing watches the queue of a train, and none of its frames
// is a copy of a flood (queueTrain in enqueue.go). m is of the first frame. at is now, or slightly
// earlier for a frame that has come from an input queue in the meantime.
func (n *Node) join(at frame.Time, ps *portState, m *frame.Meta, v []frame.Ref) {
	n.markBusy(ps, m)
	if len(v) > 1 {
		ps.sched.EnqueueAll(at, v)
		return
	}
	if ps.arc.queued != 0 {
		n.noteQueued(ps, v[0], m)
	}
	if m.Flags&frame.Flooded != 0 {
		ps.floods.frames++
	}
	ps.sched.Enqueue(at, v[0])
}

// markBusy notes that a frame is about to join a queue: its port has something to send, and
// maybe earlier than it said.
func (n *Node) markBusy(ps *portState, m *frame.Meta) {
	if ps.sched.Quickens(m.Queue) { // else its head says when it sends
		n.touched.add(m.OutPort)
	}
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
	if n.stages.joinedN == len(n.stages.joined) {
		n.showQueued()
	}
	bytes, place := ps.sched.Ahead(m.Queue)
	n.stages.joined[n.stages.joinedN] = Queued{r, bytes, place + 1}
	n.stages.joinedN++
	n.stages.joinedFor |= ps.arc.queued
}

// showQueued shows features the frames that have joined queues since it was last
// called.
func (n *Node) showQueued() {
	v, b := n.stages.joined[:n.stages.joinedN], n.stages.joinedFor
	n.stages.joinedN, n.stages.joinedFor = 0, 0
	for ; b != 0; b &= b - 1 {
		n.stages.features[bits.TrailingZeros32(b)].Queued(v)
	}
}

// left is passed by the frames of a port that no longer wait in its egress queues.
func (n *Node) left(ps *portState, v []frame.Ref) {
	if ps.arc.left|n.stages.joinedFor != 0 {
		n.showLeft(ps, v)
	}
	if ps.floods.frames > 0 {
		for _, r := range v {
			ps.floods.leave(n.arena.Meta(r))
		}
	}
}

// showLeft shows features frames that no longer wait.
func (n *Node) showLeft(ps *portState, v []frame.Ref) {
	if n.stages.joinedN > 0 { // they may have joined in this vector
		n.showQueued()
	}
	for b := ps.arc.left; b != 0; b &= b - 1 {
		n.stages.features[bits.TrailingZeros32(b)].Left(v)
	}
}

// leave takes frames that are sent, or dropped from their queues, out of the accounts of
// the switch: features see that they left, and what they were charged to gets it back.
func (n *Node) leave(now frame.Time, ps *portState, v []frame.Ref) {
	if ps.arc.left|ps.arc.released|n.stages.joinedFor != 0 || ps.floods.frames != 0 {
		n.left(ps, v)
		n.showReleased(ps, v)
	}
	if n.inputs != nil {
		n.leaveInputs(now, v)
	} else if len(v) > 1 { // one frame has no others to be summed up with
		n.chunks.held -= n.buffer.ReleaseAll(n.arena, v)
	}
	for _, r := range v {
		if m := n.arena.Meta(r); m.Cost != 0 { // others, and frames of input queues that are gone
			n.chunks.held--
			n.buffer.Release(m)
		}
	}
}

// leaveInputs gives back what frames were charged to that came from input queues.
func (n *Node) leaveInputs(now frame.Time, v []frame.Ref) {
	for len(v) > 0 {
		k := 0
		for ; k < len(v); k++ {
			m := n.arena.Meta(v[k])
			if m.Pool != buffer.PoolInputs {
				break
			}
			m.Pool = buffer.PoolNone
		}
		if k > 0 {
			n.chunks.held -= k
			n.inputs.Leave(now, v[:k])
		}
		v = v[min(k+1, len(v)):]
	}
}

// showReleased shows features the frames that leave the switch by a port.
func (n *Node) showReleased(ps *portState, v []frame.Ref) {
	if len(v) == 0 {
		return
	}
	port := n.arena.Meta(v[0]).OutPort
	for b := ps.arc.released; b != 0; b &= b - 1 {
		n.stages.features[bits.TrailingZeros32(b)].Released(port, v)
	}
}

// flushPort drops what waits in the queues of a port that went down.
func (n *Node) flushPort(now frame.Time, port uint16) {
	ps := &n.ports[port]
	if ps.sched == nil {
		return
	}
	n.busy.remove(port)
	for k := ps.sched.Flush(now, n.vec.scratch[:]); k > 0; k = ps.sched.Flush(now, n.vec.scratch[:]) {
		n.dropQueued(now, ps, n.vec.scratch[:k], frame.QueueFlush)
	}
}

// flushQueue drops what waits in one queue.
func (n *Node) flushQueue(now frame.Time, port uint16, queue int, why frame.Reason) {
	ps := &n.ports[port]
	s := ps.sched
	for k := s.FlushQueue(now, queue, n.vec.scratch[:]); k > 0; k = s.FlushQueue(now, queue, n.vec.scratch[:]) {
		n.dropQueued(now, ps, n.vec.scratch[:k], why)
	}
}

// dropQueued drops frames that were taken out of their queues.
func (n *Node) dropQueued(now frame.Time, ps *portState, v []frame.Ref, why frame.Reason) {
	n.leave(now, ps, v)
	n.dropAll(v, why)
}
