package tcp

import "gswitch/frame"

func (c *Conn) arm(now frame.Time, kind timerKind, after frame.Time) {
	c.timer, c.timerKind = now+after, kind
}

// rearm sets the timer that what is under way needs: none, a tail probe's where one
// may come before the timeout, or the timeout's (RFC 6298 section 5, RFC 8985
// section 7.2).
func (c *Conn) rearm(now frame.Time) {
	if len(c.sent) == 0 {
		c.timer, c.timerKind = frame.Never, timerNone
		return
	}
	c.arm(now, timerRTO, c.rto)
	if !c.cfg.TailProbe || !c.sack || c.recovering || c.sackedSegs > 0 || !c.rtt.any || c.probing || c.probed == c.nxt || c.tries > 0 {
		return
	}
	wait := 2 * c.rtt.smoothed
	if len(c.sent) == 1 {
		wait += max(c.cfg.DelayedACK, granularity) // the peer may hold its acknowledgement back
	}
	if wait = max(wait, granularity); wait < c.rto {
		c.arm(now, timerTailProbe, wait)
	}
}

// The bounds of the time after which little is sent into a small window (RFC 9293
// section 3.8.6.2.1).
const (
	leastOverride = 100 * frame.Millisecond
	mostOverride  = frame.Second
)

// persist waits for a window that is closed to open, with probes in between (RFC 9293
// section 3.8.6.1). Where it has room for little, it waits for more, and then sends
// as much nevertheless (section 3.8.6.2.1).
func (c *Conn) persist(now frame.Time, room int) {
	switch {
	case len(c.sent) > 0: // an acknowledgement comes, or the timeout
	case room > 0 && c.timerKind != timerOverride:
		c.arm(now, timerOverride, min(max(c.rto, leastOverride), mostOverride))
		c.Stats.SmallWindows++
	case room <= 0 && c.timerKind != timerPersist:
		c.probeWait = c.rto
		c.arm(now, timerPersist, c.probeWait)
		c.Stats.ZeroWindows++
	}
}

// probe asks a peer whose window is closed for it. One that answers none of many
// probes is gone.
func (c *Conn) probe(now frame.Time) {
	if c.tries++; c.tries > c.cfg.Retries {
		c.end(ErrTimedOut)
		return
	}
	c.zeroProbe, c.ackNow = true, true
	c.probeWait = min(2*c.probeWait, c.cfg.MaxRTO)
	c.arm(now, timerPersist, c.probeWait)
}

// Due is when Advance is to be called next.
func (c *Conn) Due() frame.Time { return min(c.timer, c.reorderAt, c.ackAt, c.closeAt) }

// Advance runs the timers that are due.
func (c *Conn) Advance(now frame.Time) {
	if now >= c.closeAt {
		c.end(nil)
		return
	}
	if now >= c.ackAt {
		c.ackAt, c.ackNow = frame.Never, true
		c.Stats.DelayedACKs++
	}
	if now >= c.reorderAt {
		flight := c.pipe
		if c.findLosses(now) && !c.recovering {
			c.enter(now, flight)
		}
	}
	if now < c.timer {
		return
	}
	kind := c.timerKind
	c.timer, c.timerKind = frame.Never, timerNone
	switch kind {
	case timerRTO:
		c.timeout(now)
	case timerTailProbe:
		c.probing = true
		c.arm(now, timerRTO, c.rto)
	case timerPersist:
		c.probe(now)
	case timerOverride:
		c.override = true
	}
}

// timeout is RFC 6298 section 5.4 on: everything that is not acknowledged is taken
// for lost, and the window begins at one segment.
func (c *Conn) timeout(now frame.Time) {
	c.Stats.Timeouts++
	if c.tries++; c.tries > c.cfg.Retries {
		c.end(ErrTimedOut)
		return
	}
	c.rto = min(2*c.rto, c.cfg.MaxRTO)
	if c.state == SynSent || c.state == SynReceived {
		c.synRetransmits++
		c.resendSYN()
		c.pipe = 0
		return
	}
	c.cc.TimedOut(now, c.pipe, c.afterRTO)
	for i := range c.sent {
		switch s := &c.sent[i]; {
		case s.sacked: // the peer may have thrown it away (RFC 2018 section 8)
			s.sacked, s.doubted, s.lost = false, true, true
			c.sackedSegs--
			c.lostSegs++
		case !s.lost:
			c.lose(s)
		}
	}
	c.recovering, c.afterRTO, c.recover = true, true, c.nxt
	c.dupACKs, c.probing, c.reorderAt = 0, false, frame.Never
	c.arm(now, timerRTO, c.rto)
}
