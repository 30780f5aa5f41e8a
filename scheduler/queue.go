package scheduler

import (
	"math/bits"

	"gswitch/frame"
	"gswitch/histogram"
)

// queue is one queue of a port: its frames, what holds them back, and what is
// counted.
type queue struct {
	fifo   frame.FIFO // all frames, or with an order those that the link's instant has not reached
	disc   Discipline // nil: fifo holds the frames
	flows  *FlowFIFO  // disc, if it is one: called without a detour
	bytes  uint64     // sum of Meta.Wire
	frames int
	in     uint64 // frames that ever were in it

	order     Order     // what made disc
	admission Admission // what made admits
	admits    Gate      // nil: the queue admits all frames
	inner     Gate      // disc, if it is one
	shedder   Shedder   // admits or disc, if one of them is one
	pushes    PushOuter // disc, if it is one
	spans     Spanner   // disc, if it is one
	drops     bool      // there is a shedder, or a PushOuter
	meter     *meter    // nil: inversions are not counted
	timed     Timed     // disc, if it is one
	by        RankBy
	link      *RateClock // of the port, and what it adds to a frame: what ranks by slack need
	overhead  uint32
	given     bool // disc was made by the caller (QueueConfig.Discipline)
	late      bool // the caller may be late
	defers    bool // frames enter disc when the link's instant has reached them

	headAt frame.Time // from when on the queue has a frame to send
	gate   frame.Time // not before: pause and rate limit together
	paused frame.Time // not before: pause alone

	slow struct {
		stage uint8      // the queue has the rate of the link divided by 2^stage
		at    frame.Time // when its last frame left, since it was slowed
		bytes uint32     // of that frame
		until frame.Time // not before: this alone
	}

	quantum int64 // bytes a turn is worth, 0 = strict
	deficit int64 // bytes left in this turn

	ecn    marker
	shaper RateClock
	burst  frame.Time // how far the shaper may be ahead

	sent  struct{ bytes, marked uint64 }
	gone  struct{ frames, bytes uint64 } // flushed, evicted, extracted, shed
	count struct{ refused, evicted, shed uint64 }
	peak  uint64 // highest bytes since the last reading
	top   uint64 // highest bytes of earlier readings

	// Integral of bytes over time, in byte ns: area of the frames that left
	// in 128 bits, and of those that wait the sum of bytes times their
	// instant of enqueueing, modulo 2^64.
	areaHi, areaLo uint64
	stamped        uint64

	sojourn histogram.Buckets
}

// push adds r and reports nothing: the buffer has admitted it already.
func (q *queue) push(a *frame.Arena, now frame.Time, r frame.Ref, m *frame.Meta) {
	m.Depart = now
	if q.frames == 0 {
		q.headAt = now
	}
	switch {
	case q.disc == nil:
		q.fifo.Push(a, r)
	case q.flows != nil:
		q.flows.Enqueue(a, now, r)
	default:
		q.pushOrdered(a, now, r, m)
	}
	q.frames++
	q.in++
	q.bytes += uint64(m.Wire)
	q.stamped += uint64(m.Wire) * uint64(now)
	if q.bytes > q.peak {
		q.peak = q.bytes
	}
}

func (q *queue) pushOrdered(a *frame.Arena, now frame.Time, r frame.Ref, m *frame.Meta) {
	q.rank(m)
	if q.defers {
		q.fifo.Push(a, r)
		return
	}
	q.put(a, now, r, m)
	if q.timed != nil {
		q.headAt = q.timed.HeadAt()
	}
}

// put gives a frame to the order.
func (q *queue) put(a *frame.Arena, now frame.Time, r frame.Ref, m *frame.Meta) {
	q.disc.Enqueue(a, now, r)
	if q.meter != nil {
		q.meter.add(m.Rank)
	}
}

