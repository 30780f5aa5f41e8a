package hostnic

import "gswitch/frame"

// Waiting is the next packet of a queue pair that may send: the argument of Config.First.
type Waiting struct {
	QPN         uint32
	Class, DSCP uint8
	Size        uint32     // payload bytes
	Since       frame.Time // when its message was posted
	Left        uint32     // packets of the message from this one on
}

// chosen returns the queue pair of a class whose packet Config.First puts first, taking
// turns among equals. A burst that has started continues.
func (n *NIC) chosen(s *readySet) *queuePair {
	turn := s.next()
	q := n.qps[turn]
	if turn == s.burst {
		return q
	}
	best := n.waiting(q)
	for i := s.following(turn); i != turn; i = s.following(i) {
		if w := n.waiting(n.qps[i]); n.cfg.First(&w, &best) {
			q, best = n.qps[i], w
		}
	}
	return q
}

func (n *NIC) waiting(q *queuePair) Waiting {
	m := q.msgs.find(q.lanes[inTurn].next)
	return Waiting{QPN: q.qpn, Class: q.lanes[inTurn].class, DSCP: n.cfg.DSCP[q.lanes[inTurn].class], Size: q.lanes[inTurn].nextLen, Since: m.start, Left: uint32(min(m.end-q.lanes[inTurn].next, 1<<32-1))}
}
