package orders

import (
	"gswitch/frame"
	"gswitch/scheduler"
)

// LIFO serves the frame that came last, and evicts the oldest.
type LIFO struct{}

// New implements scheduler.Order.
func (LIFO) New(scheduler.Env) scheduler.Discipline {
	q := &lifo{}
	q.Init()
	return q
}

// String implements scheduler.Order.
func (LIFO) String() string { return "lifo" }

// lifo is a list from its other end.
type lifo struct{ scheduler.List }

func (q *lifo) Head() frame.Ref                                { return q.Tail() }
func (q *lifo) Dequeue(a *frame.Arena, _ frame.Time) frame.Ref { return q.List.Evict(a) }
func (q *lifo) Evict(a *frame.Arena) frame.Ref                 { return q.List.Dequeue(a, 0) }
