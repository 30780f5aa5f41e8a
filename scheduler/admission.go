package scheduler

import "gswitch/frame"

// Verdict is what an admission decides on a frame.
type Verdict uint8

const (
	Pass Verdict = iota
	Mark         // congestion experienced, where the frame can be marked (RFC 3168); else it is dropped
	Drop
)

// Admission decides which frames a queue drops before it is full. Like
// an Order it is a comparable value.
type Admission interface {
	// New returns what decides for one queue: a Gate, that may be a Shedder
	// besides.
	New(Env) Gate
	// String names it for listings.
	String() string
}

// Gate decides for frames that arrive. A Discipline may be one itself.
type Gate interface {
	// Admits decides at now for a frame that would join so many frames and
	// bytes.
	Admits(now frame.Time, m *frame.Meta, frames int, bytes uint64) Verdict
}

// Shedder decides for frames that leave. A Discipline may be one itself.
type Shedder interface {
	// Sheds decides for the frame that would leave at t. m.Depart is when it
	// was queued, left the bytes that wait besides it.
	Sheds(t frame.Time, m *frame.Meta, left uint64) Verdict
}

// setAdmission gives a queue the admission of its configuration.
func (p *Port) setAdmission(now frame.Time, i int, q *queue, c Admission) {
	if q.admission == c {
		return
	}
	q.admission, q.admits = c, nil
	if c != nil {
		q.admits = c.New(p.env(i))
	}
	if q.disc != nil {
		q.enter(p.arena, now)
	}
	q.install(q.disc)
}

// Admits consults the admission of its queue for a frame that is about to be
// queued at now, and reports false if it must be dropped.
func (p *Port) Admits(now frame.Time, m *frame.Meta) bool {
	q := &p.q[m.Queue&7]
	slack := m.Rank
	q.rank(m)
	for _, g := range [2]Gate{q.admits, q.inner} {
		if g != nil && !q.passes(g.Admits(now, m, q.frames, q.bytes), m) {
			q.count.refused++
			return false
		}
	}
	if q.by == RankSlack { // the queue judges again
		m.Rank = slack
	}
	return true
}

// passes notes what a verdict requires, and reports false if the frame is dropped.
func (q *queue) passes(v Verdict, m *frame.Meta) bool {
	if v == Mark && m.Flags&frame.IsECT != 0 {
		if m.Flags&frame.MarkCE == 0 {
			m.Flags |= frame.MarkCE
			q.sent.marked++
		}
		return true
	}
	return v == Pass
}

// shed drops what its order evicts, and frames from the head of a queue until one
// may leave at t, and reports false if there is none then.
func (p *Port) shed(t frame.Time, i int, q *queue) bool {
	if q.pushes != nil {
		q.enter(p.arena, t)
		p.shedPushedOut(t, i, q)
		if q.shedder == nil || q.frames == 0 {
			return q.frames > 0 && q.headAt <= t
		}
	}
	for q.headAt <= t {
		if q.defers {
			q.enter(p.arena, t)
		}
		m := p.arena.Meta(q.head())
		if m.Flags&frame.Lossless != 0 || q.passes(q.shedder.Sheds(t, m, q.bytes-uint64(m.Wire)), m) {
			return true
		}
		r, m := q.pop(p.arena, t)
		q.count.shed++
		p.removed(i, q, m)
		p.discarded.Push(p.arena, r)
		if q.frames == 0 {
			break
		}
	}
	return false
}

// TakeShed writes frames that Dequeue dropped to out and returns how many: they
// left their queues, and are the caller's.
func (p *Port) TakeShed(out []frame.Ref) int {
	n := 0
	for n < len(out) && p.discarded.Len() > 0 {
		out[n] = p.discarded.Pop(p.arena)
		n++
	}
	return n
}

// HasShed reports whether TakeShed has a frame to return.
func (p *Port) HasShed() bool { return p.discarded.Len() > 0 }
