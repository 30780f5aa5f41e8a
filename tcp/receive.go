package tcp

import (
	"slices"

	"gswitch/frame"
)

// block is data that came out of order: offsets of the first byte and of the one
// behind the last. latest orders them for SACK.
type block struct {
	from, to uint64
	latest   uint64
}

func (c *Conn) wire(off uint64) uint32    { return c.iss + uint32(off) }
func (c *Conn) rcvWire(off uint64) uint32 { return c.irs + uint32(off) }

// Receive takes a segment of this connection (RFC 9293 section 3.10.7).
func (c *Conn) Receive(now frame.Time, s *Segment) {
	c.Stats.Received++
	if s.CE {
		c.Stats.Marked++
	}
	switch c.state {
	case Closed:
		return
	case SynSent:
		c.receiveSynSent(now, s)
		return
	}
	seq := c.rcvNxt + uint64(int64(int32(s.Seq-c.rcvWire(c.rcvNxt))))
	if !c.acceptable(now, s, seq) {
		return
	}
	if s.Flags&RST != 0 {
		c.reset(now, seq)
		return
	}
	if s.Flags&SYN != 0 {
		if c.state == SynReceived && seq == 0 {
			if s.Flags&ACK != 0 && s.Ack == c.wire(1) { // both dialled at once
				c.opened(now, s)
				c.ackNow = true
				return
			}
			c.resendSYN()
			return
		}
		c.challenge(now) // RFC 5961 section 4
		c.Stats.Unacceptable++
		return
	}
	if s.Flags&ACK == 0 {
		return
	}
	if c.state == SynReceived && !c.opened(now, s) {
		return
	}
	if !c.acknowledge(now, s, seq) {
		return
	}
	c.closing(now)
	c.receiveData(now, s, seq)
}

// receiveSynSent is section 3.10.7.3.
func (c *Conn) receiveSynSent(now frame.Time, s *Segment) {
	good := s.Flags&ACK != 0 && c.nxt == 1 && s.Ack == c.wire(1)
	switch {
	case s.Flags&ACK != 0 && !good:
		c.Stats.Unacceptable++
		return
	case s.Flags&RST != 0:
		if good {
			c.end(ErrRefused)
		}
		return
	case s.Flags&SYN == 0:
		return
	}
	c.ecn = c.ecn && s.Flags&(ECE|CWR) == ECE
	c.greet(now, s)
	if !good { // both ends dial at once
		c.state = SynReceived
		c.resendSYN()
		return
	}
	c.state = Established
	if c.fin != 0 {
		c.state = FinWait1
	}
	c.una, c.wl1, c.wl2, c.window = 1, 0, 1, 1+uint64(s.Window)
	c.started(now)
	c.ackNow = true
}

// started takes the handshake's round trip and drops its segments.
func (c *Conn) started(now frame.Time) {
	if len(c.sent) > 0 && c.sent[0].retries == 0 {
		c.rtt.measure(now - c.sent[0].at)
		c.setRTO()
	}
	c.sent, c.pipe, c.lostSegs, c.tries = c.sent[:0], 0, 0, 0
	c.timer, c.timerKind = frame.Never, timerNone
	c.tune.at = now
}

// opened takes the acknowledgement of our SYN.
func (c *Conn) opened(now frame.Time, s *Segment) bool {
	if s.Ack != c.wire(1) && !(c.nxt > 1 && int32(s.Ack-c.wire(1)) > 0 && int32(s.Ack-c.wire(c.nxt)) <= 0) {
		c.Stats.Unacceptable++
		return false
	}
	c.started(now)
	c.una = 1
	c.window = 1 + uint64(s.Window)<<c.sndScale
	c.state = Established
	if c.fin != 0 {
		c.state = FinWait1
	}
	return true
}

// outdated is when stamps may have wrapped, so that none is older (RFC 7323 section 5.5).
const outdated = 24 * 24 * 3600 * frame.Second

