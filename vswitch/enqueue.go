package vswitch

import "gswitch/frame"

// enqueue puts frames into their egress queues, or drops them. Frames for the ports of
// other workers are gathered, and cross a ring at the end of the vector. Those that follow
// each other from one port to one queue are judged and queued together.
func (n *Node) enqueue(v []frame.Ref) {
	for len(v) > 1 {
		k := n.train(v)
		if k == 1 || !n.queueTrain(v[:k]) {
			for i := range k {
				n.queue(v[i : i+1])
			}
		}
		v = v[k:]
	}
	if len(v) == 1 {
		n.queue(v)
	}
}

// train returns how many frames at the start of a vector are a train: they agree in
// everything that is asked of one before it is queued, except their length.
func (n *Node) train(v []frame.Ref) int {
	first := n.arena.Meta(v[0])
	for k := 1; k < len(v); k++ {
		m := n.arena.Meta(v[k])
		if m.InPort != first.InPort || m.OutPort != first.OutPort || m.Class != first.Class || (m.Flags^first.Flags)&judged != 0 {
			return k
		}
	}
	return len(v)
}

// judged are the flags that matter for where a frame waits.
const judged = frame.Own | frame.Claimed | copied

// queueTrain charges a train and puts it into its queue. It reports false, and has charged
// nothing, if its frames have to be judged one by one, because the queue is examined in
// between or it is not sure that there is room for all of them.
func (n *Node) queueTrain(v []frame.Ref) bool {
	m := n.arena.Meta(v[0])
	ps := &n.ports[m.OutPort]
	queue := n.prog.class.Queue[m.Class&7] & 7
	if ps.sched == nil || m.Flags&frame.Flooded != 0 {
		return false
	}
	for _, r := range v {
		n.arena.Meta(r).Queue = queue
	}
	if n.inputs != nil {
		if m.Flags&(frame.Own|copied) != 0 {
			return false
		}
		n.await(ps, v)
		return true
	}
	if ps.arc.claims|ps.arc.queued != 0 || (ps.sched.Bulk()&^ps.dropping)>>queue&1 == 0 || n.chunks.held+len(v) > n.chunks.lossy ||
		!n.buffer.AdmitAll(n.arena, v) {
		return false
	}
	n.enter(ps, m, v)
	return true
}

// queue charges the one frame of v to the shared buffer and puts it into its egress queue,
// or drops it.
func (n *Node) queue(v []frame.Ref) {
	m := n.arena.Meta(v[0])
	m.Queue = n.prog.class.Queue[m.Class&7] & 7
	ps := &n.ports[m.OutPort]
	if !n.admitsAlone(ps, m) {
		n.queueAsking(ps, m, v)
		return
	}
	if why := n.buffer.Admit(m); why != frame.Keep {
		n.dropAtQueue(ps, v[0], m, why)
		return
	}
	n.enter(ps, m, v)
}

// enter puts a frame, or a train, that the buffer has admitted into its egress queue.
func (n *Node) enter(ps *portState, m *frame.Meta, v []frame.Ref) {
	n.chunks.held += len(v)
	n.join(n.now, ps, m, v)
}

// queueAsking is queue for a frame about which more than the buffer decides, or whose port
// another worker owns: it is handed over.
func (n *Node) queueAsking(ps *portState, m *frame.Meta, v []frame.Ref) {
	r := v[0]
	if worker := int(n.prog.ports[m.OutPort].worker); worker != n.index {
		n.handOver(worker, r)
		if n.paths.loads != nil {
			n.paths.expectAt(m)
		}
		return
	}
	if n.inputs != nil && m.Flags&(frame.Own|copied) == 0 {
		n.await(ps, v)
		return
	}
	if m.Flags&frame.Claimed != 0 && n.claimed(ps, r) {
		return
	}
	regulated := ps.sched.Regulated()>>m.Queue&1 != 0
	reason := frame.Keep
	switch {
	case ps.dropping>>m.Queue&1 != 0:
		reason = frame.PFCWatchdog
	case n.chunks.held >= n.chunks.lossy && (n.chunks.held >= n.chunks.limit || n.flow.lossless>>(m.Class&7)&1 == 0 || m.Flags&frame.IsClone != 0):
		reason = frame.ArenaExhausted
	case m.Flags&frame.Flooded != 0 && !n.admitsFlood(ps, m):
		reason = frame.FloodShare
	case regulated && !ps.sched.Admits(n.now, m):
		reason = frame.QueueRefused
	case regulated:
		reason = n.admitPushing(ps, m)
	default:
		reason = n.buffer.Admit(m)
	}
	if reason != frame.Keep {
		n.dropAtQueue(ps, r, m, reason)
		return
	}
	queue := m.Queue
	n.enter(ps, m, v)
	if regulated {
		n.pushOut(ps, queue)
	}
}

// admitsAlone reports whether the buffer alone decides about a frame: none of what
// queueAsking asks applies. It is inlined.
func (n *Node) admitsAlone(ps *portState, m *frame.Meta) bool {
	return ps.sched != nil && n.inputs == nil && m.Flags&(frame.Claimed|frame.Flooded) == 0 &&
		n.chunks.held < n.chunks.lossy && (ps.dropping|ps.sched.Regulated())>>m.Queue&1 == 0
}

// dropAtQueue drops a frame that may not join its queue.
func (n *Node) dropAtQueue(ps *portState, r frame.Ref, m *frame.Meta, reason frame.Reason) {
	if n.inputs != nil && reason != frame.PFCWatchdog && m.Flags&severalPorts != 0 && m.Flags&frame.Own == 0 {
		n.inputs.Refused(m)
	}
	ps.queueDrops[m.Queue]++
	n.drop(r, reason)
}
