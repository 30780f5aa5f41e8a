package scheduler

import "gswitch/frame"

// Order says in which order the frames of a queue leave. It is a comparable
// value: a queue that is configured again with an equal one keeps its frames,
// its state and its counters.
type Order interface {
	// New returns an empty queue.
	New(Env) Discipline
	// String names the order for listings.
	String() string
}

// Dropper is an Order that may drop frames by itself: not one for queues of lossless
// classes.
type Dropper interface {
	Drops() bool
}

// Drops reports whether an order may drop frames by itself.
func Drops(o Order) bool {
	d, ok := o.(Dropper)
	return ok && d.Drops()
}

// Checked is an Order or an Admission whose value may be one that it cannot be made
// from.
type Checked interface {
	// Check reports what is wrong with it. New is not called then.
	Check() error
}

func checked(v any) error {
	if c, ok := v.(Checked); ok {
		return c.Check()
	}
	return nil
}

// Env is what an order or admission may know of the queue that it is for.
type Env struct {
	Seed uint64 // of whatever it chooses at random
	Rate uint64 // of the link in bit/s, 0 = unlimited; of the time when it was made

	Overhead uint32 // bytes that the link adds to a frame

	Queue  int     // its number at its port, from 0
	Shared *Shared // with other ports; nil: there are none
}

// RankBy says what makes the rank of a frame that joins a queue: the least
// rank is the most valuable.
type RankBy uint8

const (
	RankKept       RankBy = iota // the value that was put into Meta.Rank when the frame was queued
	RankDSCP                     // the highest code point first, as of class selectors (RFC 2474)
	RankDSCPRising               // the lowest code point first, for hosts that number levels from 0
	RankClass                    // the highest traffic class first
	RankSize                     // the shortest frame first
	RankSlack                    // the least slack first: Meta.Rank is what is left of it at Meta.Arrival
)

// rank gives a frame that joins a queue its rank.
//
// With no slack left the last bit of a frame would be sent at the arrival of the
// frame and its time on the link: what is left beyond, less the wait, orders frames
// as that instant does, which stays while they wait (Mittal et al., "Universal
// Packet Scheduling", NSDI 2016, section 2.1).
func (q *queue) rank(m *frame.Meta) {
	switch q.by {
	case RankKept:
	case RankSlack:
		m.Rank += int64(m.Arrival + q.link.Span(m.Wire+q.overhead))
	default:
		m.Rank = q.by.of(m)
	}
}

func (b RankBy) of(m *frame.Meta) int64 {
	switch b {
	case RankDSCP:
		return 63 - int64(m.DSCP)
	case RankDSCPRising:
		return int64(m.DSCP)
	case RankClass:
		return 7 - int64(m.Class)
	case RankSize:
		return int64(m.Wire)
	}
	return m.Rank
}

// reorder gives a queue the order of its configuration. Frames that wait leave
// in the order that they were queued under, before those that come now.
func (p *Port) reorder(now frame.Time, i int, q *queue, c *QueueConfig) {
	order := c.Order
	if order == nil && (p.cfg.PushOut.on(i) || c.Inversions) {
		order = FIFO{} // whose tail can be taken out, and which is looked at
	}
	switch {
	case c.Discipline != nil || q.given:
		q.given = c.Discipline != nil
		if q.disc != c.Discipline {
			q.order = nil
			p.setDiscipline(now, q, c.Discipline)
		}
		if q.given || order == nil {
			break
		}
		fallthrough
	case order != q.order || c.Rank != q.by && order != nil:
		if q.pushes != nil {
			q.enter(p.arena, now)
			p.shedPushedOut(now, i, q)
		}
		q.change(p.arena, now, order, p.env(i))
	}
	q.by = c.Rank
	if late := p.burst > 0; late != q.late {
		if q.disc != nil {
			q.enter(p.arena, now)
		}
		q.late = late
		q.install(q.disc)
	}
}

