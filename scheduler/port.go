package scheduler

import (
	"math/bits"

	"gswitch/frame"
)

// Port is the egress side of a port: eight queues, the choice among them and
// the clock of the link.
type Port struct {
	arena     *frame.Arena
	clock     RateClock
	burst     frame.Time
	overhead  uint32
	active    uint8            // queues that hold a frame
	regulated uint8            // see Regulated
	timed     uint8            // queues that may hold their head back
	bulk      uint8            // first-in first-out, without an admission
	level     [NumQueues]uint8 // the queues of the level that a queue belongs to
	turn      [NumQueues]uint8 // whose turn it is in the level whose highest queue this is
	sent      uint64           // bytes on the wire, with overhead
	rng       frame.Rand
	seed      uint64
	control   frame.FIFO
	discarded frame.FIFO        // dropped by Dequeue, for TakeShed
	controls  uint64            // control frames sent
	expected  [NumQueues]uint64 // bytes that Expect announced
	drain     *Drain            // nil: no paths are chosen by what waits here
	q         [NumQueues]queue
	cfg       PortConfig
}

// NewPort returns a port without frames. The seed decides which frames ECN
// marks where it marks by chance.
func NewPort(a *frame.Arena, cfg PortConfig, seed uint64) *Port {
	p := &Port{arena: a, rng: frame.NewRand(seed), seed: seed}
	p.control.Init()
	p.discarded.Init()
	for i := range p.q {
		p.q[i].fifo.Init()
	}
	p.Configure(0, cfg)
	return p
}

// Config returns the configuration in force.
func (p *Port) Config() PortConfig { return p.cfg }

// Configure changes the configuration. Frames stay queued and leave in the
// order that they were queued under, and pauses hold. Where a Discipline comes
// or goes, they are moved.
func (p *Port) Configure(now frame.Time, cfg PortConfig) {
	if !p.clock.Limited() || cfg.Rate != p.cfg.Rate {
		p.clock.SetRate(cfg.Rate)
	}
	p.clock.WholeNs(cfg.WholeNs)
	p.burst, p.overhead = max(cfg.Burst, 0), cfg.Overhead
	p.cfg = cfg
	p.setLevels()
	for i := range p.q {
		q, c := &p.q[i], &cfg.Queues[i]
		q.link, q.overhead = &p.clock, p.overhead
		q.ecn = newMarker(c.ECN, &q.ecn)
		q.shaper.SetRate(c.MaxRate)
		q.burst = q.shaper.Span(min(c.Burst, MaxBurst))
		q.setGate()
		p.setAdmission(now, i, q, c.Admission)
		p.reorder(now, i, q, c)
		p.note(i, q)
		q.measure(p.arena, c.Inversions && !q.given)
	}
}

// minQuantum is the turn of the least weight in a level, in bytes: a standard
// full-size frame with its overhead, so that a turn is enough for a frame.
const minQuantum = 1538

func (p *Port) setLevels() {
	for i := NumQueues - 1; i >= 0; {
		lo, least := i, p.weight(i)
		for least != 0 && lo > 0 && p.weight(lo-1) != 0 {
			lo--
			least = min(least, p.weight(lo))
		}
		mask := uint8(1<<(i+1) - 1<<lo)
		p.turn[i] = uint8(i)
		for k := lo; k <= i; k++ {
			q := &p.q[k]
			p.level[k], q.quantum, q.deficit = mask, 0, 0
			if least != 0 {
				q.quantum = int64(p.weight(k)) * minQuantum / int64(least)
			}
		}
		i = lo - 1
	}
}

func (p *Port) weight(i int) uint32 { return min(p.cfg.Queues[i].Weight, MaxWeight) }

// setDiscipline moves the waiting frames of q to d.
func (p *Port) setDiscipline(now frame.Time, q *queue, d Discipline) {
	if q.disc != nil {
		q.enter(p.arena, now)
	}
	old := q.disc
	q.install(d)
	q.flows, _ = d.(*FlowFIFO)
	if q.frames == 0 {
		return
	}
	fifo := q.fifo
	q.fifo.Init()
	for n := q.frames; n > 0; n-- {
		var r frame.Ref
		if old == nil {
			r = fifo.Pop(p.arena)
		} else {
			r = old.Dequeue(p.arena, now)
		}
		if d == nil {
			q.fifo.Push(p.arena, r)
		} else {
			d.Enqueue(p.arena, now, r)
		}
	}
	q.headAt = now
}

// Enqueue appends r to the queue Meta.Queue. Until r leaves, Meta.Depart is
// the instant of enqueueing.
func (p *Port) Enqueue(now frame.Time, r frame.Ref) {
	m := p.arena.Meta(r)
	i := m.Queue & 7
	p.active |= 1 << i
	p.q[i].push(p.arena, now, r, m)
	if p.drain != nil {
		p.drain.Add(int(i), m.Wire)
	}
}

// EnqueueControl appends a link-local control frame (PFC, pause). Such frames
// leave first and at once, whatever is paused and however busy the link is;
// their time is charged to it.
func (p *Port) EnqueueControl(r frame.Ref) { p.control.Push(p.arena, r) }

