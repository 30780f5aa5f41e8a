package hostnic

import (
	"math/bits"

	"gswitch/frame"
)

// pick takes the next frame to start on the link at t, Nil if there is none or
// no chunk for it. The highest class with something to send comes first, and in
// a class, or in classes that share a weight, what waits there in this order:
//
//	replies       acknowledgements, notifications, urgent frames of others
//	in turn       data of queue pairs, frames of features
//	behind        data of second loops
//
// Frames without a queue pair (plain) take turns with all data, whatever their class.
func (n *NIC) pick(t, now frame.Time) frame.Ref {
	for {
		can := n.ready[inTurn] &^ n.paused
		top := bits.Len8(can)
		if len(n.sources) != 0 {
			top = max(top, bits.Len8(n.offered(t, now)))
		}
		if c := bits.Len8(n.sendableReplies()) - 1; c >= 0 && top <= int(n.classes[c].top) && (t >= now || n.replySince(c) <= t) {
			r := n.replies.pop(n.arena, c)
			n.depart(t, r)
			return r
		}
		if (top == 0 || n.plainTurn) && n.plainReady() && (t >= now || n.plainSince() <= t) {
			n.plainTurn = false
			r := n.plain.Pop(n.arena)
			n.depart(t, r)
			return r
		}
		if b := bits.Len8(n.ready[behind] &^ n.paused); b > top && (t >= now || n.behindSince(b-1) <= t) {
			c := &n.classes[b-1]
			q := n.qps[c.lanes[behind].next()]
			return n.send(t, now, c, q, &q.lanes[behind])
		}
		if len(n.sources) != 0 {
			if r := n.fromSource(t, now, top, bits.Len8(can) == top); r != frame.Nil {
				return r
			}
		}
		if can == 0 {
			return frame.Nil
		}
		n.plainTurn = true
		c := &n.classes[n.nextClass(can)]
		s := &c.lanes[inTurn]
		var q *queuePair
		if n.cfg.First == nil {
			q = n.qps[s.next()]
		} else {
			q = n.chosen(s)
		}
		if !q.seg.open && !q.lanes[inTurn].pace.lapsed(t, n.cfg.WholeNs) {
			n.schedule(now, q)
			continue
		}
		// A link that catches up does not send what was not allowed then.
		t = max(t, min(max(q.due(), c.resumed), now))
		return n.send(t, now, c, q, &q.lanes[inTurn])
	}
}

// sendableReplies returns the classes with replies that are not paused.
func (n *NIC) sendableReplies() uint8 {
	if n.cfg.AckPauseClass < 0 {
		return n.replies.ready &^ n.paused
	}
	if n.paused>>n.cfg.AckPauseClass&1 != 0 {
		return 0
	}
	return n.replies.ready
}

// sendable reports whether something waits for the link only.
func (n *NIC) sendable() bool {
	return n.sendableReplies()|(n.ready[inTurn]|n.ready[behind]|n.offers())&^n.paused != 0 || n.plainReady()
}

// upcoming returns when something will be ready to send, if nothing is at the instant
// that the link has reached.
func (n *NIC) upcoming() frame.Time {
	at := n.paceWheel.next()
	if m := n.sendableReplies(); m != 0 {
		at = min(at, n.replySince(bits.Len8(m)-1))
	}
	if n.plainReady() {
		at = min(at, n.plainSince())
	}
	for i := range n.sources {
		at = min(at, n.sourceSince(i))
	}
	if m := n.ready[behind] &^ n.paused; m != 0 {
		at = min(at, n.behindSince(bits.Len8(m)-1))
	}
	return at
}

// replySince returns the time since which the first reply of a class has been ready and
// not paused.
func (n *NIC) replySince(class int) frame.Time {
	by := class
	if n.cfg.AckPauseClass >= 0 {
		by = n.cfg.AckPauseClass
	}
	return max(n.arena.Meta(n.replies.fifo[class].Head()).Arrival, n.classes[by].resumed)
}

// behindSince is replySince for the next of a class's lanes behind.
func (n *NIC) behindSince(class int) frame.Time {
	c := &n.classes[class]
	return max(n.qps[c.lanes[behind].next()].lanes[behind].since, c.resumed)
}

// plainReady reports whether the first frame without a queue pair may leave.
func (n *NIC) plainReady() bool {
	return n.plain.Len() > 0 && n.paused>>(n.arena.Meta(n.plain.Head()).Class&7)&1 == 0
}

// plainSince is replySince for frames without a queue pair.
func (n *NIC) plainSince() frame.Time {
	m := n.arena.Meta(n.plain.Head())
	return max(m.Arrival, n.classes[m.Class&7].resumed)
}
