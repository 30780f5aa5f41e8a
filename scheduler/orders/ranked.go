package orders

import (
	"gswitch/frame"
	"gswitch/scheduler"
)

// Ranked serves the least rank: exactly what a push-in first-out queue (PIFO)
// does (Sivaraman et al., "Programmable Packet Scheduling at Line Rate", SIGCOMM
// 2016). With the ranks of their authors it is shortest job first, earliest
// deadline first, least slack time first and FIFO+. Each frame costs O(log n).
type Ranked struct{}

// New implements scheduler.Order.
func (Ranked) New(scheduler.Env) scheduler.Discipline { return &ranked{} }

// String implements scheduler.Order.
func (Ranked) String() string { return "ranked" }

type ranked struct{ h heap }

func (q *ranked) Enqueue(a *frame.Arena, _ frame.Time, r frame.Ref) { q.h.push(a.Meta(r).Rank, r) }

func (q *ranked) Head() frame.Ref {
	if q.h.len() == 0 {
		return frame.Nil
	}
	return q.h.first().ref
}

func (q *ranked) Dequeue(*frame.Arena, frame.Time) frame.Ref {
	if q.h.len() == 0 {
		return frame.Nil
	}
	return q.h.pop().ref
}

func (q *ranked) Evict(*frame.Arena) frame.Ref {
	if q.h.len() == 0 {
		return frame.Nil
	}
	return q.h.popMax().ref
}

func (q *ranked) Len() int { return q.h.len() }

func (q *ranked) Each(_ *frame.Arena, visit func(frame.Ref) bool) {
	for i := range q.h.v {
		if !visit(q.h.v[i].ref) {
			return
		}
	}
}
