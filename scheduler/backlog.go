package scheduler

import (
	"math/bits"

	"gswitch/frame"
)

// Backlog returns the frames and bytes that wait in all queues, control
// frames not counted.
func (p *Port) Backlog() (frames int, bytes uint64) {
	for b := p.active; b != 0; b &= b - 1 {
		q := &p.q[bits.TrailingZeros8(b)]
		frames += q.frames
		bytes += q.bytes
	}
	return frames, bytes
}

// Exceeds reports whether more than n frames wait in the queues, or some are expected.
func (p *Port) Exceeds(n int) bool {
	for b := p.active; b != 0; b &= b - 1 {
		n -= p.q[bits.TrailingZeros8(b)].frames
	}
	if n < 0 {
		return true
	}
	for _, e := range p.expected {
		if e != 0 {
			return true
		}
	}
	return false
}

// WaitsSince reports whether a queue has had a frame to send since before t: its first
// one, or with an order any.
func (p *Port) WaitsSince(t frame.Time) bool {
	for b := p.active; b != 0; b &= b - 1 {
		if p.q[bits.TrailingZeros8(b)].headAt < t {
			return true
		}
	}
	return false
}

// Empty reports whether nothing waits, control frames included.
func (p *Port) Empty() bool { return p.active == 0 && p.control.Len() == 0 }

// Waiting returns the queues that hold a frame, one bit each.
func (p *Port) Waiting() uint8 { return p.active }

// Quickens reports whether a frame that joins a queue now may be able to leave
// before those that wait there.
func (p *Port) Quickens(queue uint8) bool { return (p.active&^p.timed)>>(queue&7)&1 == 0 }

// QueueLen returns the frames and bytes that wait in a queue.
func (p *Port) QueueLen(queue int) (frames int, bytes uint64) {
	q := &p.q[queue&7]
	return q.frames, q.bytes
}

// Ahead returns the bytes that wait in a queue and how many frames ever were in
// it: the place of the last one.
func (p *Port) Ahead(queue uint8) (bytes, frames uint64) {
	q := &p.q[queue&7]
	return q.bytes, q.in
}

// Left returns how many frames ever left a queue, sent or not. Where frames do
// not overtake, that is the place of the last of them.
func (p *Port) Left(queue int) uint64 {
	q := &p.q[queue&7]
	return q.in - uint64(q.frames)
}

// InOrder reports whether frames of a queue leave in the order in which they
// came.
func (p *Port) InOrder(queue int) bool { return p.q[queue&7].disc == nil }

// DrainBytes returns the bytes that wait in the given queue and all queues
// above it: what a frame that arrives for it now must wait for under strict
// priority.
func (p *Port) DrainBytes(queue int) uint64 {
	var n uint64
	for i := queue & 7; i < NumQueues; i++ {
		n += p.q[i].bytes
	}
	return n
}

// Sent returns the bytes that left by the port, with link overhead.
func (p *Port) Sent() uint64 { return p.sent }

// Controls returns how many control frames left by the port.
func (p *Port) Controls() uint64 { return p.controls }

// Flush removes frames without sending them, control frames first, writes
// them to out and returns how many: 0 when the port is empty.
func (p *Port) Flush(now frame.Time, out []frame.Ref) int {
	n := 0
	for n < len(out) && p.control.Len() > 0 {
		out[n] = p.control.Pop(p.arena)
		n++
	}
	for b := p.active; b != 0 && n < len(out); b &= b - 1 {
		n += p.FlushQueue(now, bits.TrailingZeros8(b), out[n:])
	}
	return n
}

// FlushQueue is Flush for one queue.
func (p *Port) FlushQueue(now frame.Time, queue int, out []frame.Ref) int {
	i := queue & 7
	q := &p.q[i]
	n := 0
	for n < len(out) && q.frames > 0 {
		if q.pushes != nil {
			// Those that came a moment ago enter the order, which may push out others.
			q.enter(p.arena, now)
			if r := p.lift(now, i, q, q.pushes.PushedOut()); r != frame.Nil {
				out[n] = r
				n++
				continue
			}
		}
		r, m := q.pop(p.arena, now)
		p.removed(i, q, m)
		out[n] = r
		n++
	}
	return n
}

// Evict removes the least valuable frame of a queue for the sake of another
// one, or returns Nil: if the queue is empty or its discipline is no Evictor.
func (p *Port) Evict(now frame.Time, queue int) frame.Ref {
	i := queue & 7
	q := &p.q[i]
	e, ok := q.disc.(Evictor)
	if !ok || q.frames == 0 {
		return frame.Nil
	}
	q.enter(p.arena, now)
	r := p.lift(now, i, q, e.Evict(p.arena))
	if r != frame.Nil {
		q.count.evicted++
	}
	return r
}

// ExtractFirst removes the first frame of a flow from a queue, wherever it
// stands, or returns Nil: if there is none or the queue's discipline is no
// Extractor.
func (p *Port) ExtractFirst(now frame.Time, queue int, hash uint32, same func(frame.Ref) bool) frame.Ref {
	i := queue & 7
	q := &p.q[i]
	e, ok := q.disc.(Extractor)
	if !ok || q.frames == 0 {
		return frame.Nil
	}
	return p.lift(now, i, q, e.ExtractFirst(p.arena, hash, same))
}

func (p *Port) lift(now frame.Time, i int, q *queue, r frame.Ref) frame.Ref {
	if r != frame.Nil {
		m := p.arena.Meta(r)
		q.deduct(now, m)
		p.removed(i, q, m)
		q.rehead(p.arena, now)
	}
	return r
}

func (p *Port) removed(i int, q *queue, m *frame.Meta) {
	q.gone.frames++
	q.gone.bytes += uint64(m.Wire)
	if p.drain != nil {
		p.drain.Remove(i, m.Wire)
	}
	if q.frames == 0 {
		p.active &^= 1 << i
		q.deficit = 0
	}
}

// Each calls visit with the frames that wait in a queue until it returns
// false, in order where the queue is first-in first-out.
func (p *Port) Each(queue int, visit func(frame.Ref) bool) {
	q := &p.q[queue&7]
	on := true
	if q.disc != nil {
		q.disc.Each(p.arena, func(r frame.Ref) bool {
			on = visit(r)
			return on
		})
	}
	r := q.fifo.Head()
	for n := q.fifo.Len(); n > 0 && on && visit(r); n-- {
		r = p.arena.Meta(r).QNext
	}
}
