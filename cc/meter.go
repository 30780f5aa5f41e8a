package cc

import (
	"gswitch/frame"
)

// sendMeter measures how fast a flow sends. It counts from the start of one
// frame to the start of another, so that a paced flow measures its rate
// exactly however few frames fall into the span.
type sendMeter struct {
	running  bool
	idled    bool       // there was a pause since the owner last looked
	measured float64    // bit/s, of the last complete span; 0 before
	against  float64    // the rate that was allowed when that span began
	allowed  float64    // the rate that was allowed when the present span began
	start    frame.Time // of the present span
	last     frame.Time // last send
	bytes    uint64     // sent since start
}

// send counts n bytes that leave at now. A span lasts an RTT (ns), or two of
// what is paced as one (a frame, or a burst of at least unit bytes) if that is
// longer at the present rate. After a pause of idle ns, and of two of these,
// the flow was idle; idle 0 means never.
func (m *sendMeter) send(now frame.Time, n, unit uint32, rate, rtt, idle float64) {
	gaps := 2 * float64(max(n, unit)) * 8e9 / rate
	if !m.running {
		*m = sendMeter{running: true, allowed: rate, start: now, last: now, bytes: uint64(n)}
		return
	}
	if idle > 0 && float64(now-m.last) > max(idle, gaps) {
		m.idled = true
	}
	if span := float64(now - m.start); span >= max(rtt, gaps, 1) {
		m.measured, m.against = float64(m.bytes)*8e9/span, m.allowed
		m.start, m.bytes, m.allowed = now, 0, rate
	}
	m.last = now
	m.bytes += uint64(n)
}

// above says whether the flow sends more than a share of rate. A rate that
// grew since the measurement began could not have been used; without a
// measurement the flow has the benefit of the doubt.
func (m *sendMeter) above(share, rate float64) bool {
	return m.measured == 0 || m.measured > share*min(rate, m.against)
}
