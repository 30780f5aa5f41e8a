package transport

import "gswitch/frame"

// Sender is the source of one direction of a queue pair. The zero value is made ready by
// Init, which also recycles a used one.
//
// In flight is what was sent and is not cumulatively acknowledged. In IRN that includes
// packets which the receiver is known to have: a cap that did not count them would
// overrun the receiver's bitmap. Going back removes the packets after the point of return
// from the flight until they are sent again, and in TCP SACKed and lost packets leave it
// (the "pipe" of RFC 6675). Where NewReno would inflate its window, the flight is reduced
// instead.
type Sender struct {
	cfg  *Config
	kind *Kind
	cum  uint64 // the receiver expects this one next
	next uint64 // the next one that was never sent

	// Recovery.
	inRec     bool
	rtxFirst  bool   // the packet at cum is to be sent again before anything else
	byTimeout bool   // a timeout began the episode
	recSeq    uint64 // the last new packet before the first retransmission: cum beyond it ends the episode
	rtxNext   uint64 // selective: holes below were retransmitted in this episode
	resend    uint64 // going back: the next one to send, next if none is sent again
	sacked    bitmap // selective: arrived above cum
	hi        uint64 // highest SACKed sequence number; none unless above cum
	edge      uint64 // holes below are lost: the lowest of the threshold's highest SACKed packets
	dups      int    // NewReno: duplicate acknowledgements since the last step
	inflation uint64 // NewReno: bytes that have left the network, as duplicates in recovery show

	second *second // of RC3; nil: none

	records []record // ring, by sequence number
	flight  uint64   // payload bytes in flight

	timer timer
	wake  frame.Time // time at which a delayed retransmission is ready
	hold  frame.Time // nothing is offered before this time

	stats  SenderStats
	result AckResult // of the acknowledgement under way
}

// SenderStats counts since Init.
type SenderStats struct {
	Sent            uint64 // packets, retransmissions included
	Retransmissions uint64
	Recoveries      uint64 // episodes that a NAK began
	Timeouts        uint64 // that had an effect
	StaleNaks       uint64 // NAKs that said nothing new and were ignored
	BadAcks         uint64 // acknowledgements of what was never sent, ignored
}

// record is what the sender keeps of a packet in flight.
type record struct {
	at    frame.Time // when it was sent; once lost, when that was noticed
	bytes uint32     // payload
	flags uint32
}

const (
	inFlight uint32 = 1 << iota // its bytes are in Sender.flight
	again                       // sent more than once, or lost: no round-trip sample
	skipped                     // never sent: it arrived by the second loop
)

// Init makes s the idle sender of a new direction. It keeps the memory that s
// has grown.
func (s *Sender) Init(cfg *Config) {
	records, sacked := s.records, s.sacked
	if len(records) == 0 {
		records = make([]record, 64)
	}
	kind := cfg.Kind()
	if kind.SACKs {
		sacked = sacked.recycle(len(records))
	}
	loop := s.second
	switch {
	case cfg.Recursive == nil:
		loop = nil
	case loop == nil:
		loop = new(second)
		fallthrough
	default:
		n := max(64, 64*len(loop.sent))
		*loop = second{cfg: cfg.Recursive, chunks: loop.chunks[:0], sent: loop.sent.recycle(n), arrived: loop.arrived.recycle(n)}
	}
	*s = Sender{cfg: cfg, kind: kind, second: loop, records: records, sacked: sacked, wake: frame.Never}
	s.timer.init(cfg)
}

// Peek returns the packet that may be sent now: a retransmission first, then the next new
// one, if it is below posted and the cap has room. The caller applies congestion control
// itself and calls Sent if the packet leaves.
func (s *Sender) Peek(now frame.Time, posted uint64) (seq uint64, rtx, ok bool) {
	if now < s.hold {
		s.wake = min(s.wake, s.hold)
		return 0, false, false
	}
	if s.second != nil && s.resend < s.next {
		s.resend = s.second.arrived.zero(s.resend, s.next)
	}
	if s.resend < s.next {
		return s.resend, true, s.ripe(now, s.resend)
	}
	if s.inRec {
		if seq, ok = s.lost(now); ok {
			return seq, true, true
		}
	}
	if next := s.unsent(posted); next < posted && next-s.cum < s.cfg.limit() {
		return next, false, true
	}
	return 0, false, false
}

// lost returns the next lost packet of the episode that is to be sent again.
func (s *Sender) lost(now frame.Time) (uint64, bool) {
	if s.rtxFirst {
		return s.cum, s.ripe(now, s.cum)
	}
	if s.edge <= s.cum {
		return 0, false
	}
	// Each hole once in an episode: rtxNext only moves forward.
	s.rtxNext = s.sacked.zero(max(s.rtxNext, s.cum), s.edge)
	for s.rtxNext < s.edge && s.there(s.rtxNext) {
		s.rtxNext = s.sacked.zero(s.rtxNext+1, s.edge)
	}
	return s.rtxNext, s.rtxNext < s.edge && s.ripe(now, s.rtxNext)
}

