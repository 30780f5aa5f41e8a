package orders

import (
	"gswitch/frame"
	"gswitch/scheduler"
)

// Random serves any frame that waits, each with the same probability, and evicts
// any likewise.
type Random struct{}

// New implements scheduler.Order.
func (Random) New(e scheduler.Env) scheduler.Discipline { return &random{rng: frame.NewRand(e.Seed)} }

// String implements scheduler.Order.
func (Random) String() string { return "random" }

// random draws the last of v when Head is called, and again when another frame
// has come, so that all compete that wait when the link is free.
type random struct {
	v     []frame.Ref
	drawn bool
	rng   frame.Rand
}

func (q *random) Enqueue(_ *frame.Arena, _ frame.Time, r frame.Ref) {
	q.v = append(q.v, r)
	q.drawn = false
}

func (q *random) Head() frame.Ref {
	n := len(q.v)
	if n == 0 {
		return frame.Nil
	}
	if !q.drawn {
		q.drawn = true
		i := q.rng.Uint32n(uint32(n))
		q.v[i], q.v[n-1] = q.v[n-1], q.v[i]
	}
	return q.v[n-1]
}

func (q *random) Dequeue(*frame.Arena, frame.Time) frame.Ref {
	r := q.Head()
	if r != frame.Nil {
		q.v = q.v[:len(q.v)-1]
		q.drawn = false
	}
	return r
}

func (q *random) Evict(a *frame.Arena) frame.Ref {
	q.drawn = false
	return q.Dequeue(a, 0)
}

func (q *random) Len() int { return len(q.v) }

func (q *random) Each(_ *frame.Arena, visit func(frame.Ref) bool) {
	for _, r := range q.v {
		if !visit(r) {
			return
		}
	}
}
