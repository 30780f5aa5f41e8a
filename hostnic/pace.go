package hostnic

import (
	"gswitch/cc"
	"gswitch/frame"
)

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
	if n.cfg.PaceJitter == 0 || q.pace.rate >= float64(n.cfg.Rate) {
		return bytes
	}
	span := uint32(float64(bytes) * n.cfg.PaceJitter)
	return bytes - span + n.noise.Uint32n(2*span+1)
}

// adopt reads the decision of q's congestion control.
func (n *NIC) adopt(q *queuePair) {
	q.window = q.cc.Window()
	if r := q.cc.Rate(); r != q.pace.rate {
		q.pace.set(min(r, float64(n.cfg.Rate)), n.cfg.WholeNs)
	}
	q.ccDue = q.cc.Timer()
}

// segments are bursts of several frames that are paced and timed as one.
type segments struct {
	size uint32 // payload bytes, 0: frames are paced one by one
	// perByte is the ns that a byte takes at the rate of a segment's frames, 0
	// if they follow each other; the next may leave at next then.
	perByte float64
	next    frame.Time
	got     uint32 // of the one under way
	open    bool
	due     frame.Time // when the one under way could have begun, unset before
	wire    uint32     // bytes of it on the wire
	rtx     bool       // a frame of it was sent again

	ring    []segment // sent, not acknowledged
	head, n uint32
	pushed  uint64 // segments so far
	clean   uint64 // those before give no sample: a frame was sent again meanwhile
}

const unset frame.Time = -1

type segment struct {
	last  uint64 // packet
	due   frame.Time
	bytes uint32 // on the wire
}

func (s *segments) reset(size uint32, rate uint64) {
	*s = segments{size: size, due: unset, ring: s.ring}
	if rate != 0 {
		s.perByte = 8e9 / float64(rate)
	}
}

// depart notes that a frame leaves at t.
func (s *segments) depart(t frame.Time, bytes uint32) {
	if s.perByte != 0 {
		s.next = t + frame.Time(float64(bytes)*s.perByte)
	}
}

// due returns when the next frame of q may leave: at its pace, within a segment
// at that of the segment's frames.
func (q *queuePair) due() frame.Time {
	if q.seg.open {
		return q.seg.next
	}
	return max(q.pace.at, q.seg.next)
}

func (s *segments) at(i uint32) *segment { return &s.ring[(s.head+i)&uint32(len(s.ring)-1)] }

// sent notes a frame of the segment under way and reports whether it is the
// last one. A retransmission ends it: samples of it would be ambiguous.
func (s *segments) sent(seq uint64, payload, bytes uint32, rtx, lastOfMessage bool) (over bool) {
	s.open = true
	s.got += payload
	s.wire += bytes
	if rtx {
		s.rtx, s.clean = true, s.pushed
	}
	if s.got < s.size && !lastOfMessage {
		return false
	}
	if !s.rtx {
		s.push(segment{last: seq, due: s.due, bytes: s.wire})
	}
	s.open, s.got, s.wire, s.rtx, s.due = false, 0, 0, false, unset
	return true
}

func (s *segments) push(g segment) {
	if int(s.n) == len(s.ring) {
		ring := make([]segment, max(8, 2*len(s.ring)))
		for i := uint32(0); i < s.n; i++ {
			ring[i] = *s.at(i)
		}
		s.ring, s.head = ring, 0
	}
	s.n++
	s.pushed++
	*s.at(s.n - 1) = g
}

// acked takes out the segments below cum and gives the sample of the last
// that was complete.
func (s *segments) acked(now frame.Time, cum uint64) (rtt frame.Time, bytes uint32) {
	for s.n > 0 && s.at(0).last < cum {
		if g := s.at(0); s.pushed-uint64(s.n) >= s.clean {
			rtt, bytes = now-g.due, g.bytes
		}
		s.head = (s.head + 1) & uint32(len(s.ring)-1)
		s.n--
	}
	return rtt, bytes
}

// timer runs what is due of a queue pair: retransmission and congestion
// control.
func (n *NIC) timer(now frame.Time, q *queuePair) {
	if q.tx.Deadline() <= now {
		if q.tx.Timeout(now) {
			n.count.Timeouts++
			q.stats.Timeouts++
			if q.msgs.n > 0 {
				q.msgs.at(0).timeouts++
			}
			if q.cc != nil {
				q.cc.OnLoss(now, cc.LossTimeout)
			}
			if f := q.service.exhausted; f != nil && f(n, now, q) {
				return
			}
		}
	}
	if q.ackDue <= now {
		n.answerLate(now, q)
	}
	if q.cc != nil {
		if q.ccDue <= now {
			q.cc.OnTimer(now)
		}
		n.adopt(q)
	}
	n.schedule(now, q)
	n.arm(now, q)
}

// arm sets the timer of q to what is due next. One that fires too early finds
// out then, so that an acknowledgement, which moves the deadline on, need not
// touch the wheel.
func (n *NIC) arm(now frame.Time, q *queuePair) {
	at := min(q.tx.Deadline(), q.ccDue, q.ackDue)
	if at < n.timers.armed(q.index) {
		n.timers.arm(q.index, max(at, now+1))
	}
}
