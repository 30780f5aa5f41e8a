package scheduler

import "gswitch/frame"

// Pause holds a queue back until the given instant, frame.Never for good. It
// takes effect before the next frame. A later call replaces it.
func (p *Port) Pause(queue int, until frame.Time) {
	q := &p.q[queue&7]
	q.paused = until
	q.setGate()
}

// Unpause lets a queue send again from now on.
func (p *Port) Unpause(now frame.Time, queue int) {
	q := &p.q[queue&7]
	if q.paused > now {
		q.paused = now
		q.setGate()
	}
}

// Slow lets a queue send at the rate of the link divided by 2^stage, 0 for all
// of it, from the next frame on: what is left of the gap behind the last one is
// of the new rate. It needs a link with a rate. stage is at most 15.
func (p *Port) Slow(queue int, stage uint8) {
	q := &p.q[queue&7]
	if q.slow.stage == stage {
		return
	}
	q.slow.stage = stage & 15
	p.spread(q)
}

// spread puts the end of the gap behind the last frame of a queue that is slowed.
func (p *Port) spread(q *queue) {
	q.slow.until = 0
	if q.slow.stage != 0 && q.slow.bytes != 0 {
		q.slow.until = q.slow.at + p.clock.Slowed(q.slow.bytes, q.slow.stage)
	}
	q.setGate()
}

// Paused returns the queues that are paused at now, one bit each.
func (p *Port) Paused(now frame.Time) uint8 {
	var m uint8
	for i := range p.q {
		if p.q[i].paused > now {
			m |= 1 << i
		}
	}
	return m
}

// setGate combines pause and rate limit. The limit is a virtual scheduling
// algorithm (ITU-T I.371 annex A): the shaper's clock is the theoretical
// arrival time, the burst its tolerance.
func (q *queue) setGate() {
	q.gate = max(q.paused, q.slow.until)
	if q.shaper.Limited() {
		q.gate = max(q.gate, q.shaper.Free()-q.burst)
	}
}
