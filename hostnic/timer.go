package hostnic

import (
	"gswitch/cc"
	"gswitch/frame"
)

// timer runs what is due of a queue pair: retransmission, a deferred acknowledgement and
// congestion control.
func (n *NIC) timer(now frame.Time, q *queuePair) {
	if q.tx.Deadline() <= now {
		if q.tx.Timeout(now) {
			n.count.Timeouts++
			q.stats.Timeouts++
			if q.msgs.n > 0 {
				q.msgs.at(0).timeouts++
			}
			if q.cc != nil {
				q.cc.OnLoss(now, cc.LossTimeout)
			}
			if q.service.exhausted(n, now, q) {
				return
			}
		}
	}
	if q.ackDue <= now {
		n.answerLate(now, q)
	}
	if q.cc != nil {
		if q.ccDue <= now {
			q.cc.OnTimer(now)
		}
		n.adoptCC(q)
	}
	n.schedule(now, q)
	n.arm(now, q)
}

// arm sets the timer of q to what is due next. One that fires too early finds
// out then, so that an acknowledgement, which moves the deadline on, need not
// touch the wheel.
func (n *NIC) arm(now frame.Time, q *queuePair) {
	at := min(q.tx.Deadline(), q.ccDue, q.ackDue)
	if at < n.timers.armed(q.index) {
		n.timers.arm(q.index, max(at, now+1))
	}
}
