package tcp

import (
	"slices"

	"gswitch/frame"
)

// acknowledge takes the acknowledgement of a segment whose offset is seq. It
// reports whether the segment is to be looked at further.
func (c *Conn) acknowledge(now frame.Time, s *Segment, seq uint64) bool {
	d := int64(int32(s.Ack - c.wire(c.una)))
	switch {
	case d < -int64(c.maxWnd): // older than any window, so made up (RFC 5961 section 5)
		c.Stats.Unacceptable++
		c.challenge(now)
		return false
	case d < 0:
		return true // old
	}
	ack := c.una + uint64(d)
	if ack > c.nxt {
		c.Stats.Unacceptable++
		c.challenge(now) // RFC 9293 3.10.7.4: for data that was never sent
		return false
	}
	same := s.Window == c.lastWnd // RFC 5681 section 2: else it is no duplicate, but an update of the window
	c.lastWnd = s.Window
	c.peerWindow(s, seq, ack)
	newly := int(ack - c.una)
	sackedBefore := c.sackedSegs
	delivered := c.cumulative(now, ack)
	if c.sack {
		delivered += c.selective(now, &s.Options)
	}
	switch {
	case newly > 0:
		c.dupACKs, c.tries = 0, 0
	case len(c.sent) == 0: // it answers a probe of a closed window
		c.tries = 0
	case s.Len == 0 && s.Flags&(SYN|FIN) == 0 && (c.sackedSegs > sackedBefore || !c.sack):
		if !c.sack && !same {
			c.Stats.WindowUpdates++
			break
		}
		c.dupACKs++
		c.Stats.DuplicateACKs++
	}
	c.echoes(now, s, newly, ack)
	c.respond(now, newly, delivered)
	return true
}

// cumulative takes out what is acknowledged below ack and returns the bytes that
// were not known to be delivered before.
func (c *Conn) cumulative(now frame.Time, ack uint64) (delivered int) {
	limited := c.pipe+c.mss > c.cc.Window()
	sample := frame.Time(0)
	k := 0
	for k < len(c.sent) && c.sent[k].end() <= ack {
		s := &c.sent[k]
		if s.retries == 0 && !s.sacked && !s.doubted {
			sample = now - s.at
		}
		delivered += c.gone(now, s)
		k++
	}
	if k < len(c.sent) && c.sent[k].off < ack { // a part of one
		s := &c.sent[k]
		part := int(ack - s.off)
		if !s.sacked && !s.lost {
			c.pipe -= part
		}
		s.off, s.n = ack, s.n-part
	}
	c.sent = append(c.sent[:0], c.sent[k:]...)
	if sample > 0 {
		c.rtt.measure(sample)
		c.setRTO()
	}
	if ack > c.una {
		bytes := c.acked(ack)
		c.Stats.BytesAcked += uint64(bytes)
		if (!c.recovering || c.afterRTO) && bytes > 0 {
			c.cc.Acked(now, bytes, limited, sample)
		}
		c.una = ack
		if c.rtt.any {
			c.setRTO() // no back-off any more
		}
		c.probing = false
		c.rearm(now)
	}
	return delivered
}

// acked drops acknowledged bytes from the send buffer and returns how many these
// are: SYN and FIN take a sequence number and no byte.
func (c *Conn) acked(ack uint64) int {
	n := 0
	if ack > c.out.start {
		n = int(min(ack-c.out.start, uint64(c.out.n)))
		c.out.drop(n)
	}
	return n
}

// gone accounts for a segment that leaves the list, delivered.
func (c *Conn) gone(now frame.Time, s *sent) (delivered int) {
	if s.sacked {
		c.sackedSegs--
		return 0
	}
	if s.lost {
		c.lostSegs--
	} else {
		c.pipe -= s.n
	}
	c.delivered(now, s)
	return s.n
}

// selective marks what the blocks of a segment say.
func (c *Conn) selective(now frame.Time, o *Options) (delivered int) {
	for _, b := range o.SACK[:o.SACKs] {
		from := c.una + uint64(int64(int32(b[0]-c.wire(c.una))))
		to := c.una + uint64(int64(int32(b[1]-c.wire(c.una))))
		if int64(from-c.una) < 0 || to > c.nxt || to <= from {
			continue // a duplicate (RFC 2883), or nonsense
		}
		i, _ := slices.BinarySearchFunc(c.sent, from, func(s sent, off uint64) int {
			if s.off < off {
				return -1
			}
			return 1
		})
		for ; i < len(c.sent) && c.sent[i].end() <= to; i++ {
			s := &c.sent[i]
			if s.sacked {
				continue
			}
			if s.lost {
				s.lost = false
				c.lostSegs--
			} else {
				c.pipe -= s.n
			}
			s.sacked = true
			c.sackedSegs++
			delivered += s.n
			c.delivered(now, s)
		}
	}
	return delivered
}

// peerWindow updates the send window (RFC 9293 3.10.7.4).
func (c *Conn) peerWindow(s *Segment, seq, ack uint64) {
	if seq < c.wl1 || seq == c.wl1 && ack < c.wl2 {
		return
	}
	w := uint64(s.Window)
	if s.Flags&SYN == 0 {
		w <<= c.sndScale
	}
	c.wl1, c.wl2 = seq, ack
	c.window = ack + w
	c.maxWnd = max(c.maxWnd, int(w))
}

// echoes takes echoed marks.
func (c *Conn) echoes(now frame.Time, s *Segment, newly int, ack uint64) {
	if !c.ecn {
		return
	}
	marked := 0
	if s.Flags&ECE != 0 && s.Flags&SYN == 0 {
		c.Stats.Echoed++
		marked = newly
	}
	if c.cfg.Control == "dctcp" {
		c.cc.Marks(now, newly, marked, ack, c.nxt)
		return
	}
	if marked > 0 || s.Flags&(ECE|SYN) == ECE {
		if ack >= c.ecnEnd && !c.recovering { // once in a window (RFC 3168 6.1.2)
			c.cc.Lost(now, c.pipe)
			c.ecnEnd, c.cwr = c.nxt, true
		}
	}
}

// respond finds losses and begins or ends recovery.
func (c *Conn) respond(now frame.Time, newly, delivered int) {
	flight := c.pipe
	if c.recovering {
		if c.una >= c.recover {
			c.recovering, c.afterRTO, c.dupACKs = false, false, 0
		} else if newly > 0 && !c.sack && len(c.sent) > 0 && !c.sent[0].lost {
			c.lose(&c.sent[0]) // a partial acknowledgement: the next is lost, too (RFC 6582)
			c.repair = true
		}
	}
	if c.findLosses(now) && !c.recovering {
		c.enter(now, flight)
	}
}

// enter begins recovery from losses that acknowledgements reported.
func (c *Conn) enter(now frame.Time, flight int) {
	c.recovering, c.recover = true, c.nxt
	c.repair = true
	c.Stats.Recoveries++
	c.cc.Lost(now, flight)
	c.rearm(now)
}
