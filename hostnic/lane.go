package hostnic

import "gswitch/frame"

// States of a lane.
const (
	idle    uint8 = iota // nothing to send, window full, or not connected: on no list
	waiting              // in the pacing wheel
	ready                // in the ready set of its class
)

// Kinds of lanes.
const (
	inTurn uint8 = iota // in turn with those of other queue pairs
	behind              // where nothing else waits in the class or above
	numLanes
)

// lane is a stream of data frames of a queue pair: the packets of one loop of its
// transport, in a class, at a pace. A queue pair has as many lanes as its transport has
// loops: that of the ordinary one is in turn, that of the second (low.go) behind and without
// pace. A lane's place in queuePair.lanes is its kind, and so is the ready set of a class
// that it waits in.
type lane struct {
	state   uint8
	class   uint8
	level   uint8 // in the frames' headers, from 1 on; 0 of the ordinary loop
	nextRtx bool  // the next packet was sent before
	nextLen uint32
	next    uint64 // the next packet to be sent, where state is not idle
	since   frame.Time
	pace    pacer
}

// kind returns which of q's lanes l is.
func (q *queuePair) kind(l *lane) uint8 {
	if l == &q.lanes[behind] {
		return behind
	}
	return inTurn
}

// enter puts a lane of q into the ready set of its class.
func (n *NIC) enter(now frame.Time, q *queuePair, l *lane) {
	l.state, l.since = ready, now
	kind := q.kind(l)
	s := &n.classes[l.class].lanes[kind]
	if int(q.index>>6) >= len(s.word[0]) {
		s.grow(len(n.qps))
	}
	s.set(q.index)
	n.ready[kind] |= 1 << l.class
	n.touch(now)
}

// leave takes it out.
func (n *NIC) leave(q *queuePair, l *lane) {
	kind := q.kind(l)
	s := &n.classes[l.class].lanes[kind]
	s.clear(q.index)
	if s.empty() {
		n.ready[kind] &^= 1 << l.class
	}
}

// withdraw takes all lanes and the timer of q off their lists.
func (n *NIC) withdraw(q *queuePair) {
	n.parkOrdinary(q)
	if q.hasLow() {
		n.parkSecond(q)
	}
	n.timers.remove(q.index)
	if s := &n.classes[q.lanes[inTurn].class].lanes[inTurn]; s.burst == q.index {
		s.burst = noNode
	}
}

// countData counts a data frame that a lane sent.
func (c *Counts) countData(kind uint8) {
	if kind == behind {
		c.LowFrames++
		return
	}
	c.DataFrames++
}
