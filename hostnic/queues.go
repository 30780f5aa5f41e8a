package hostnic

import (
	"math/bits"

	"gswitch/frame"
)

// queues hold frames that wait for the link, by class.
type queues struct {
	fifo   [8]frame.FIFO
	ready  uint8 // classes with frames
	frames int   // of all
}

func (q *queues) init() {
	for c := range q.fifo {
		q.fifo[c].Init()
	}
}

func (q *queues) push(a *frame.Arena, r frame.Ref, class uint8) {
	q.fifo[class].Push(a, r)
	q.ready |= 1 << class
	q.frames++
}

// pop takes the oldest frame of a class that has some.
func (q *queues) pop(a *frame.Arena, class int) frame.Ref {
	f := &q.fifo[class]
	r := f.Pop(a)
	q.frames--
	if f.Len() == 0 {
		q.ready &^= 1 << class
	}
	return r
}

// flush drops what waits for a link that went down.
func (n *NIC) flush(q *queues) {
	for q.ready != 0 {
		n.drop(q.pop(n.arena, bits.Len8(q.ready)-1), frame.QueueFlush)
	}
}

// repliesShare is the divisor for the part of the chunks that the replies of a class may
// hold: a neighbour that pauses them, while data keeps arriving, must not exhaust the
// chunks. All classes together hold at most twice as much, and a class may have as many
// as all leave free of that. Further replies are dropped, and later ones carry what they
// would have acknowledged.
const repliesShare = 4

// queueReply queues a reply, ahead of the data of its class. Without a link or room it
// drops the reply and returns false.
func (n *NIC) queueReply(now frame.Time, r frame.Ref, class uint8) bool {
	class &= 7
	switch {
	case !n.up:
		n.drop(r, frame.QueueFlush)
		return false
	case n.replies.fifo[class].Len() >= 2*n.maxReplies-n.replies.frames:
		n.drop(r, frame.QueueTail)
		return false
	}
	n.arena.Meta(r).Arrival = now
	n.replies.push(n.arena, r, class)
	n.touch(now)
	return true
}

// QueueFrame queues a frame that belongs to no queue pair: one of a feature, or of the
// caller that steps the NIC. The frame is complete, with its length on the link
// (Meta.Wire) and class (Meta.Class). Urgent frames leave with the replies of their
// class. The others take turns with the data of queue pairs, of whatever class, so that
// neither can block the other; if limit of them are waiting r is dropped. QueueFrame
// reports whether r was queued.
func (n *NIC) QueueFrame(now frame.Time, r frame.Ref, urgent bool, limit int) bool {
	m := n.arena.Meta(r)
	switch {
	case urgent:
		return n.queueReply(now, r, m.Class)
	case !n.up:
		n.drop(r, frame.QueueFlush)
		return false
	case n.plain.Len() >= limit:
		n.drop(r, frame.QueueTail)
		return false
	}
	m.Arrival = now
	n.plain.Push(n.arena, r)
	n.touch(now)
	return true
}

// QueuedFrames returns how many frames of QueueFrame wait that are not urgent.
func (n *NIC) QueuedFrames() int { return n.plain.Len() }