// ripe reports whether the retransmission of seq has been fetched by now.
func (s *Sender) ripe(now frame.Time, seq uint64) bool {
	if s.cfg.RetransmitDelay == 0 {
		return true
	}
	if at := s.record(seq).at + s.cfg.RetransmitDelay; at > now {
		s.wake = at
		return false
	}
	return true
}

// Sent says that the packet of Peek leaves now with this payload.
func (s *Sender) Sent(now frame.Time, seq uint64, payload uint32, rtx bool) {
	s.stats.Sent++
	if !rtx {
		if s.next < seq {
			s.skip(seq)
		}
		if seq-s.cum == uint64(len(s.records)) {
			s.grow()
		}
		*s.record(seq) = record{at: now, bytes: payload, flags: inFlight}
		s.flight += uint64(payload)
		s.next = seq + 1
		s.resend = s.next
	} else {
		s.stats.Retransmissions++
		s.resent(now, seq)
	}
	s.timer.sent(now)
}

func (s *Sender) resent(now frame.Time, seq uint64) {
	r := s.record(seq)
	r.at = now
	r.flags |= again
	if r.flags&inFlight == 0 {
		r.flags |= inFlight
		s.flight += uint64(r.bytes)
	}
	if s.resend < s.next {
		s.resend = seq + 1
		return
	}
	s.rtxFirst = false
	s.rtxNext = seq + 1
	if s.kind.Resent != nil {
		s.kind.Resent(s)
	}
}

// AddsToFlight reports whether sending the packet of Peek increases the bytes in flight,
// so that it must respect a congestion window. A selective retransmission does not in
// IRN, and the first of a TCP recovery is free (RFC 6675 5 (4.3)).
func (s *Sender) AddsToFlight(rtx bool) bool {
	switch {
	case !rtx || s.resend < s.next:
		return true
	case s.kind.Windowed:
		return !s.rtxFirst
	}
	return false
}

func (s *Sender) record(seq uint64) *record { return &s.records[seq&uint64(len(s.records)-1)] }

// grow doubles the ring of records and, beside it, the bitmap.
func (s *Sender) grow() {
	old := s.records
	s.records = make([]record, 2*len(old))
	for q := s.cum; q < s.next; q++ {
		*s.record(q) = old[q&uint64(len(old)-1)]
	}
	if s.kind.SACKs {
		s.sacked = s.sacked.grow(len(s.records), s.cum, s.next)
	}
}

// Cum returns the sequence number that the receiver expects next.
func (s *Sender) Cum() uint64 { return s.cum }

// Next returns the sequence number of the next packet that was never sent.
func (s *Sender) Next() uint64 { return s.next }

// InFlight returns the packets that are sent and not acknowledged, from Cum
// to Next; while going back, to the next packet to be sent again.
func (s *Sender) InFlight() uint32 { return uint32(s.resend - s.cum) }

// BytesInFlight returns the payload bytes in flight: what a congestion window
// limits. See Sender for what each mode counts.
func (s *Sender) BytesInFlight() uint64 { return s.flight - min(s.inflation, s.flight) }

// GoesBack reports whether packets from Cum on are being sent again, one after
// the other, and the payload bytes of those that were.
func (s *Sender) GoesBack() (bytes uint64, ok bool) { return s.flight, s.resend < s.next }

// InRecovery reports whether a loss is being repaired, and ByTimeout whether a timeout
// began it.
func (s *Sender) InRecovery() bool { return s.inRec }
func (s *Sender) ByTimeout() bool  { return s.inRec && s.byTimeout }

// Config returns the configuration, which the rules of a Kind read.
func (s *Sender) Config() *Config { return s.cfg }

// Retransmissions returns how many packets were sent again.
func (s *Sender) Retransmissions() uint64 { return s.stats.Retransmissions }

// Stats returns the counters.
func (s *Sender) Stats() SenderStats { return s.stats }

// Rewind goes back to Cum, whatever the recovery, after a NAK that is not about a gap:
// the receiver was not ready. Nothing is offered before until.
func (s *Sender) Rewind(now, until frame.Time) {
	if s.cum == s.next {
		return
	}
	s.inRec, s.rtxFirst = false, false
	s.dups, s.inflation = 0, 0
	s.GoBack(now)
	if s.hi > s.cum {
		// What arrives of the packets sent again is reported again.
		s.sacked.clearRange(s.cum, s.next)
		s.hi, s.edge = s.cum, s.cum
	}
	if s.hold = until; until > now {
		s.wake = min(s.wake, until)
	}
	if s.timer.armed {
		s.timer.restart(max(now, until))
	}
}