// acceptable is the first check of section 3.10.7.4, and PAWS (RFC 7323 section
// 5).
func (c *Conn) acceptable(now frame.Time, s *Segment, seq uint64) bool {
	older := s.Options.HasStamp && int32(s.Options.Stamp-c.recent) < 0 && now-c.recentAt < outdated
	if c.stamps && s.Flags&RST == 0 {
		if !s.Options.HasStamp && c.synchronized() {
			c.Stats.Unacceptable++
			return false
		}
		if older {
			c.Stats.Unacceptable++
			c.ackNow = true
			return false
		}
	}
	end := seq + uint64(s.span())
	right := max(c.edge, c.rcvNxt)
	ok := int64(end-c.rcvNxt) >= 0 && int64(seq-right) <= 0
	if s.Len > 0 {
		ok = int64(end-c.rcvNxt) > 0 && int64(seq-right) < 0
	}
	if c.state == SynReceived && s.Flags&SYN != 0 && seq == 0 {
		return true
	}
	if !ok {
		c.Stats.Unacceptable++
		if int64(end-c.rcvNxt) <= 0 && s.Len > 0 {
			c.Stats.Duplicates++
		}
		if s.Flags&RST == 0 {
			c.ackNow = true
			if c.state == TimeWait {
				c.closeAt = now + c.cfg.TimeWait
			}
		}
		return false
	}
	if c.stamps && s.Options.HasStamp && int64(seq-c.lastACKSent) <= 0 && !older {
		c.recent, c.recentAt = s.Options.Stamp, now
	}
	return true
}

// The most challenges in a time (RFC 5961 section 7), of one connection: a bound on
// all together would tell strangers what goes on in one.
const (
	mostChallenges = 10
	challengeTime  = 5 * frame.Second
)

// challenge acknowledges a segment that may be forged, so that a peer that has lost the
// connection resets it.
func (c *Conn) challenge(now frame.Time) {
	if now-c.challengesFrom >= challengeTime {
		c.challenges, c.challengesFrom = 0, now
	}
	if c.challenges == mostChallenges {
		c.Stats.Unchallenged++
		return
	}
	c.challenges++
	c.ackNow = true
}

// reset takes a RST within the window: exactly at its beginning it ends the
// connection, elsewhere it is answered with a challenge (RFC 5961 section 3).
func (c *Conn) reset(now frame.Time, seq uint64) {
	if seq != c.rcvNxt {
		c.challenge(now)
		c.Stats.Unacceptable++
		return
	}
	if c.state == SynReceived {
		c.end(ErrRefused)
		return
	}
	if c.state == TimeWait {
		c.end(nil)
		return
	}
	c.end(ErrReset)
}

// closing moves on what waits for our FIN's acknowledgement.
func (c *Conn) closing(now frame.Time) {
	if c.fin == 0 || c.una <= c.fin {
		return
	}
	switch c.state {
	case FinWait1:
		c.state = FinWait2
	case Closing:
		c.wait(now)
	case LastACK:
		c.end(nil)
	}
}

func (c *Conn) wait(now frame.Time) {
	c.state, c.closeAt = TimeWait, now+c.cfg.TimeWait
	c.timer, c.reorderAt = frame.Never, frame.Never
}

// receiveData takes payload and FIN.
func (c *Conn) receiveData(now frame.Time, s *Segment, seq uint64) {
	c.marks(s)
	if s.Len == 0 && s.Flags&FIN == 0 {
		return
	}
	switch c.state {
	case Established, FinWait1, FinWait2:
	default:
		return
	}
	from, to := seq, seq+uint64(s.Len)
	data := s.Data
	if from < c.rcvNxt { // overlaps what is there
		cut := min(c.rcvNxt-from, uint64(s.Len))
		from += cut
		if data != nil {
			data = data[cut:]
		}
	}
	fin := s.Flags&FIN != 0
	if right := max(c.edge, c.rcvNxt); to > right { // beyond the window
		if data != nil && from < right {
			data = data[:right-from]
		}
		to, fin = max(right, from), false
	}
	if fin && c.rcvFin == 0 {
		c.rcvFin = to + 1
	}
	if to > from {
		c.in.need(int(to-c.in.start), c.extent())
		c.in.put(from, data)
	}
	if from > c.rcvNxt {
		c.Stats.OutOfOrder++
		if fin && c.rcvFin == to+1 {
			to++ // it takes a sequence number, which is acknowledged like data
		}
		c.grown = min(c.grown+2*c.mss, c.cfg.MaxReceive)
		c.insert(from, to)
		c.ackNow = true // RFC 5681 section 4.2
		return
	}
	had := len(c.blocks)
	c.advanceTo(to)
	c.arrived(now, int(to-from), had > 0)
	if c.rcvFin != 0 && c.rcvNxt == c.rcvFin-1 {
		c.rcvNxt = c.rcvFin
		c.ackNow = true
		c.peerClosed(now)
	}
}

