package orders

import (
	"fmt"

	"gswitch/frame"
	"gswitch/scheduler"
)

// SPPIFO approximates Ranked with a few strict first-in first-out queues whose
// bounds follow the ranks that come (Alcoz et al., "SP-PIFO: Approximating
// Push-In First-Out Behaviors using Strict-Priority Queues", NSDI 2020).
type SPPIFO struct {
	Queues int // 1 to MaxLevels; hardware has 8
	Depth  int // frames in each of them at most, 0 = no limit of its own
}

// New implements scheduler.Order.
func (o SPPIFO) New(scheduler.Env) scheduler.Discipline {
	q := &sppifo{levels: *newLevels(o.Queues), depth: o.Depth}
	q.bound = make([]int64, len(q.l))
	return q
}

// String implements scheduler.Order.
func (o SPPIFO) String() string { return fmt.Sprintf("sp-pifo(%d)", o.Queues) }

// Drops implements scheduler.Dropper: queues with a depth may be full.
func (o SPPIFO) Drops() bool { return o.Depth > 0 }

type sppifo struct {
	levels
	bound []int64 // least rank that a queue takes
	depth int
	at    int // the queue that Admits found
	found bool
}

// Enqueue implements scheduler.Discipline.
func (q *sppifo) Enqueue(a *frame.Arena, now frame.Time, r frame.Ref) {
	q.put(a, now, r, q.place(a.Meta(r).Rank))
}

// place finds the queue of a rank, and moves the bounds: up to the rank where a
// queue takes it, and down by what is missing where even the first one would
// serve it too late (the paper's algorithm 1, whose cost is that difference).
func (q *sppifo) place(rank int64) int {
	if q.found {
		q.found = false
		return q.at
	}
	for i := len(q.bound) - 1; i > 0; i-- {
		if rank >= q.bound[i] {
			q.bound[i] = rank
			return i
		}
	}
	if cost := q.bound[0] - rank; cost > 0 {
		for i := range q.bound {
			q.bound[i] -= cost
		}
	} else {
		q.bound[0] = rank
	}
	return 0
}

// Admits implements scheduler.Gate: the queue of a frame may be full.
func (q *sppifo) Admits(_ frame.Time, m *frame.Meta, _ int, _ uint64) scheduler.Verdict {
	if q.depth == 0 {
		return scheduler.Pass
	}
	q.at, q.found = q.place(m.Rank), false
	if q.l[q.at].Len() >= q.depth {
		return scheduler.Drop
	}
	q.found = true
	return scheduler.Pass
}
