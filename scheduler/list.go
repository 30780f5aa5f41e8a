package scheduler

import "gswitch/frame"

// FIFO is first-in first-out where the last frame can be pushed out.
type FIFO struct{}

// New implements Order.
func (FIFO) New(Env) Discipline {
	l := &List{}
	l.Init()
	return l
}

// String implements Order.
func (FIFO) String() string { return "fifo" }

// List is a queue of frames linked both ways, through Meta.QNext and
// Meta.QPrev, that can be taken from either end. The zero value is not ready: call Init.
type List struct {
	head, tail frame.Ref
	n          int
}

// Init makes l empty.
func (l *List) Init() { l.head, l.tail, l.n = frame.Nil, frame.Nil, 0 }

// Len implements Discipline.
func (l *List) Len() int { return l.n }

// Head implements Discipline.
func (l *List) Head() frame.Ref { return l.head }

// Tail returns the frame that came last, or Nil.
func (l *List) Tail() frame.Ref { return l.tail }

// Enqueue implements Discipline.
func (l *List) Enqueue(a *frame.Arena, _ frame.Time, r frame.Ref) {
	m := a.Meta(r)
	m.QNext, m.QPrev = frame.Nil, l.tail
	if l.n == 0 {
		l.head = r
	} else {
		a.Meta(l.tail).QNext = r
	}
	l.tail = r
	l.n++
}

// Dequeue implements Discipline.
func (l *List) Dequeue(a *frame.Arena, _ frame.Time) frame.Ref {
	r := l.head
	if r == frame.Nil {
		return r
	}
	l.n--
	if l.head = a.Meta(r).QNext; l.head == frame.Nil {
		l.tail = frame.Nil
	} else {
		a.Meta(l.head).QPrev = frame.Nil
	}
	return r
}

// Evict implements Evictor: the last one goes.
func (l *List) Evict(a *frame.Arena) frame.Ref {
	r := l.tail
	if r == frame.Nil {
		return r
	}
	l.n--
	if l.tail = a.Meta(r).QPrev; l.tail == frame.Nil {
		l.head = frame.Nil
	} else {
		a.Meta(l.tail).QNext = frame.Nil
	}
	return r
}

// Remove takes a frame out of the middle.
func (l *List) Remove(a *frame.Arena, r frame.Ref) {
	switch m := a.Meta(r); r {
	case l.head:
		l.Dequeue(a, 0)
	case l.tail:
		l.Evict(a)
	default:
		a.Meta(m.QPrev).QNext, a.Meta(m.QNext).QPrev = m.QNext, m.QPrev
		l.n--
	}
}

// Each implements Discipline.
func (l *List) Each(a *frame.Arena, visit func(frame.Ref) bool) {
	for r := l.head; r != frame.Nil && visit(r); r = a.Meta(r).QNext {
	}
}