// Dequeue writes the frames that may leave now to out, in order of their
// scheduled departure, and returns how many. Of each it sets Meta.Depart (the
// start on the emulated link, now if that has no rate), Span (how long it is
// on it), QBytes and QFrames (left behind in the queue), TxBytes (bytes of the port before it, with link
// overhead) and, where ECN decides so, the flag frame.MarkCE.
func (p *Port) Dequeue(now frame.Time, out []frame.Ref) int {
	limited := p.clock.Limited()
	if limited {
		p.clock.Idle(now - p.burst)
	}
	n := 0
	for n < len(out) && p.control.Len() > 0 {
		out[n] = p.takeControl(now)
		n++
	}
	for !limited && n < len(out) && p.active != 0 {
		q := p.swift(now)
		if q == nil {
			break
		}
		n += p.takeSwift(now, q, out[n:])
	}
	if p.active == 0 {
		return n
	}
	t := now
	var ready, shut, late uint8 // queues that can send at t, not before now, not before lateAt
	lateAt := frame.Never
	for n < len(out) {
		if limited {
			if t = p.clock.free; t > now {
				break
			}
		}
		if t >= lateAt {
			late, lateAt = 0, frame.Never
		}
		// What was ready stays so while t grows; only the queue that was
		// served last has a new head to look at.
		for b := p.active &^ (ready | shut | late); b != 0; b &= b - 1 {
			q := &p.q[bits.TrailingZeros8(b)]
			switch at := max(q.headAt, q.gate); {
			case at <= t:
				ready |= b & -b
			case at > now:
				shut |= b & -b
			default:
				late |= b & -b
				lateAt = min(lateAt, at)
			}
		}
		if ready == 0 {
			if late == 0 {
				break
			}
			p.clock.Idle(lateAt)
			continue
		}
		i := p.next(t, ready)
		if q := &p.q[i&7]; q.drops && !p.shed(t, i, q) {
			ready &^= 1 << i
			continue
		}
		out[n] = p.take(t, i, &p.q[i&7])
		ready &^= 1 << i
		n++
	}
	return n
}

// next chooses among the ready queues.
func (p *Port) next(t frame.Time, ready uint8) int {
	i := bits.Len8(ready) - 1
	if p.q[i&7].quantum == 0 {
		return i
	}
	return p.round(t, p.level[i&7], ready&p.level[i&7])
}

// round continues the deficit round robin of a level. A queue that is not
// ready in its own turn loses what is left of it, like one that ran empty.
func (p *Port) round(t frame.Time, level, ready uint8) int {
	lead := bits.Len8(level) - 1
	i := int(p.turn[lead&7])
	for {
		q := &p.q[i&7]
		if ready>>i&1 == 0 {
			q.deficit = 0
		} else if r := q.headBy(p.arena, t); r == frame.Nil || q.deficit >= int64(p.arena.Meta(r).Wire+p.overhead) {
			return i
		}
		if below := ready & (1<<i - 1); below != 0 {
			i = bits.Len8(below) - 1
		} else {
			i = bits.Len8(ready) - 1
		}
		p.turn[lead&7] = uint8(i)
		p.q[i&7].deficit += p.q[i&7].quantum
	}
}

// take removes the head of queue i, to leave at t.
func (p *Port) take(t frame.Time, i int, q *queue) frame.Ref {
	since := max(q.headAt, q.paused)
	r, m := q.pop(p.arena, t)
	if p.drain != nil {
		p.drain.Remove(i, m.Wire)
	}
	if q.meter != nil {
		q.meter.served(m.Rank)
	}
	enqueued := m.Depart
	n := m.Wire + p.overhead
	m.Depart = t
	m.QBytes, m.QFrames = uint32(q.bytes), uint32(q.frames)
	m.TxBytes = p.sent
	p.sent += uint64(n)
	if q.ecn.on && m.Flags&frame.IsECT != 0 && q.ecn.marks(t, q.bytes, &p.rng) {
		m.Flags |= frame.MarkCE
		q.sent.marked++
	}
	q.sent.bytes += uint64(m.Wire)
	q.sojourn.Observe(t - enqueued)
	if q.quantum != 0 {
		q.deficit -= int64(n)
	}
	p.clock.Charge(n)
	m.Span = 0
	if p.clock.Limited() {
		m.Span = uint32(p.clock.free - t)
	}
	if q.shaper.Limited() {
		rest := t
		if !p.clock.Limited() { // t is when we were called: lateness is no idle time
			rest = max(since, t-p.burst)
		}
		q.shaper.Idle(rest)
		q.shaper.Charge(n)
		q.setGate()
	}
	if q.slow.stage != 0 {
		q.slow.at, q.slow.bytes = t, n
		p.spread(q)
	}
	if q.frames == 0 {
		p.active &^= 1 << i
		q.deficit = 0
	} else if q.headAt > t {
		q.deficit = 0 // at the link's instant the queue was empty
	}
	return r
}

// takeControl removes the oldest control frame.
func (p *Port) takeControl(now frame.Time) frame.Ref {
	r := p.control.Pop(p.arena)
	m := p.arena.Meta(r)
	n := m.Wire + p.overhead
	m.Depart = max(now, p.clock.Free())
	m.QBytes, m.QFrames, m.TxBytes = 0, 0, p.sent
	p.sent += uint64(n)
	p.controls++
	p.clock.Charge(n)
	m.Span = uint32(p.clock.Span(n))
	return r
}

// Wake returns the next instant at which Dequeue would return a frame if
// nothing changes: now if it would now, Never if nothing waits.
func (p *Port) Wake(now frame.Time) frame.Time {
	if p.control.Len() > 0 {
		return now
	}
	at := frame.Never
	for b := p.active; b != 0; b &= b - 1 {
		q := &p.q[bits.TrailingZeros8(b)]
		at = min(at, max(q.headAt, q.gate))
	}
	if at == frame.Never {
		return at
	}
	return max(at, p.clock.Free(), now)
}