// note keeps in bitmaps of the port what a queue requires of its caller.
func (p *Port) note(i int, q *queue) {
	bit := uint8(1) << i
	p.regulated &^= bit
	p.timed &^= bit
	if q.admits != nil || q.inner != nil || q.pushes != nil || p.cfg.PushOut.on(i) {
		p.regulated |= bit
	}
	if q.timed != nil {
		p.timed |= bit
	}
	p.bulk &^= bit
	if q.disc == nil && p.regulated&bit == 0 {
		p.bulk |= bit
	}
}

func (p *Port) env(i int) Env {
	return Env{Seed: p.seed ^ uint64(i+1)<<40, Rate: p.cfg.Rate, Overhead: p.overhead, Queue: i, Shared: p.cfg.Shared}
}

// change gives a queue another order.
func (q *queue) change(a *frame.Arena, now frame.Time, o Order, e Env) {
	var d Discipline
	if o != nil {
		d = o.New(e)
	}
	if q.disc != nil {
		q.enter(a, now)
	}
	q.order = o
	if q.frames == 0 {
		q.install(d)
		return
	}
	v, _ := q.disc.(*versions)
	switch {
	case v == nil && q.disc == nil:
		v = &versions{drain: []Discipline{&plain{q.fifo}}}
		q.fifo.Init()
	case v == nil:
		v = &versions{drain: []Discipline{q.disc}}
	case v.last.Len() > 0:
		if v.drain = append(v.drain, v.last); len(v.drain) == maxVersions {
			v.join(a, now)
		}
	}
	if v.last = d; d == nil {
		v.last = newPlain()
	}
	v.since = now
	q.install(v)
	q.headAt = v.HeadAt()
}

// install makes d what holds the frames. fifo holds none then that d should.
//
// A gate has decided when a frame came, with what was there then, and a queue that
// holds frames back reports itself from when on: those defer nothing.
func (q *queue) install(d Discipline) {
	q.disc = d
	q.timed, _ = d.(Timed)
	q.shedder, _ = d.(Shedder)
	q.inner, _ = d.(Gate)
	q.pushes, _ = d.(PushOuter)
	q.spans, _ = d.(Spanner)
	if s, ok := q.admits.(Shedder); ok {
		q.shedder = s
	}
	q.drops = q.shedder != nil || q.pushes != nil
	q.defers = q.late && d != nil && !q.given && q.timed == nil && q.inner == nil
}

// orderDrained ends the change of an order when the last frame of the one before
// has left.
func (q *queue) orderDrained(a *frame.Arena, v *versions) {
	q.headAt = v.since
	if h := v.last.Head(); h != frame.Nil {
		q.headAt = max(v.since, a.Meta(h).Depart)
	}
	if l, ok := v.last.(*plain); ok {
		q.fifo = l.FIFO
		q.install(nil)
		return
	}
	q.install(v.last)
	if q.timed != nil {
		q.headAt = q.timed.HeadAt()
	}
}

// enter puts the frames that were there at t into the order.
func (q *queue) enter(a *frame.Arena, t frame.Time) {
	for r := q.fifo.Head(); r != frame.Nil; r = q.fifo.Head() {
		at := a.Meta(r).Depart
		if at > t {
			return
		}
		q.fifo.Pop(a)
		q.put(a, at, r, a.Meta(r))
	}
}

// rehead finds out from when on an ordered queue has a frame to send, after one
// left it at t.
func (q *queue) rehead(a *frame.Arena, t frame.Time) {
	if v, ok := q.disc.(*versions); ok && len(v.drain) == 0 && len(v.gone) == 0 {
		q.orderDrained(a, v)
	}
	switch r := q.fifo.Head(); {
	case q.disc == nil:
		if r != frame.Nil {
			q.headAt = a.Meta(r).Depart
		}
	case q.timed != nil:
		q.headAt = q.timed.HeadAt()
	case r != frame.Nil && q.disc.Len() == 0:
		q.headAt = a.Meta(r).Depart
	}
}
