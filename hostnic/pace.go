package hostnic

import "gswitch/frame"

// pacer spaces the departures of a queue pair: the next one is due when the time of the
// last one (a frame, or a segment of several) at the present rate is over, measured from
// start to start. Fractions of a nanosecond are carried while departures are punctual.
type pacer struct {
	on, lazy bool
	kept     bool       // a change of rate affects the next gap only
	perByte  float64    // ns
	rate     float64    // bit/s
	planned  float64    // rate with which at was computed
	at       frame.Time // the next departure
	rem      float64    // and the part of a nanosecond beyond it
	start    frame.Time // of the last departure
	startRem float64
	last     float64 // bytes on the link that it took
}

const (
	longest = 1 << 52 // bounds a gap: 52 days
	// roundOff exceeds the accumulated floating-point error, so that a departure on a
	// whole nanosecond is not taken for one just before it.
	roundOff = 1e-6
)

// set changes the rate to bit/s. A planned departure moves with it: at += last/new -
// last/old, unless it is kept; with lazy pacing, it is examined again when it is due.
func (p *pacer) set(rate float64, whole bool) {
	p.on, p.rate, p.perByte = true, rate, 8e9/max(rate, 1)
	if !p.lazy && !p.kept {
		p.plan(whole)
	}
}

// plan computes the next departure from the last and the present rate.
func (p *pacer) plan(whole bool) {
	p.planned = p.rate
	// The product is rounded before it is added, on every machine.
	x := float64(p.last*p.perByte) + p.startRem
	if whole {
		x -= 2 * roundOff // below the exact time also where that is whole, as on the link
	}
	ns := frame.Time(min(x, longest) + roundOff)
	p.at = p.start + ns
	if p.rem = x - float64(ns); whole {
		p.rem = 0
	}
}

// depart records a departure at t that takes n bytes.
func (p *pacer) depart(t frame.Time, n uint32, whole bool) {
	if p.startRem = 0; t == p.at {
		p.startRem = p.rem
	}
	p.start, p.last = t, float64(n)
	p.plan(whole)
}

// more adds n bytes to the last departure: the segment continues.
func (p *pacer) more(n uint32, whole bool) {
	p.last += float64(n)
	p.plan(whole)
}

// lapsed examines a deferred departure that is due: if the rate has fallen since it was
// planned it is planned again. It reports whether it is still due at t.
func (p *pacer) lapsed(t frame.Time, whole bool) bool {
	if !p.lazy || p.rate >= p.planned {
		return true
	}
	p.plan(whole)
	return p.at <= t
}

// jitter returns the bytes that a departure of q counts for. At line rate there
// is none: frames that follow each other cannot make up for a longer gap.
func (n *NIC) jitter(q *queuePair, bytes uint32) uint32 {
	if n.cfg.PaceJitter == 0 || q.lanes[inTurn].pace.rate >= float64(n.cfg.Rate) {
		return bytes
	}
	span := uint32(float64(bytes) * n.cfg.PaceJitter)
	return bytes - span + n.noise.Uint32n(2*span+1)
}

// adoptCC takes over the window, the rate and the timer that q's congestion control wants.
func (n *NIC) adoptCC(q *queuePair) {
	q.window = q.cc.Window()
	if r := q.cc.Rate(); r != q.lanes[inTurn].pace.rate {
		q.lanes[inTurn].pace.set(min(r, float64(n.cfg.Rate)), n.cfg.WholeNs)
	}
	q.ccDue = q.cc.Timer()
}
