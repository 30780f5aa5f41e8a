package scheduler

import (
	"math/bits"

	"gswitch/frame"
)

// PushOut bounds what waits, and says which frame is dropped for it: every frame is queued
// first, and then the least valuable one is dropped, which may be the one that
// came. Where the port is over its limit that is a frame of the lowest level
// that has one: a higher level never loses for a lower one. Within a level of
// weights the longest queue drops it, and within a queue its order says which
// (Evictor), the last one where it is first-in first-out.
type PushOut struct {
	Port, Queue uint64 // bytes that wait at most at the port and in each queue; 0 = no limit
	Exempt      uint8  // queues that neither count nor drop: lossless ones
}

// On reports whether there is a limit.
func (c *PushOut) On() bool { return c.Port|c.Queue != 0 }

func (c *PushOut) on(queue int) bool { return c.On() && c.Exempt>>queue&1 == 0 }

// Regulated returns the queues for whose frames Admits must be asked before they
// are queued, and PushOut afterwards.
func (p *Port) Regulated() uint8 { return p.regulated }

// PushOut removes the least valuable frame and returns it, if a frame that was
// queued at now made the queue or the port exceed its limit, else Nil. Until it
// does, it is to be called again.
func (p *Port) PushOut(now frame.Time, queue uint8) frame.Ref {
	if q := &p.q[queue&7]; q.pushes != nil {
		// Frames that came by when the link chooses next compete; later ones are judged then.
		q.enter(p.arena, max(p.clock.Free(), now-p.burst))
		if r := p.takePushedOut(now, int(queue&7), q); r != frame.Nil {
			return r
		}
	}
	c := &p.cfg.PushOut
	if !c.on(int(queue & 7)) {
		return frame.Nil
	}
	if i := int(queue & 7); c.Queue != 0 && p.q[i].bytes > c.Queue && p.q[i].bytes > c.Queue+p.owed(now) {
		return p.Evict(now, i)
	}
	if c.Port == 0 {
		return frame.Nil
	}
	bytes := uint64(0)
	for b := p.active &^ c.Exempt; b != 0; b &= b - 1 {
		bytes += p.q[bits.TrailingZeros8(b)].bytes
	}
	if bytes <= c.Port || bytes <= c.Port+p.owed(now) {
		return frame.Nil
	}
	return p.Evict(now, p.poorest(p.active&^c.Exempt, int(queue&7)))
}

// PushedElsewhere returns a frame of another port that was pushed out when a frame was
// queued here, or Nil. Its own port gives it out by PushOut.
func (p *Port) PushedElsewhere(queue uint8) frame.Ref {
	if q := &p.q[queue&7]; q.spans != nil {
		return q.spans.PushedElsewhere()
	}
	return frame.Nil
}

// takePushedOut takes out a frame that the order of a queue pushed out, or returns Nil.
func (p *Port) takePushedOut(now frame.Time, i int, q *queue) frame.Ref {
	r := p.lift(now, i, q, q.pushes.PushedOut())
	if r != frame.Nil {
		q.count.evicted++
	}
	return r
}

// shedPushedOut leaves to TakeShed what the order of a queue pushed out.
func (p *Port) shedPushedOut(now frame.Time, i int, q *queue) {
	for r := p.takePushedOut(now, i, q); r != frame.Nil; r = p.takePushedOut(now, i, q) {
		p.discarded.Push(p.arena, r)
	}
}

// MakeRoom removes the least valuable frame of the levels below that of a queue,
// for a frame of that queue which finds no room in the memory that ports share, and
// returns it, or Nil if none waits there.
func (p *Port) MakeRoom(now frame.Time, queue uint8) frame.Ref {
	c := &p.cfg.PushOut
	own := p.level[queue&7]
	lower := p.active &^ c.Exempt & (own&-own - 1)
	if lower == 0 || !c.on(int(queue&7)) {
		return frame.Nil
	}
	return p.Evict(now, p.poorest(lower, int(queue&7)))
}

// poorest returns the longest queue of the lowest level of those given; of those
// that are as long, the one that just grew.
func (p *Port) poorest(of uint8, grew int) int {
	i := bits.TrailingZeros8(of)
	if p.level[i&7]>>grew&1 != 0 {
		i = grew
	}
	for b := p.level[i&7] & of; b != 0; b &= b - 1 {
		if k := bits.TrailingZeros8(b); p.q[k].bytes > p.q[i&7].bytes {
			i = k
		}
	}
	return i
}

// owed returns the bytes that the link would have sent by now, had the caller
// not been late: frames must not be pushed out for those.
func (p *Port) owed(now frame.Time) uint64 {
	late := min(now-p.clock.Free(), p.burst)
	if late <= 0 || !p.clock.Limited() {
		return 0
	}
	return p.clock.Bytes(late)
}
