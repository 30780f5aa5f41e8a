package transport

import "gswitch/frame"

// Ack is an acknowledgement as the sender sees it.
type Ack struct {
	NAK  bool
	Cum  uint64 // the receiver expects this one next
	Sack uint64 // with NAK in IRN and TCP: the packet that arrived out of order
}

// AckResult is the effect of an acknowledgement.
type AckResult struct {
	NewPackets      uint32     // cumulatively acknowledged by it
	NewBytes        uint32     // payload of these
	RTT             frame.Time // since the packet that caused it was sent; 0: no sample, never of a packet sent twice
	RTTBytes        uint32     // payload of that packet
	EnteredRecovery bool       // it reported a loss, and no recovery was in progress
}

// Ack processes an acknowledgement. One of packets that were never sent changes nothing
// and is counted.
//
// The result is valid until the next call.
func (s *Sender) Ack(now frame.Time, a Ack) *AckResult {
	r := &s.result // of its own it would be allocated: the rules are called by pointer
	*r = AckResult{}
	sack := a.NAK && s.kind.SACKs
	if !s.WasSent(a.Cum) || sack && a.Sack >= s.next {
		s.stats.BadAcks++
		return r
	}
	advanced := a.Cum > s.cum
	if advanced {
		s.advance(now, a.Cum, r)
	} else if s.kind.LowRTO && !s.cfg.RestartOnProgress {
		s.timer.acked(now)
	}
	if a.NAK {
		switch {
		case a.Cum < s.cum && !sack, sack && a.Sack <= s.cum, s.cum == s.next:
			s.stats.StaleNaks++ // it says nothing new
		case sack:
			s.sack(now, a.Sack, r)
		default:
			s.kind.Nak(s, now, advanced, r)
		}
	}
	return r
}

// advance moves the cumulative acknowledgement to c.
func (s *Sender) advance(now frame.Time, c uint64, r *AckResult) {
	// The last packet caused it, unless it had been SACKed or the step is over
	// a gap that a retransmission closed: then it arrived earlier.
	late := c > s.next || s.has(c-1)
	own := min(c, s.next) // what the ordinary loop has sent, and what counts for congestion control
	for q := s.cum; q < own; q++ {
		p := s.record(q)
		r.NewBytes += p.bytes
		late = late || p.flags&(again|skipped) != 0
		if p.flags&inFlight != 0 {
			s.flight -= uint64(p.bytes)
		}
	}
	if last := s.record(own - 1); !late {
		r.RTT, r.RTTBytes = now-last.at, last.bytes
		s.timer.sample(r.RTT)
	}
	if s.hi > s.cum {
		s.sacked.clearRange(s.cum, own)
	}
	r.NewPackets = uint32(c - s.cum)
	if s.second != nil {
		s.second.drop(s.cum, c)
	}
	if c > s.next { // what the second loop sent joined it
		s.next = c
		s.second.stats.Bumps++
	}
	s.cum = c
	s.resend = max(s.resend, c)
	s.timer.progress(now, c < s.next)
	if s.inRec || s.dups != 0 { // without an episode or duplicates there is nothing to do
		s.kind.Step(s, now, r)
	}
}

// has reports whether seq is SACKed.
func (s *Sender) has(seq uint64) bool { return s.hi > s.cum && seq <= s.hi && s.sacked.has(seq) }

// sack records that seq arrived although lower packets are missing.
func (s *Sender) sack(now frame.Time, seq uint64, r *AckResult) {
	if s.sacked.has(seq) {
		s.stats.StaleNaks++
		return
	}
	s.sacked.set(seq)
	p := s.record(seq)
	if p.flags&again == 0 {
		r.RTT, r.RTTBytes = now-p.at, p.bytes
		s.timer.sample(r.RTT)
	}
	if s.kind.Pipe {
		s.leave(p)
	}
	s.hi = max(s.hi, seq)
	old := max(s.edge, s.cum)
	if e, ok := s.sacked.nthBelow(s.hi, s.cum, s.cfg.threshold()); ok {
		s.edge = max(s.edge, e)
	}
	if s.edge <= s.cum || s.resend < s.next {
		return // too few to distinguish a loss from reordering; or everything is being sent again
	}
	if !s.inRec {
		s.Enter(now, r)
		old = s.cum
	}
	s.loseHoles(now, old, s.edge)
}

// Enter starts an episode of recovery, because of a loss that an acknowledgement with
// result r reported.
func (s *Sender) Enter(now frame.Time, r *AckResult) {
	s.stats.Recoveries++
	r.EnteredRecovery = true
	s.Begin(now, false)
}

// Begin starts an episode of recovery, or begins it anew. Where the receiver keeps what is
// out of order, the packet at Cum is sent again first.
func (s *Sender) Begin(now frame.Time, byTimeout bool) {
	s.inRec, s.byTimeout = true, byTimeout
	s.recSeq = s.next - 1
	if s.kind.Keeps {
		s.rtxFirst = true
		s.rtxNext = s.cum
		s.lose(now, s.cum)
	}
}

// EndEpisode ends the episode of recovery once all is acknowledged that was sent before
// its first retransmission, and reports whether there is none.
func (s *Sender) EndEpisode() bool {
	if s.inRec && s.cum > s.recSeq {
		s.inRec, s.rtxFirst = false, false
	}
	return !s.inRec
}

// Resend sends the packet at Cum again before anything else, unless this episode has done
// so already.
func (s *Sender) Resend(now frame.Time) {
	if s.rtxNext <= s.cum && s.resend == s.next && !s.rtxFirst {
		s.rtxFirst = true
		s.lose(now, s.cum)
	}
}

// GoBack makes the packet at Cum the next one to be sent: all from there on is sent again.
func (s *Sender) GoBack(now frame.Time) {
	for q := s.cum; q < s.resend; q++ {
		s.lose(now, q)
		s.leave(s.record(q))
	}
	s.resend, s.rtxFirst = s.cum, false
}

// loseHoles records that the packets of [from, to) that are not SACKed are lost. Only
// TCP's flight and delayed retransmissions depend on it.
func (s *Sender) loseHoles(now frame.Time, from, to uint64) {
	if !s.kind.Pipe && s.cfg.RetransmitDelay == 0 {
		return
	}
	for q := s.sacked.zero(from, to); q < to; q = s.sacked.zero(q+1, to) {
		if s.there(q) { // by RC3's second loop: what the ordinary one sent is lost all the same
			s.leave(s.record(q))
			continue
		}
		s.lose(now, q)
	}
}

// lose notes that seq is lost.
func (s *Sender) lose(now frame.Time, seq uint64) {
	p := s.record(seq)
	p.at = now
	p.flags |= again
	if s.kind.Pipe {
		s.leave(p)
	}
	if s.cfg.RetransmitDelay > 0 {
		s.wake = min(s.wake, now+s.cfg.RetransmitDelay)
	}
}

// leave removes a packet from the bytes in flight.
func (s *Sender) leave(p *record) {
	if p.flags&inFlight != 0 {
		p.flags &^= inFlight
		s.flight -= uint64(p.bytes)
	}
}
