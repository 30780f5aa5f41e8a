package transport

import "gswitch/frame"

const (
	maxRTO = 60 * frame.Second // RFC 6298 (2.5): a maximum is at least this
	// maxBackoff bounds the doubling; 2^16 times any timeout in use here is
	// beyond maxRTO.
	maxBackoff = 16
)

// timer is the retransmission timer of a Sender. It measures from the last
// acknowledgement (of cumulative progress alone, if Config asks for that) or
// timeout, not from the last packet.
type timer struct {
	armed    bool
	low      bool // the deadline is the low one and may be extended
	begins   bool // with the low timeout
	follows  bool // the round trips
	backoff  uint8
	start    frame.Time
	deadline frame.Time
	cfg      *Config
	srtt     frame.Time // RFC 6298; 0: no sample yet
	rttvar   frame.Time
}

func (t *timer) init(cfg *Config) {
	follows := cfg.dynamic()
	*t = timer{cfg: cfg, deadline: frame.Never, follows: follows, begins: cfg.RTOLow != 0 && cfg.Kind().LowRTO && !follows}
}

// sent starts the timer unless it runs.
func (t *timer) sent(now frame.Time) {
	if !t.armed && t.cfg.RTOHigh != 0 {
		t.restart(now)
	}
}

// progress restarts the timer, or stops it if nothing is outstanding.
func (t *timer) progress(now frame.Time, outstanding bool) {
	t.backoff = 0
	if !t.armed {
		return
	}
	if !outstanding {
		t.armed, t.deadline = false, frame.Never
		return
	}
	t.restart(now)
}

// acked restarts the timer because of an acknowledgement without progress.
func (t *timer) acked(now frame.Time) {
	if t.armed {
		t.restart(now)
	}
}

func (t *timer) restart(now frame.Time) {
	t.armed, t.start = true, now
	if t.low = t.begins; t.low {
		t.deadline = now + t.cfg.RTOLow
		return
	}
	t.deadline = now + t.high()
}

// high returns the timeout that is not low: constant, or RFC 6298's.
func (t *timer) high() frame.Time {
	if !t.follows {
		return t.cfg.RTOHigh
	}
	rto := t.cfg.RTOHigh
	if t.srtt > 0 {
		// (2.3) with a clock granularity of one nanosecond.
		rto = t.srtt + max(frame.Nanosecond, 4*t.rttvar)
	}
	return min(max(rto, t.cfg.RTOLow, frame.Nanosecond)<<t.backoff, maxRTO)
}

// sample takes a round trip (RFC 6298 (2.2), (2.3): alpha 1/8, beta 1/4).
func (t *timer) sample(rtt frame.Time) {
	if !t.follows || rtt <= 0 {
		return
	}
	rtt = min(rtt, maxRTO)
	if t.srtt == 0 {
		t.srtt, t.rttvar = rtt, rtt/2
		return
	}
	t.rttvar += (max(t.srtt-rtt, rtt-t.srtt) - t.rttvar) / 4
	t.srtt = max(t.srtt+(rtt-t.srtt)/8, frame.Nanosecond)
}

// Deadline returns when Timeout is to be called, Never if nothing is pending.
// It changes with Sent, Ack, Rewind, Timeout and, with RetransmitDelay, with Peek.
func (s *Sender) Deadline() frame.Time { return min(s.timer.deadline, s.wake) }

// Timeout runs what is due: the retransmission timer, or the end of the delay
// of a retransmission. It reports whether a timeout reported a loss. In either
// case Peek may offer something new.
func (s *Sender) Timeout(now frame.Time) (entered bool) {
	if now >= s.wake {
		s.wake = frame.Never
	}
	t := &s.timer
	if now < t.deadline || !t.armed {
		return false
	}
	// The low timeout is for few packets in flight, and that is judged when
	// it fires: any earlier would shorten the high one of a flow that drains.
	if t.low && s.next-s.cum > uint64(s.cfg.N) {
		t.low, t.deadline = false, t.start+t.cfg.RTOHigh
		if now < t.deadline {
			return false
		}
	}
	s.stats.Timeouts++
	s.kind.Expired(s, now)
	t.backoff = min(t.backoff+1, maxBackoff)
	t.restart(now)
	return true
}

// Retries returns how many timeouts came in a row without any progress.
func (s *Sender) Retries() uint8 { return s.timer.backoff }
