package orders

import (
	"fmt"
	"math/bits"

	"gswitch/frame"
	"gswitch/scheduler"
)

// Levels are strict priorities inside a queue: a rank is a level, the least one
// first, and what is above the last one belongs to it. Each frame costs O(1).
type Levels struct {
	N int // levels, 1 to MaxLevels
}

// MaxLevels is how many levels fit the word that says which have a frame.
const MaxLevels = 64

// New implements scheduler.Order.
func (o Levels) New(scheduler.Env) scheduler.Discipline { return newLevels(o.N) }

// String implements scheduler.Order.
func (o Levels) String() string { return fmt.Sprintf("levels(%d)", o.N) }

type levels struct {
	some uint64 // levels with a frame
	n    int
	l    []scheduler.List
}

func newLevels(n int) *levels {
	q := &levels{l: make([]scheduler.List, min(max(n, 1), MaxLevels))}
	for i := range q.l {
		q.l[i].Init()
	}
	return q
}

func (q *levels) Enqueue(a *frame.Arena, now frame.Time, r frame.Ref) {
	q.put(a, now, r, int(min(max(a.Meta(r).Rank, 0), int64(len(q.l)-1))))
}

func (q *levels) put(a *frame.Arena, now frame.Time, r frame.Ref, level int) {
	q.some |= 1 << level
	q.l[level].Enqueue(a, now, r)
	q.n++
}

func (q *levels) Head() frame.Ref {
	if q.some == 0 {
		return frame.Nil
	}
	return q.l[bits.TrailingZeros64(q.some)].Head()
}

func (q *levels) Dequeue(a *frame.Arena, t frame.Time) frame.Ref {
	if q.some == 0 {
		return frame.Nil
	}
	i := bits.TrailingZeros64(q.some)
	r := q.l[i].Dequeue(a, t)
	q.took(i)
	return r
}

func (q *levels) Evict(a *frame.Arena) frame.Ref {
	if q.some == 0 {
		return frame.Nil
	}
	i := bits.Len64(q.some) - 1
	r := q.l[i].Evict(a)
	q.took(i)
	return r
}

func (q *levels) took(i int) {
	q.n--
	if q.l[i].Len() == 0 {
		q.some &^= 1 << i
	}
}

func (q *levels) Len() int { return q.n }

func (q *levels) Each(a *frame.Arena, visit func(frame.Ref) bool) {
	on := true
	for b := q.some; b != 0 && on; b &= b - 1 {
		q.l[bits.TrailingZeros64(b)].Each(a, func(r frame.Ref) bool {
			on = visit(r)
			return on
		})
	}
}
