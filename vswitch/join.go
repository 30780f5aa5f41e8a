package vswitch

import "gswitch/frame"

// Every frame that waits in an egress queue came into it by join, and went out
// of it by left: sent and flushed frames by leave, those that are taken from the
// middle of a queue and stay charged by left alone.

// join puts a frame that is charged into its egress queue and shows it to
// whatever watches that queue. at is now, or a moment before for what has
// crossed a crossbar meanwhile.
func (n *Node) join(at frame.Time, ps *portState, r frame.Ref, m *frame.Meta) {
	if ps.points != nil {
		if p, place := ps.interested(m); p != nil {
			n.meet(p, r, m, place)
		}
	}
	if ps.samplers != nil {
		if s := ps.sampled(m); s != nil {
			n.sample(s, r, m)
		}
	}
	if ps.sched.Quickens(m.Queue) { // else its head says when it sends
		n.touched.add(m.OutPort)
	}
	ps.sched.Enqueue(at, r)
	n.busy.add(m.OutPort)
}

// left tells what watches the queue of a frame that it waits there no longer.
func (n *Node) left(m *frame.Meta) {
	if m.Flow != 0 {
		n.quit(m)
	}
}

// leave is left for a frame that leaves the switch: it gives back what the
// frame was charged to.
func (n *Node) leave(now frame.Time, m *frame.Meta) {
	if m.Cost != 0 { // frames of flow control are not charged
		n.release(now, m)
	}
	n.left(m)
	if m.Flags&frame.Slotted != 0 {
		n.unslot(m)
	}
}
