package transport

import (
	"testing"

	"gswitch/frame"
)

func BenchmarkReceiverInOrder(b *testing.B) {
	var r Receiver
	r.Init(irn(128))
	for i := range b.N {
		r.Data(0, uint64(i), Middle)
	}
}

// One packet of each 64 comes last: the rest goes through the bitmaps.
func BenchmarkReceiverOutOfOrder(b *testing.B) {
	var r Receiver
	r.Init(irn(128))
	for i := range b.N {
		seq := uint64(i)
		switch seq & 63 {
		case 63:
			seq -= 63
		default:
			seq++
		}
		r.Data(0, seq, PacketKind(seq%3))
	}
}

func benchmarkRoundTrips(b *testing.B, cfg *Config, lossEvery uint64) {
	x := newLoop(cfg, lossEvery)
	for range b.N {
		x.step()
	}
}

func BenchmarkSenderLossless(b *testing.B) { benchmarkRoundTrips(b, irn(110), 1<<62) }
func BenchmarkSenderIRNLoss(b *testing.B)  { benchmarkRoundTrips(b, irn(110), 100) }
func BenchmarkSenderGoBackNLoss(b *testing.B) {
	benchmarkRoundTrips(b, &Config{Recovery: GoBackN, Cap: 110, RTOHigh: frame.Millisecond}, 100)
}

// loop is a sender and a receiver 64 packets apart that lose one in so many.
type loop struct {
	s         Sender
	r         Receiver
	now       frame.Time
	sent      uint64
	lossEvery uint64
	pipe      [64]Ack
	filled    [64]bool
}

func newLoop(cfg *Config, lossEvery uint64) *loop {
	x := &loop{lossEvery: lossEvery}
	x.s.Init(cfg)
	x.r.Init(cfg)
	return x
}

// step sends a packet and takes the answer to the one of 64 steps ago.
func (x *loop) step() {
	x.now += 200
	slot := x.sent & 63
	x.sent++
	if x.filled[slot] {
		x.s.Ack(x.now, x.pipe[slot])
		x.filled[slot] = false
	}
	if x.now >= x.s.Deadline() {
		x.s.Timeout(x.now)
	}
	seq, rtx, ok := x.s.Peek(x.now, 1<<60)
	if !ok {
		return
	}
	x.s.Sent(x.now, seq, 1000, rtx)
	if x.sent%x.lossEvery == 0 {
		return
	}
	if v := x.r.Data(x.now, seq, Middle); v.Reply != None {
		x.pipe[slot], x.filled[slot] = Ack{NAK: v.Reply == NakReply, Cum: v.Cum, Sack: v.Sack}, true
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, kind := range Kinds() {
		cfg := irn(110)
		cfg.Recovery = kind
		x := newLoop(cfg, 100)
		for range 10_000 {
			x.step()
		}
		before := x.s.Cum()
		if n := testing.AllocsPerRun(10, func() {
			for range 1000 {
				x.step()
			}
		}); n != 0 {
			t.Errorf("%v: %v allocations in 1000 packets", kind, n)
		}
		if x.s.Cum()-before < 1000 {
			t.Errorf("%v: only %d packets in 11000 steps", kind, x.s.Cum()-before)
		}
		if n := testing.AllocsPerRun(10, func() { x.s.Init(cfg); x.r.Init(cfg) }); n != 0 {
			t.Errorf("%v: %v allocations for a recycled queue pair", kind, n)
		}
	}
}
