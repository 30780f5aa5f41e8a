package transport

import (
	"math/bits"

	"gswitch/frame"
)

// PacketKind says what a packet means for its message.
type PacketKind uint8

const (
	Middle  PacketKind = iota // more of the message follows
	Last                      // ends a message: bumps the message sequence number
	LastCQE                   // ends a message that consumes a receive work request
)

// ReplyKind is the receiver's answer.
type ReplyKind uint8

const (
	None ReplyKind = iota
	AckReply
	NakReply
)

// Verdict is the outcome for a packet.
type Verdict struct {
	Deliver     bool // new: its payload must be placed
	Duplicate   bool // it was delivered before
	Reply       ReplyKind
	Cum         uint64 // the next packet expected
	Sack        uint64 // with NakReply: this packet, if NAKs name it
	MSN         uint32 // messages complete in order, 24 bits
	InOrder     uint32 // packets that became in-order by this one
	Completions uint32 // receive work requests that became complete, in order
}

// Receiver is the sink of one direction of a queue pair. The zero value is
// made ready by Init, which also recycles a used one.
type Receiver struct {
	cfg  *Config
	kind *Kind
	next uint64 // expected
	end  uint64 // one past the highest packet kept; nothing is kept unless above next
	msn  uint32

	// Two bits for each packet above next: 00 missing, 01 (low) Middle,
	// 10 (high) Last, 11 LastCQE.
	low, high bitmap

	naked   bool       // a NAK for the present gap was sent
	nakAt   frame.Time // when
	unacked uint32     // in-order packets since the last ACK
	replied uint64     // Cum of the last reply to the ordinary loop
	runFrom uint64     // the run that the second loop extends
	runTo   uint64
	stats   ReceiverStats
}

// ReceiverStats counts since Init.
type ReceiverStats struct {
	Delivered  uint64
	Duplicates uint64
	OutOfOrder uint64 // after a gap: delivered, or discarded if nothing is kept
	Beyond     uint64 // further ahead than the cap allows: no correct sender does that
	Naks       uint64
}

// Init makes r the receiver of a new direction. It keeps the memory that r
// has grown.
func (r *Receiver) Init(cfg *Config) {
	low, high := r.low, r.high
	kind := cfg.Kind()
	if kind.Keeps {
		n := max(ringSize(uint64(cfg.Cap)), 64*len(low))
		low, high = low.recycle(n), high.recycle(n)
	}
	*r = Receiver{cfg: cfg, kind: kind, low: low, high: high}
}

// Data processes packet seq.
func (r *Receiver) Data(now frame.Time, seq uint64, kind PacketKind) Verdict {
	switch {
	case seq == r.next:
		return r.expected(kind)
	case seq < r.next:
		r.stats.Duplicates++
		return r.ack(Verdict{Duplicate: true})
	case r.Beyond(seq):
		r.stats.Beyond++
		return Verdict{Cum: r.next, MSN: r.msn}
	case r.kind.Keeps:
		return r.keep(seq, kind)
	}
	return r.discard(now)
}

// DataLow processes a packet of RC3's second loop. It is placed and delivered like any
// other, but always answered at once, and its reply does not move the cumulative
// acknowledgement that clocks the ordinary loop's congestion control.
func (r *Receiver) DataLow(now frame.Time, seq uint64, kind PacketKind) Verdict {
	replied, unacked := r.replied, r.unacked
	v := r.Data(now, seq, kind)
	r.replied, r.unacked = replied, unacked
	if r.Beyond(seq) {
		return v
	}
	switch {
	case seq+1 == r.runFrom:
		r.runFrom = seq
	case seq == r.runTo:
		r.runTo++
	case seq < r.runFrom || seq > r.runTo:
		r.runFrom, r.runTo = seq, seq+1
	}
	v.Reply, v.Cum, v.Sack = AckReply, replied, 0
	return v
}

// Run returns the run of packets around seq, of the last call of DataLow, that have
// arrived: what the reply to it reports.
func (r *Receiver) Run(seq uint64) (first, end uint64) { return r.runFrom, max(r.runTo, seq+1) }

