package main

import (
	"gswitch/frame"
	"gswitch/scheduler"
)

// smallFirst serves frames of up to this many bytes before all others.
type smallFirst uint32

func init() { scheduler.Register("small-first", smallFirst(200)) }

// New implements scheduler.Order.
func (s smallFirst) New(scheduler.Env) scheduler.Discipline {
	q := &lists{most: uint32(s)}
	q.small.Init()
	q.large.Init()
	return q
}

// String implements scheduler.Order.
func (smallFirst) String() string { return "small-first" }

// lists are the frames that wait, by their size.
type lists struct {
	most         uint32
	small, large scheduler.List
}

func (q *lists) Len() int { return q.small.Len() + q.large.Len() }

func (q *lists) first() *scheduler.List {
	if q.small.Len() > 0 {
		return &q.small
	}
	return &q.large
}

func (q *lists) Head() frame.Ref { return q.first().Head() }

func (q *lists) Dequeue(a *frame.Arena, now frame.Time) frame.Ref { return q.first().Dequeue(a, now) }

func (q *lists) Enqueue(a *frame.Arena, now frame.Time, r frame.Ref) {
	if a.Meta(r).Wire <= q.most {
		q.small.Enqueue(a, now, r)
		return
	}
	q.large.Enqueue(a, now, r)
}

func (q *lists) Each(a *frame.Arena, visit func(frame.Ref) bool) {
	more := true
	for _, l := range []*scheduler.List{&q.small, &q.large} {
		if more {
			l.Each(a, func(r frame.Ref) bool { more = visit(r); return more })
		}
	}
}
