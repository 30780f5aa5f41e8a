package tcp

import "gswitch/frame"

// rtt is the estimate of round trips (RFC 6298).
type rtt struct {
	smoothed, variance frame.Time
	least              frame.Time
	any                bool
}

func (r *rtt) measure(v frame.Time) {
	if !r.any {
		r.smoothed, r.variance, r.least, r.any = v, v/2, v, true
		return
	}
	d := r.smoothed - v
	if d < 0 {
		d = -d
	}
	r.variance += (d - r.variance) / 4
	r.smoothed += (v - r.smoothed) / 8
	r.least = min(r.least, v)
}

// granularity is that of the timer, G of RFC 6298.
const granularity = frame.Millisecond

func (c *Conn) setRTO() {
	c.rto = min(max(c.rtt.smoothed+max(granularity, 4*c.rtt.variance), c.cfg.MinRTO), c.cfg.MaxRTO)
}

// rack is what RFC 8985 keeps: the segment sent last of those that were
// delivered.
type rack struct {
	tx        uint64 // its number: instants may be equal
	rtt       frame.Time
	reordered bool
	most      uint64 // highest offset that was delivered
}

// delivered takes a segment that was acknowledged, by any way.
func (c *Conn) delivered(now frame.Time, s *sent) {
	trip := now - s.at
	if s.doubted && s.retries == 0 {
		return // it arrived before the timeout, and was looked at then
	}
	if s.retries > 0 && c.rtt.any && trip < c.rtt.least {
		c.sawReordering(s)
		return // the acknowledgement is for an earlier copy
	}
	if s.retries == 0 && s.end() < c.rack.most {
		c.rack.reordered = true
		c.sawReordering(s)
	}
	c.rack.most = max(c.rack.most, s.end())
	if s.tx > c.rack.tx {
		c.rack.tx, c.rack.rtt = s.tx, trip
	}
}

// sawReordering takes a segment that arrived behind later ones: as many must be
// beyond a gap from now on.
func (c *Conn) sawReordering(s *sent) {
	if c.rack.most > s.off && !s.doubted {
		c.reordering = min(max(c.reordering, int(c.rack.most-s.off)/c.mss), max(c.cfg.DupThresh, c.cfg.MaxReordering))
	}
}

// reorderWindow is how much later than one sent after it a segment may arrive
// (RFC 8985 section 6.2 step 4).
func (c *Conn) reorderWindow() frame.Time {
	if !c.rack.reordered && (c.recovering || c.sackedSegs >= c.reordering) {
		return 0
	}
	return min(c.rtt.least/4, c.rtt.smoothed)
}

// findLosses marks what is lost by now, by time and by count, and reports whether
// anything was.
func (c *Conn) findLosses(now frame.Time) bool {
	c.reorderAt = frame.Never
	if c.sackedSegs == 0 && c.dupACKs == 0 && !c.recovering {
		return false
	}
	found := false
	if c.cfg.RACK {
		wait := c.rack.rtt + c.reorderWindow()
		for i := range c.sent {
			s := &c.sent[i]
			if s.sacked || s.lost || s.tx >= c.rack.tx {
				continue
			}
			if s.at+wait <= now {
				c.lose(s)
				found = true
			} else {
				c.reorderAt = min(c.reorderAt, s.at+wait)
			}
		}
	}
	if c.sack {
		// RFC 6675 IsLost: enough segments beyond it arrived.
		beyond := 0
		for i := len(c.sent) - 1; i >= 0 && c.sackedSegs >= c.reordering; i-- {
			s := &c.sent[i]
			switch {
			case s.sacked:
				beyond++
			case beyond >= c.reordering && !s.lost && s.retries == 0:
				c.lose(s)
				found = true
			}
		}
	} else if c.dupACKs >= c.reordering && !c.recovering && len(c.sent) > 0 && !c.sent[0].lost {
		c.lose(&c.sent[0])
		found = true
	}
	return found
}

func (c *Conn) lose(s *sent) {
	s.lost = true
	c.lostSegs++
	c.pipe -= s.n
}