// expected accepts the packet at next, and whatever was kept directly after it.
func (r *Receiver) expected(kind PacketKind) (v Verdict) {
	r.stats.Delivered++
	v.Deliver, v.InOrder = true, 1
	r.next++
	r.naked = false
	if kind != Middle {
		r.msn++
	}
	if kind == LastCQE {
		v.Completions = 1
	}
	if r.end > r.next {
		r.drain(&v)
	}
	r.msn &= 1<<psnBits - 1
	r.unacked += v.InOrder
	if r.unacked >= r.cfg.AckEvery || kind != Middle || v.InOrder > 1 {
		return r.ack(v)
	}
	v.Cum, v.MSN = r.next, r.msn
	return v
}

// drain counts the packets kept from next on without a gap, a word at a time.
func (r *Receiver) drain(v *Verdict) {
	for r.next < r.end {
		low, high := r.low.word(r.next), r.high.word(r.next)
		shift := r.next & 63
		run := bits.TrailingZeros64(^((*low | *high) >> shift)) // up to 64-shift, since zeros are shifted in
		mask := (^uint64(0) >> (64 - run)) << shift             // run 0: no bits
		r.msn += uint32(bits.OnesCount64(*high & mask))
		v.Completions += uint32(bits.OnesCount64(*high & *low & mask))
		v.InOrder += uint32(run)
		*low &^= mask
		*high &^= mask
		r.next += uint64(run)
		if uint64(run)+shift < 64 {
			return
		}
	}
}

// keep accepts a packet after a gap. It is placed at once.
func (r *Receiver) keep(seq uint64, kind PacketKind) Verdict {
	v := Verdict{Reply: NakReply, Cum: r.next, Sack: r.next, MSN: r.msn}
	if r.kind.SACKs {
		v.Sack = seq
	}
	r.stats.Naks++
	r.unacked = 0
	r.replied = r.next
	if seq-r.next >= uint64(64*len(r.low)) {
		r.grow(seq)
	}
	if r.low.has(seq) || r.high.has(seq) {
		r.stats.Duplicates++
		v.Duplicate = true
		return v
	}
	r.stats.Delivered++
	r.stats.OutOfOrder++
	v.Deliver = true
	if kind != Last {
		r.low.set(seq)
	}
	if kind != Middle {
		r.high.set(seq)
	}
	r.end = max(r.end, seq+1)
	return v
}

// grow makes room for seq in the bitmaps of a receiver without a cap.
func (r *Receiver) grow(seq uint64) {
	n := ringSize(seq - r.next + 1)
	r.low = r.low.grow(n, r.next, r.end)
	r.high = r.high.grow(n, r.next, r.end)
}

// discard rejects a packet after a gap. A NAK for each would make the sender go back for
// each.
func (r *Receiver) discard(now frame.Time) Verdict {
	r.stats.OutOfOrder++
	v := Verdict{Cum: r.next, Sack: r.next, MSN: r.msn}
	due := r.cfg.NakInterval > 0 && now-r.nakAt > r.cfg.NakInterval
	if !r.naked || r.cfg.NakEvery || due {
		r.naked, r.nakAt, r.unacked = true, now, 0
		r.stats.Naks++
		v.Reply = NakReply
	}
	return v
}

// Answer turns the verdict on a packet that asked for an acknowledgement into one that
// sends it, even if coalescing would defer it.
func (r *Receiver) Answer(v Verdict) Verdict { return r.ack(v) }

func (r *Receiver) ack(v Verdict) Verdict {
	r.unacked = 0
	v.Reply, v.Cum, v.MSN = AckReply, r.next, r.msn
	r.replied = r.next
	return v
}

// Expected returns the sequence number of the next packet in order.
func (r *Receiver) Expected() uint64 { return r.next }

// Beyond reports whether the packet seq is further ahead than the cap allows.
// RC3's second loop is ahead of any.
func (r *Receiver) Beyond(seq uint64) bool {
	limit := r.cfg.limit()
	if r.cfg.Recursive != nil {
		limit = MaxFlight
	}
	return seq > r.next && seq-r.next >= limit
}

// MSN returns how many messages are complete in order, modulo 2^24.
func (r *Receiver) MSN() uint32 { return r.msn }

// Stats returns the counters.
func (r *Receiver) Stats() ReceiverStats { return r.stats }
