package vswitch

import (
	"math/bits"

	"gswitch/frame"
	"gswitch/wire"
)

// emit sends a frame whose egress port is known on to its queue: it sets the VLAN tag as
// the port requires, and passes it to the worker that owns the port. Frames for another
// worker are gathered and cross its ring at the end of the vector.
func (n *Node) emit(r frame.Ref) {
	m := n.arena.Meta(r)
	if !n.linkUp.has(m.OutPort) {
		n.drop(r, frame.EgressPortDown)
		return
	}
	if m.InPort == frame.NoPort {
		m.Flags |= frame.Own
		m.InPort = m.OutPort // made by the switch itself: charged to its egress port
		ps := &n.ports[m.OutPort]
		// A notice must not add to the congestion that it is about.
		if m.About == m.OutPort+1 || ps.ownRate != 0 && !ps.own.Take(n.now, int(m.Wire)) {
			n.drop(r, frame.OwnShare)
			return
		}
	}
	pp := &n.prog.ports[m.OutPort]
	if m.Wire > pp.maxFrame && Untagged(m) > pp.maxFrame {
		n.drop(r, frame.MTUExceeded)
		return
	}
	if pp.vlanMode != VLANTransparent && pp.iface == noIface && !n.retag(r, m, pp) {
		return
	}
	if n.forwardsTo != 0 {
		n.gather(r)
		return
	}
	n.enqueue(r, m)
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

// emitUnchanged sends a mirror copy, or a frame of Send, to its port without a change of
// its tags, whatever VLANs the port has.
func (n *Node) emitUnchanged(r frame.Ref, m *frame.Meta) {
	if !n.linkUp.has(m.OutPort) {
		n.drop(r, frame.EgressPortDown)
		return
	}
	for b := n.copiesTo; b != 0; b &= b - 1 {
		n.features[bits.TrailingZeros32(b)].Copies(r)
	}
	n.enqueue(r, m)
}

// enqueue puts a frame into its egress queue, or drops it. If another worker owns the
// port, that worker does it. Consecutive frames of a vector for the same queue are
// gathered and join it together.
func (n *Node) enqueue(r frame.Ref, m *frame.Meta) {
	m.Queue = n.prog.class.Queue[m.Class&7] & 7
	if n.train.on {
		n.lineUp(r, m)
		return
	}
	ps := &n.ports[m.OutPort]
	if !n.admitsAlone(ps, m) {
		n.queue(r, m)
		return
	}
	if why := n.buffer.Admit(m); why != frame.Keep {
		n.dropAtQueue(ps, r, m, why)
		return
	}
	n.held++
	n.join(n.now, ps, r, m)
}

// lineUp gathers a frame of a vector if it may be, or queues it.
func (n *Node) lineUp(r frame.Ref, m *frame.Meta) {
	t := &n.train
	if key := trainOf(m); key != t.key || t.n == len(t.v) {
		n.queueTrain()
		t.key, t.bulk = key, n.bulk(m)
	}
	if t.bulk {
		t.v[t.n] = r
		t.n++
		return
	}
	n.queue(r, m)
}

// train is a run of consecutive frames of a vector from one port to one queue of another.
// Nothing is decided about them before queueTrain, and nothing that the decision depends
// on may change: queueTrain is called before anything else is charged to the buffer.
type train struct {
	v    [vector]frame.Ref
	n    int
	on   bool   // there is a vector, and queueTrain at its end
	key  uint64 // what they have in common
	bulk bool   // the frames are gathered
}

// noTrain is not the key of any frame.
const noTrain = ^uint64(0)

// trainOf returns what frames of a train have in common: everything that admission
// depends on except their length.
func trainOf(m *frame.Meta) uint64 {
	key := uint64(m.InPort)<<32 | uint64(m.OutPort)<<16 | uint64(m.Class)<<8
	if m.Flags&(frame.IsClone|frame.Flooded) != 0 {
		key |= 1
		if m.Flags&frame.Flooded != 0 { // those are judged one by one
			key |= 2
		}
	}
	return key
}

// bulk reports whether frames like this one may be gathered: they are judged together,
// and the queue is not examined in between.
func (n *Node) bulk(m *frame.Meta) bool {
	if int(n.prog.ports[m.OutPort].worker) != n.index || n.inputs != nil || m.Flags&frame.Flooded != 0 {
		return false
	}
	ps := &n.ports[m.OutPort]
	return ps.arc.claims|ps.arc.queued == 0 && ps.sched.Bulk()>>m.Queue&1 != 0
}

// endTrain ends a vector.
func (n *Node) endTrain() {
	n.queueTrain()
	n.train.on = false
}

// queueTrain queues the gathered frames.
func (n *Node) queueTrain() {
	t := &n.train
	v := t.v[:t.n]
	t.n, t.key = 0, noTrain
	switch len(v) {
	case 0:
		return
	case 1:
		n.queue(v[0], n.arena.Meta(v[0]))
		return
	}
	m := n.arena.Meta(v[0])
	ps := &n.ports[m.OutPort]
	if ps.dropping>>m.Queue&1 != 0 || n.held+len(v) > n.lossyHeld || !n.buffer.AdmitAll(n.arena, v) {
		for _, r := range v {
			n.queue(r, n.arena.Meta(r))
		}
		return
	}
	n.held += len(v)
	n.joinAll(n.now, ps, v)
}

// queue charges a frame to the shared buffer and puts it into its egress queue,
// or drops it.
func (n *Node) queue(r frame.Ref, m *frame.Meta) {
	if worker := int(n.prog.ports[m.OutPort].worker); worker != n.index {
		n.handOver(worker, r)
		if n.paths.loads != nil {
			n.paths.expectAt(m)
		}
		return
	}
	ps := &n.ports[m.OutPort]
	if n.inputs != nil && m.Flags&(frame.Own|copied) == 0 {
		n.await(ps, r, m)
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
	case n.held >= n.lossyHeld && (n.held >= n.maxHeld || n.losslessClasses>>(m.Class&7)&1 == 0 || m.Flags&frame.IsClone != 0):
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
	n.held++
	queue := m.Queue
	n.join(n.now, ps, r, m)
	if regulated {
		n.pushOut(ps, queue)
	}
}

// admitsAlone reports whether the buffer alone decides about a frame: none of what queue
// asks before applies. It is inlined.
func (n *Node) admitsAlone(ps *portState, m *frame.Meta) bool {
	return int(n.prog.ports[m.OutPort].worker) == n.index && n.inputs == nil && m.Flags&(frame.Claimed|frame.Flooded) == 0 &&
		n.held < n.lossyHeld && (ps.dropping|ps.sched.Regulated())>>m.Queue&1 == 0
}

// dropAtQueue drops a frame that may not join its queue.
func (n *Node) dropAtQueue(ps *portState, r frame.Ref, m *frame.Meta, reason frame.Reason) {
	if n.inputs != nil && reason != frame.PFCWatchdog && m.Flags&severalPorts != 0 && m.Flags&frame.Own == 0 {
		n.inputs.Refused(m)
	}
	ps.queueDrops[m.Queue]++
	n.drop(r, reason)
}

// retag gives the frame the VLAN tag that its egress port sends, and reports
// false if it had to drop it.
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
	if !wire.PushVLAN(n.arena, r, wire.EtherTypeVLAN, uint16(n.prog.tagPCP[m.Class&7])<<13|m.VID) {
		n.drop(r, frame.TxOversize) // no headroom left in the chunk
		return false
	}
	return true
}

// handOver gathers a frame for another worker.
func (n *Node) handOver(worker int, r frame.Ref) {
	h := &n.handoff[worker]
	if h.n == len(h.v) {
		n.flushHandoff(worker)
	}
	h.v[h.n] = r
	h.n++
	h.floods = h.floods || n.arena.Meta(r).Flags&frame.Flooded != 0
}

// flushHandoffs moves what was gathered for all other workers.
func (n *Node) flushHandoffs() {
	for w := range n.handoff {
		n.flushHandoff(w)
	}
}

// flushHandoff moves the gathered frames to the worker's ring. What does not
// fit is dropped here, where it can be counted.
func (n *Node) flushHandoff(worker int) {
	h := &n.handoff[worker]
	if h.n == 0 {
		return
	}
	if h.floods {
		n.thinFloods(h)
	}
	sent := h.ring.Push(h.v[:h.n])
	for _, r := range h.v[sent:h.n] {
		n.drop(r, frame.WorkerRing)
	}
	h.n = 0
	if n.paths.loads != nil {
		n.forgetHanded(worker)
	}
	if sent > 0 {
		n.handedTo |= n.sw.Nodes[worker].wakeBit
	}
}

// takeVectors bounds the vectors of frames from other workers per loop: half of what a
// ring holds.
const takeVectors = 16

// takeOver admits the frames that other workers passed to this one. A worker that passes
// frames without pause does not keep this one from its ports.
func (n *Node) takeOver() {
	for i := range n.handIn {
		ring := n.handIn[i]
		if ring == nil {
			continue
		}
		for range takeVectors {
			k := ring.Pop(n.taken[:])
			n.train.on = k > 1
			for _, r := range n.taken[:k] {
				n.takeOne(r, n.arena.Meta(r))
			}
			n.endTrain()
			if k < len(n.taken) {
				break
			}
		}
	}
}

// takeOne admits one frame. The worker that passed it may have used another program or
// another state of the links. Besides frames on their way out there are those that only
// the worker may deal with that owns their ingress port: MAC control, and frames to
// link-local groups, whose OutPort is NoPort.
func (n *Node) takeOne(r frame.Ref, m *frame.Meta) {
	switch {
	case m.Flags&frame.ToLocal != 0:
		n.toLocal(r)
	case m.OutPort == frame.NoPort && !n.linkUp.has(m.InPort):
		n.drop(r, frame.PortDown)
	case m.OutPort == frame.NoPort && m.Flags&frame.IsMACControl == 0:
		if !n.linkLocal(n.now, r, m) {
			n.drop(r, frame.ReservedMulticast)
		}
	case m.Flags&frame.IsMACControl != 0 && !n.linkUp.has(m.InPort):
		n.drop(r, frame.PortDown)
	case m.Flags&frame.IsMACControl != 0:
		n.control(r, m)
	case !n.linkUp.has(m.OutPort) || n.ports[m.OutPort].sched == nil:
		n.drop(r, frame.EgressPortDown)
	default:
		n.enqueue(r, m)
	}
}