// extent is how far from the stream's start something may lie.
func (c *Conn) extent() int {
	end := c.rcvNxt
	if len(c.blocks) > 0 {
		end = max(end, c.blocks[len(c.blocks)-1].to)
	}
	return int(end - c.in.start)
}

// insert adds a block, joined with those that it touches, in order of offsets.
func (c *Conn) insert(from, to uint64) {
	if from >= to {
		return
	}
	latest := c.Stats.Received
	i := 0
	for i < len(c.blocks) && c.blocks[i].to < from {
		i++
	}
	j := i
	for j < len(c.blocks) && c.blocks[j].from <= to {
		from, to = min(from, c.blocks[j].from), max(to, c.blocks[j].to)
		j++
	}
	c.blocks = slices.Replace(c.blocks, i, j, block{from, to, latest})
}

// advanceTo moves what is expected next, past blocks that are there.
func (c *Conn) advanceTo(to uint64) {
	for len(c.blocks) > 0 && c.blocks[0].from <= to {
		to = max(to, c.blocks[0].to)
		c.blocks = slices.Delete(c.blocks, 0, 1)
	}
	if c.rcvFin != 0 {
		to = min(to, c.rcvFin-1)
	}
	if to > c.rcvNxt {
		c.in.n += int(to - c.rcvNxt)
		c.rcvNxt = to
	}
}

// arrived decides when to acknowledge data in order.
func (c *Conn) arrived(now frame.Time, n int, filled bool) {
	c.unacked += n
	c.grown = min(c.grown+2*c.mss, c.cfg.MaxReceive)
	switch {
	case c.quick > 0:
		c.quick--
		c.ackNow = true
	case filled, c.cfg.DelayedACK == 0, c.unacked >= 2*min(c.mss, c.cfg.MSS):
		c.ackNow = true
	case c.ackAt == frame.Never:
		c.ackAt = now + c.cfg.DelayedACK
	}
	c.measureReceiver(now)
}

func (c *Conn) peerClosed(now frame.Time) {
	switch c.state {
	case Established:
		c.state = CloseWait
	case FinWait1:
		c.state = Closing
		c.closing(now)
	case FinWait2:
		c.wait(now)
	}
}

// marks takes a congestion mark on a packet, to be echoed: until the sender
// acknowledges it with CWR (RFC 3168), or exactly for the packets that had one (RFC 8257
// section 3.2).
func (c *Conn) marks(s *Segment) {
	if !c.ecn {
		return
	}
	if c.cfg.Control == "dctcp" {
		if s.Len > 0 && s.CE != c.ceState {
			if c.unacked > 0 {
				c.ackNow = true // for what came before, with the state before
			}
			c.ceState, c.echo = s.CE, s.CE
		}
		return
	}
	if s.Flags&CWR != 0 {
		c.echo = false
	}
	if s.CE {
		c.echo = true
	}
}

// tuning lets the receive buffer follow the application (dynamic right-sizing,
// Feng, Fisk, Weigle 2001): twice what was read in a round trip must fit.
type tuning struct {
	limit  int
	at     frame.Time
	read   int
	trip   frame.Time
	target uint64 // when this is received a round trip is over
	since  frame.Time
}

// measureReceiver finds the round trip at the receiver: the time in which a window
// that was offered is used up.
func (c *Conn) measureReceiver(now frame.Time) {
	t := &c.tune
	if t.target == 0 {
		t.target, t.since = max(c.edge, c.rcvNxt+1), now
		return
	}
	if c.rcvNxt >= t.target {
		trip := now - t.since
		if t.trip == 0 || trip < t.trip {
			t.trip = trip
		} else {
			t.trip += (trip - t.trip) / 8
		}
		t.target, t.since = max(c.edge, c.rcvNxt+1), now
	}
}

func (c *Conn) tuneBuffer(now frame.Time, n int) {
	t := &c.tune
	t.read += n
	trip := t.trip
	if trip == 0 {
		trip = c.rtt.smoothed // of the handshake, where nothing else was sent: without what queues hold now
	}
	if trip == 0 || now-t.at < trip {
		return
	}
	if want := 2*t.read + 16*c.mss; want > t.limit {
		t.limit = min(want, c.cfg.MaxReceive)
		c.in.limit = t.limit
	}
	t.read, t.at = 0, now
}

// offer is the window that the buffer has room for, from what is expected next.
func (c *Conn) offer() uint64 {
	room := max(c.tune.limit-c.in.n, 0)
	if c.cfg.SlowWindow {
		room = min(room, c.grown)
	}
	return uint64(room)
}
