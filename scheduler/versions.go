package scheduler

import "gswitch/frame"

// versions is a queue whose order was changed while frames waited. What waited
// leaves first, in its own order; what came since follows in the new one. So a
// change costs the same however long the queue is, and reorders nothing.
type versions struct {
	drain []Discipline // earlier ones, each with a frame, oldest first
	last  Discipline
	since frame.Time  // of the change
	gone  []frame.Ref // pushed out from earlier ones, and not yet taken
}

// maxVersions is how many orders a queue has at once. It bounds what frequent changes of
// the order of a queue that is held back make it keep.
const maxVersions = 4

// join makes one version of the two that drain last: what they hold is first-in
// first-out from now on, in the order in which it would leave.
func (v *versions) join(a *frame.Arena, now frame.Time) {
	k := len(v.drain) - 2
	one := newPlain()
	for _, d := range v.drain[k:] {
		for d.Len() > 0 {
			one.Enqueue(a, now, d.Dequeue(a, now))
		}
	}
	v.drain = append(v.drain[:k], one)
}

func (v *versions) Enqueue(a *frame.Arena, now frame.Time, r frame.Ref) { v.last.Enqueue(a, now, r) }

func (v *versions) first() Discipline {
	if len(v.drain) > 0 {
		return v.drain[0]
	}
	return v.last
}

func (v *versions) Head() frame.Ref { return v.first().Head() }

func (v *versions) Dequeue(a *frame.Arena, depart frame.Time) frame.Ref {
	r := v.first().Dequeue(a, depart)
	if len(v.drain) > 0 && v.drain[0].Len() == 0 {
		v.drain = v.drain[1:]
	}
	return r
}

func (v *versions) Len() int {
	n := v.last.Len()
	for _, d := range v.drain {
		n += d.Len()
	}
	return n
}

// HeadAt implements Timed: only a version that is Timed itself holds frames back.
func (v *versions) HeadAt() frame.Time {
	if t, ok := v.first().(Timed); ok && v.Len() > 0 {
		return t.HeadAt()
	}
	return v.since
}

// Evict removes a frame of the latest version that has one to evict.
func (v *versions) Evict(a *frame.Arena) frame.Ref {
	if e, ok := v.last.(Evictor); ok && v.last.Len() > 0 {
		return e.Evict(a)
	}
	for i := len(v.drain) - 1; i >= 0; i-- {
		e, ok := v.drain[i].(Evictor)
		if !ok {
			continue
		}
		r := e.Evict(a)
		if v.drain[i].Len() == 0 {
			v.drain = append(v.drain[:i], v.drain[i+1:]...)
		}
		return r
	}
	return frame.Nil
}

// Sheds consults the version whose head is the next to leave.
func (v *versions) Sheds(t frame.Time, m *frame.Meta, left uint64) Verdict {
	if s, ok := v.first().(Shedder); ok {
		return s.Sheds(t, m, left)
	}
	return Pass
}

// Admits consults the version that the frame would join.
func (v *versions) Admits(now frame.Time, m *frame.Meta, frames int, bytes uint64) Verdict {
	if g, ok := v.last.(Gate); ok {
		return g.Admits(now, m, frames, bytes)
	}
	return Pass
}

// PushedOut is that of the version which frames join, and then of the others: those
// drop a frame for one that came to another port.
func (v *versions) PushedOut() frame.Ref {
	if s, ok := v.last.(PushOuter); ok {
		if r := s.PushedOut(); r != frame.Nil {
			return r
		}
	}
	kept := v.drain[:0]
	for _, d := range v.drain {
		if s, ok := d.(PushOuter); ok {
			for r := s.PushedOut(); r != frame.Nil; r = s.PushedOut() {
				v.gone = append(v.gone, r)
			}
		}
		if d.Len() > 0 {
			kept = append(kept, d)
		}
	}
	v.drain = kept
	if n := len(v.gone); n > 0 {
		r := v.gone[n-1]
		v.gone = v.gone[:n-1]
		return r
	}
	return frame.Nil
}

// PushedElsewhere is that of the version which frames join.
func (v *versions) PushedElsewhere() frame.Ref {
	if s, ok := v.last.(Spanner); ok {
		return s.PushedElsewhere()
	}
	return frame.Nil
}

func (v *versions) Each(a *frame.Arena, visit func(frame.Ref) bool) {
	on := true
	each := func(d Discipline) {
		if on {
			d.Each(a, func(r frame.Ref) bool {
				on = visit(r)
				return on
			})
		}
	}
	for _, d := range v.drain {
		each(d)
	}
	each(v.last)
}

// plain is a first-in first-out queue as a version: no frame can be taken out
// of its middle or from its tail.
type plain struct{ frame.FIFO }

func newPlain() *plain {
	p := &plain{}
	p.Init()
	return p
}

func (p *plain) Enqueue(a *frame.Arena, _ frame.Time, r frame.Ref) { p.Push(a, r) }
func (p *plain) Dequeue(a *frame.Arena, _ frame.Time) frame.Ref    { return p.Pop(a) }
func (p *plain) Each(a *frame.Arena, visit func(frame.Ref) bool) {
	r := p.Head()
	for n := p.Len(); n > 0 && visit(r); n-- {
		r = a.Meta(r).QNext
	}
}
