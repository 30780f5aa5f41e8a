package tcp

import (
	"slices"

	"gswitch/frame"
)

// Next fills s with the segment to be sent now and reports whether there is one.
// Data is good until the connection's next call.
func (c *Conn) Next(now frame.Time, s *Segment) bool {
	*s = Segment{}
	switch {
	case c.sendRST:
		c.sendRST = false
		s.Flags, s.Seq, s.Ack = RST|ACK, c.wire(c.nxt), c.rcvWire(c.rcvNxt)
		c.Stats.Sent++
		return true
	case c.state == Closed:
		return false
	case c.state == SynSent || c.state == SynReceived:
		return c.nextSYN(now, s)
	case c.nextLost(now, s), c.nextNew(now, s), c.nextProbe(now, s):
	case c.ackNow:
		s.Seq = c.wire(c.nxt)
		if c.zeroProbe {
			s.Seq = c.wire(c.una - 1) // RFC 9293 3.8.6.1: outside of the window, so it is answered
			c.zeroProbe = false
		}
		c.finish(now, s)
	default:
		return false
	}
	c.Stats.Sent++
	return true
}

// nextSYN sends the SYN once, and again where the timer or the peer's own says so.
func (c *Conn) nextSYN(now frame.Time, s *Segment) bool {
	if len(c.sent) > 0 && !c.sent[0].lost {
		return false
	}
	s.Flags, s.Seq = SYN, c.wire(0)
	s.Options = Options{MSS: uint16(c.cfg.MSS), SACKPermitted: c.sack, HasStamp: c.stamps, Stamp: c.stamp(now)}
	if c.state == SynReceived {
		s.Flags |= ACK
		s.Ack, s.Options.Echo = c.rcvWire(1), c.recent
		c.lastACKSent = 1
		s.Options.Scale, s.Options.HasScale = c.rcvScale, c.rcvScale > 0 || c.sndScale > 0
		if c.ecn {
			s.Flags |= ECE
		}
	} else {
		s.Options.Scale, s.Options.HasScale = c.rcvScale, true
		if c.ecn && c.synRetransmits == 0 {
			s.Flags |= ECE | CWR
		}
	}
	window := min(c.offer(), 65535)
	s.Window = uint16(window)
	c.edge = 1 + window
	if len(c.sent) == 0 {
		c.sent = append(c.sent, sent{off: 0, n: 1, at: now, first: now})
		c.nxt = 1
	} else {
		c.sent[0].lost, c.sent[0].at = false, now
		c.sent[0].retries++
		c.lostSegs--
		c.Stats.Retransmitted++
	}
	c.pipe = 1
	c.arm(now, timerRTO, c.rto)
	c.Stats.Sent++
	return true
}

func (c *Conn) resendSYN() {
	if len(c.sent) > 0 && !c.sent[0].lost {
		c.sent[0].lost = true
		c.lostSegs++
	}
}

// nextLost sends the oldest segment that is taken for lost, where the window has
// room.
func (c *Conn) nextLost(now frame.Time, s *Segment) bool {
	if c.lostSegs == 0 || c.held() > 0 && c.held()+c.mss > c.cc.Window() && !c.repair {
		return false
	}
	c.repair = false
	i := slices.IndexFunc(c.sent, func(x sent) bool { return x.lost })
	if i < 0 {
		return false
	}
	x := &c.sent[i]
	x.lost = false
	c.lostSegs--
	c.pipe += x.n
	c.again(now, s, x)
	return true
}

// held is what counts against the congestion window. Without SACK a duplicate
// acknowledgement says that some segment has left the network (RFC 5681 section
// 3.2).
func (c *Conn) held() int {
	if c.sack {
		return c.pipe
	}
	return max(c.pipe-c.dupACKs*c.mss, 0)
}

// again sends a segment once more.
func (c *Conn) again(now frame.Time, s *Segment, x *sent) {
	c.fill(s, x.off, x.n)
	s.ECT = s.ECT && c.cfg.Control == "dctcp" // else none that is sent again may (RFC 3168 section 6.1.5)
	c.tx++
	x.at, x.tx = now, c.tx
	x.retries++
	c.Stats.Retransmitted++
	c.finish(now, s)
	c.rearm(now)
}

