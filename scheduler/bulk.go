package scheduler

import (
	"math/bits"

	"gswitch/frame"
)

// Frames that nothing holds back pass a port in vectors. What is counted of them
// is worked out once, with the result that one by one would have.

// Bulk returns the queues whose frames may be queued by EnqueueAll: first-in
// first-out, without an admission, and without a count at each frame of what waits.
func (p *Port) Bulk() uint8 {
	if p.drain != nil {
		return 0
	}
	return p.bulk
}

// EnqueueAll is Enqueue for frames of one queue, which Bulk names.
func (p *Port) EnqueueAll(now frame.Time, v []frame.Ref) {
	i := p.arena.Meta(v[0]).Queue & 7
	q := &p.q[i]
	var n uint64
	for _, r := range v {
		m := p.arena.Meta(r)
		m.Depart = now
		n += uint64(m.Wire)
	}
	if q.frames == 0 {
		q.headAt = now
	}
	q.fifo.PushAll(p.arena, v)
	p.active |= 1 << i
	q.frames += len(v)
	q.in += uint64(len(v))
	q.bytes += n
	q.stamped += n * uint64(now)
	q.peak = max(q.peak, q.bytes)
}

// swift returns the highest queue with frames if taking them needs no look at
// each of them: the link has no rate, the queue none either, no other queue has
// a turn beside it, and nothing is marked or measured frame by frame.
func (p *Port) swift(now frame.Time) *queue {
	i := bits.Len8(p.active) - 1
	q := &p.q[i&7]
	switch {
	case p.bulk>>i&1 == 0, p.drain != nil, q.shaper.Limited(), q.slow.stage != 0, max(q.headAt, q.gate) > now:
		return nil
	case q.quantum != 0 && p.active&p.level[i&7] != 1<<i:
		return nil
	case q.ecn.on && (q.ecn.pi != nil || q.bytes > uint64(q.ecn.kmin)): // below kmin nothing is marked
		return nil
	}
	if q.quantum != 0 {
		p.begin(i, q)
	}
	return q
}

// begin gives queue i the turn of its level, in which it is the only one with
// frames: as round does.
func (p *Port) begin(i int, q *queue) {
	lead := bits.Len8(p.level[i&7]) - 1
	if last := p.turn[lead&7]; int(last) != i {
		p.q[last&7].deficit = 0
		p.turn[lead&7] = uint8(i)
		q.deficit += q.quantum
	}
}

// takeSwift is take for as many frames as there are and fit into out.
func (p *Port) takeSwift(now frame.Time, q *queue, out []frame.Ref) int {
	var sum uint64
	n, sent, overhead, bytes, frames := 0, p.sent, uint64(p.overhead), q.bytes, q.frames
	since, alike := frame.Time(0), uint64(0) // frames that were queued at one instant
	quantum, deficit := q.quantum, q.deficit
	for n < len(out) && frames > 0 {
		r := q.fifo.Pop(p.arena)
		m := p.arena.Meta(r)
		w := uint64(m.Wire)
		if m.Depart != since {
			q.waited(now-since, sum, alike)
			since, sum, alike = m.Depart, 0, 0
		}
		frames--
		alike++
		bytes -= w
		sum += w
		q.stamped -= w * uint64(since)
		m.Depart, m.Span = now, 0
		m.QBytes, m.QFrames, m.TxBytes = uint32(bytes), uint32(frames), sent
		sent += w + overhead
		out[n] = r
		n++
		if quantum != 0 {
			for deficit < int64(w+overhead) {
				deficit += quantum
			}
			deficit -= int64(w + overhead)
		}
	}
	q.deficit = deficit
	q.waited(now-since, sum, alike)
	q.sent.bytes += q.bytes - bytes
	p.sent, q.bytes, q.frames = sent, bytes, frames
	if next := q.fifo.Head(); next != frame.Nil {
		q.headAt = p.arena.Meta(next).Depart
	} else {
		p.active &^= 1 << (bits.Len8(p.active) - 1)
		q.deficit = 0
	}
	return n
}

// waited notes that n frames of so many bytes waited for a time.
func (q *queue) waited(t frame.Time, bytes, n uint64) {
	if n == 0 {
		return
	}
	q.sojourn.ObserveAll(t, n)
	if t > 0 {
		hi, lo := bits.Mul64(bytes, uint64(t))
		var c uint64
		q.areaLo, c = bits.Add64(q.areaLo, lo, 0)
		q.areaHi += hi + c
	}
}