func (q *queue) popOrdered(a *frame.Arena, t frame.Time) frame.Ref {
	if q.defers {
		q.enter(a, t)
	}
	r := q.disc.Dequeue(a, t)
	q.rehead(a, t)
	return r
}

// pop removes the head, which leaves at t.
func (q *queue) pop(a *frame.Arena, t frame.Time) (frame.Ref, *frame.Meta) {
	var r frame.Ref
	switch {
	case q.disc == nil:
		r = q.fifo.Pop(a)
		if next := q.fifo.Head(); next != frame.Nil {
			q.headAt = a.Meta(next).Depart
		}
	case q.flows != nil:
		r = q.flows.Dequeue(a, t)
	default:
		r = q.popOrdered(a, t)
	}
	m := a.Meta(r)
	q.deduct(t, m)
	return r, m
}

// deduct takes a frame that was removed at t out of the sums.
func (q *queue) deduct(t frame.Time, m *frame.Meta) {
	w := uint64(m.Wire)
	q.frames--
	q.bytes -= w
	q.stamped -= w * uint64(m.Depart)
	if q.meter != nil {
		q.meter.remove(m.Rank)
	}
	if wait := t - m.Depart; wait > 0 {
		var c uint64
		q.areaLo, c = bits.Add64(q.areaLo, w*uint64(wait), 0)
		q.areaHi += c
	}
}

func (q *queue) head() frame.Ref {
	if q.disc == nil {
		return q.fifo.Head()
	}
	return q.disc.Head()
}

// headBy is head when the frames that were there at t compete.
func (q *queue) headBy(a *frame.Arena, t frame.Time) frame.Ref {
	if q.defers {
		q.enter(a, t)
	}
	return q.head()
}

// QueueStats is what one queue counted. Frames and bytes are without link
// overhead.
type QueueStats struct {
	Frames, Bytes                 uint64 // waiting now
	EnqueuedFrames, EnqueuedBytes uint64
	DequeuedFrames, DequeuedBytes uint64
	RemovedFrames, RemovedBytes   uint64 // flushed, evicted, extracted or shed
	Refused, Evicted, Shed        uint64 // frames that the admission refused, that were pushed out, that were dropped at the head
	Marked                        uint64 // frames chosen for an ECN mark
	Peak                          uint64 // highest Bytes since the previous reading that reset it
	Top                           uint64 // highest Bytes ever
	ByteSeconds                   float64
	PausedUntil                   frame.Time // 0 or past if not paused
}

// Stats returns the counters of a queue at now. With reset, Peak starts anew
// from the present length. The mean length between two readings is the
// difference of ByteSeconds over the time between them.
func (p *Port) Stats(now frame.Time, queue int, reset bool) QueueStats {
	q := &p.q[queue&7]
	s := QueueStats{
		Frames: uint64(q.frames), Bytes: q.bytes,
		EnqueuedFrames: q.in,
		DequeuedFrames: q.in - uint64(q.frames) - q.gone.frames, DequeuedBytes: q.sent.bytes,
		RemovedFrames: q.gone.frames, RemovedBytes: q.gone.bytes,
		Refused: q.count.refused, Evicted: q.count.evicted, Shed: q.count.shed,
		Marked: q.sent.marked, Peak: q.peak, Top: max(q.top, q.peak),
		PausedUntil: q.paused,
	}
	s.EnqueuedBytes = s.Bytes + s.DequeuedBytes + s.RemovedBytes
	waiting := q.bytes*uint64(now) - q.stamped
	s.ByteSeconds = (float64(float64(q.areaHi)*(1<<64)) + float64(q.areaLo) + float64(waiting)) / 1e9
	if reset {
		q.top, q.peak = s.Top, q.bytes
	}
	return s
}

// Sojourn returns the histogram of the time from Enqueue to the scheduled
// departure of the frames of a queue. It stays the port's.
func (p *Port) Sojourn(queue int) *histogram.Buckets { return &p.q[queue&7].sojourn }
