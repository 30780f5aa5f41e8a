package vswitch

import "gswitch/frame"

// Frames between the workers of a switch, over a single-producer ring for each pair.

// handOver gathers a frame for another worker.
func (n *Node) handOver(worker int, r frame.Ref) {
	h := &n.others.out[worker]
	if h.n == len(h.v) {
		n.flushHandoff(worker)
	}
	h.v[h.n] = r
	h.n++
	h.floods = h.floods || n.arena.Meta(r).Flags&frame.Flooded != 0
}

// flushHandoffs moves what was gathered for all other workers.
func (n *Node) flushHandoffs() {
	for w := range n.others.out {
		n.flushHandoff(w)
	}
}

// flushHandoff moves the gathered frames to the worker's ring. What does not
// fit is dropped here, where it can be counted.
func (n *Node) flushHandoff(worker int) {
	h := &n.others.out[worker]
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
		n.others.handed |= n.sw.Nodes[worker].others.bit
	}
}

// takeVectors bounds the vectors of frames from other workers per loop: half of what a
// ring holds.
const takeVectors = 16

// takeOver admits the frames that other workers passed to this one. A worker that passes
// frames without pause does not keep this one from its ports.
func (n *Node) takeOver() {
	for i := range n.others.in {
		ring := n.others.in[i]
		if ring == nil {
			continue
		}
		for range takeVectors {
			k := ring.Pop(n.vec.taken[:])
			v := n.arrived(n.vec.taken[:k])
			if n.vec.decidedN > 0 { // what waited for its neighbour left before the others of its flow
				n.egress()
			}
			n.enqueue(v)
			if k < len(n.vec.taken) {
				break
			}
		}
	}
}

// arrived returns those frames from another worker that go to queues of this one. The
// worker that passed them may have used another program or another state of the links.
// Besides frames on their way out there are frames for the slow path, which worker 0 has, and
// those that only the worker may deal with that owns their ingress port: MAC control, and
// frames to link-local groups, whose OutPort is NoPort. They act at once.
func (n *Node) arrived(v []frame.Ref) []frame.Ref {
	keep := v[:0]
	for _, r := range v {
		m := n.arena.Meta(r)
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
			keep = append(keep, r)
		}
	}
	return keep
}