// nextNew sends data that was not sent before, or the FIN.
func (c *Conn) nextNew(now frame.Time, s *Segment) bool {
	end := c.out.start + uint64(c.out.n)
	if c.fin != 0 {
		end = c.fin + 1
	}
	if c.nxt >= end || c.state == TimeWait {
		return false
	}
	n := int(min(end-c.nxt, uint64(c.mss)))
	if room := int(int64(c.window - c.nxt)); n > room {
		n = room
	}
	if n <= 0 {
		c.override = false
		c.persist(now, 0)
		return false
	}
	if c.held() > 0 && c.held()+n > c.cc.Window() && !c.probing { // RFC 8985 section 7.3
		return false
	}
	whole := c.nxt+uint64(n) == end
	if n < c.mss && !c.override && !(whole && (len(c.sent) == 0 || !c.cfg.Nagle || c.fin != 0 || c.probing)) && n < c.maxWnd/2 {
		c.persist(now, n)
		return false
	}
	c.override, c.zeroProbe = false, false // what is sent asks as a probe would
	if whole {
		s.Flags |= PSH
	}
	c.fill(s, c.nxt, n)
	c.tx++
	c.sent = append(c.sent, sent{off: c.nxt, n: n, at: now, first: now, tx: c.tx})
	c.nxt += uint64(n)
	c.pipe += n
	if c.probing { // new data is as good a probe
		c.probing, c.probed = false, c.nxt
		c.Stats.TailProbes++
	}
	c.Stats.BytesSent += uint64(s.Len)
	if c.cwr && s.Len > 0 {
		s.Flags |= CWR
		c.cwr = false
	}
	c.finish(now, s)
	if len(c.sent) == 1 || c.timerKind == timerNone || c.timerKind == timerPersist || c.timerKind == timerTailProbe {
		c.rearm(now)
	}
	return true
}

// nextProbe sends the tail probe, or the probe of a closed window.
func (c *Conn) nextProbe(now frame.Time, s *Segment) bool {
	if !c.probing || len(c.sent) == 0 {
		return false
	}
	// New data would have been sent by nextNew: the last segment once more.
	c.probing, c.probed = false, c.nxt
	i := len(c.sent) - 1
	for i > 0 && c.sent[i].sacked {
		i--
	}
	x := &c.sent[i]
	if x.lost {
		x.lost = false
		c.lostSegs--
		c.pipe += x.n
	}
	c.Stats.TailProbes++
	c.again(now, s, x)
	return true
}

// fill writes sequence number, payload and FIN.
func (c *Conn) fill(s *Segment, off uint64, n int) {
	s.Seq = c.wire(off)
	if c.fin != 0 && off+uint64(n) == c.fin+1 {
		s.Flags |= FIN
		n--
	}
	s.Len = n
	if c.out.ring != nil && n > 0 {
		b := c.out.at(off, n)
		if len(b) < n {
			b = append(slices.Clone(b), c.out.at(off+uint64(len(b)), n-len(b))...)
		}
		s.Data = b
	}
	s.ECT = c.ecn && n > 0
}

// finish writes what every segment of an open connection carries. It is an
// acknowledgement, too.
func (c *Conn) finish(now frame.Time, s *Segment) {
	s.Flags |= ACK
	s.Ack = c.rcvWire(c.rcvNxt)
	if c.stamps {
		s.Options.HasStamp, s.Options.Stamp, s.Options.Echo = true, c.stamp(now), c.recent
	}
	if c.sack && len(c.blocks) > 0 && s.Len <= c.mss-4-8*MaxSACK { // else the packet would grow beyond the MSS
		c.report(&s.Options)
	}
	if c.ecn && c.echo {
		s.Flags |= ECE
	}
	s.Window = c.advertise()
	c.ackNow, c.ackAt, c.unacked = false, frame.Never, 0
	c.lastACKSent = c.rcvNxt
}

// advertise returns the window field. The right edge never moves back, and only by
// as much as is worth a segment (RFC 9293 3.8.6.2.2).
func (c *Conn) advertise() uint16 {
	edge := c.rcvNxt + c.offer()
	if edge < c.edge || edge-c.edge < uint64(min(c.tune.limit/2, c.mss)) {
		edge = max(c.edge, c.rcvNxt)
	}
	w := min((edge-c.rcvNxt)>>c.rcvScale, 65535)
	c.edge = max(c.edge, c.rcvNxt+w<<c.rcvScale)
	return uint16(w)
}

// report writes the blocks that came out of order, the latest first (RFC 2018
// section 4).
func (c *Conn) report(o *Options) {
	most := MaxSACK
	if !c.stamps {
		most = 4
	}
	last := ^uint64(0)
	for o.SACKs < min(most, len(c.blocks)) {
		best := -1
		for i := range c.blocks {
			if b := &c.blocks[i]; b.latest < last && (best < 0 || b.latest > c.blocks[best].latest) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		b := &c.blocks[best]
		o.SACK[o.SACKs] = [2]uint32{c.rcvWire(b.from), c.rcvWire(b.to)}
		o.SACKs++
		last = b.latest
	}
}

// stamp is the time stamp's clock: milliseconds, from a base of its own.
func (c *Conn) stamp(now frame.Time) uint32 {
	return c.stampBase + uint32(now/frame.Millisecond)
}
