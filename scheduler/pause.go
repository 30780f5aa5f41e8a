package scheduler

import "github.com/gswitch/gswitch/frame"

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

// setGate joins pause and rate limit. The limit is a virtual scheduling
// algorithm (ITU-T I.371 annex A): the shaper's clock is the theoretical
// arrival time, the burst its tolerance.
func (q *queue) setGate() {
	q.gate = q.paused
	if q.shaper.Limited() {
		q.gate = max(q.gate, q.shaper.Free()-q.burst)
	}
}
