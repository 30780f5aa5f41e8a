package hostnic

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"gswitch/frame"
	inband "gswitch/int"
	"gswitch/transport"
	"gswitch/wire"
)

// framesPair is two NICs on one cable with a queue pair for frames.
type framesPair struct {
	*pair
	qa, qb uint32
	got    [][]byte
}

func newFramesPair(t testing.TB, mode *transport.Kind, change func(c *Config)) *framesPair {
	p := &framesPair{pair: newPairOn(t, newRig(t, 4096, 2048), func(_ int, c *Config) {
		c.Virtual, c.Payload, c.RandomNumbers = false, 1400, true
		c.BaseRTT = 100 * frame.Microsecond
		if change != nil {
			change(c)
		}
	})}
	p.qa, p.qb = p.connect(func(c *QPConfig) {
		c.INT = inband.HPCC
		c.Transport = transport.Config{Recovery: mode, Cap: 64, RTOHigh: 500 * frame.Microsecond, RTOLow: 200 * frame.Microsecond, N: 3}
		c.Frames = &FramesConfig{PKey: 0x1234}
	})
	return p
}

// send posts an IPv4 packet with a number in it.
func (p *framesPair) send(number uint32, size int) frame.Reason {
	b := make([]byte, max(size, 20))
	b[0] = 0x45
	be.PutUint32(b[4:], number)
	b = b[:size]
	r := p.pool.New(b)
	if r == frame.Nil {
		return frame.ArenaExhausted
	}
	why := p.a.SendFrame(p.now, p.qa, r)
	if why != frame.Keep {
		p.pool.Free(r)
	}
	return why
}

// take takes what arrived at the other end.
func (p *framesPair) take() {
	var v [16]Arrived
	for n := p.b.TakeFrames(v[:]); n > 0; n = p.b.TakeFrames(v[:]) {
		for _, a := range v[:n] {
			p.got = append(p.got, bytes.Clone(p.pool.Bytes(a.Ref)))
			p.pool.Free(a.Ref)
		}
	}
}

func (p *framesPair) settle(span frame.Time) {
	for end := p.now + span; p.now < end; {
		p.run(p.now + 20*frame.Microsecond)
		p.take()
	}
}

// Packets arrive in order, once and as they were, whatever the link does to
// them, and short ones, whose acknowledgements are put off, among them; then
// nothing is under way any more.
func TestFramesArrive(t *testing.T) {
	for _, mode := range []*transport.Kind{transport.GoBackN, transport.IRN, transport.TCP} {
		rapid.Check(t, func(rt *rapid.T) {
			p := newFramesPair(t, mode, nil)
			rng := frame.NewRand(rapid.Uint64().Draw(rt, "seed"))
			loss := uint32(rapid.IntRange(0, 20).Draw(rt, "loss"))
			sizes := rapid.SliceOfN(rapid.IntRange(20, 1400), 1, 200).Draw(rt, "sizes")
			p.lose = func(*frame.Meta, []byte) bool { return rng.Uint32n(100) < loss }
			for i, size := range sizes {
				if why := p.send(uint32(i), size); why != frame.Keep {
					rt.Fatalf("packet %d of %d bytes: %v", i, size, why)
				}
				if rng.Uint32n(4) == 0 {
					p.settle(20 * frame.Microsecond)
				}
			}
			p.settle(20 * frame.Millisecond)
			p.lose = nil
			p.settle(20 * frame.Millisecond)
			if len(p.got) != len(sizes) {
				rt.Fatalf("%v: %d of %d packets arrived", mode, len(p.got), len(sizes))
			}
			for i, b := range p.got {
				if len(b) != wire.EthernetLen+sizes[i] || be.Uint32(b[wire.EthernetLen+4:]) != uint32(i) || be.Uint16(b[12:]) != wire.EtherTypeIPv4 {
					rt.Fatalf("%v: packet %d arrived as % x", mode, i, b[:min(len(b), 40)])
				}
			}
			if n, k := p.a.Backlog(p.qa); n != 0 || k != 0 {
				rt.Fatalf("%v: %d bytes, %d packets are not acknowledged", mode, n, k)
			}
			p.drained()
		})
	}
}

// Four short packets share an acknowledgement; one that comes alone, and any
// long one, has its own at once; the last of a few is acknowledged in time, so
// that nothing is sent again.
func TestFramesAcknowledgements(t *testing.T) {
	p := newFramesPair(t, transport.IRN, nil)
	acks := func(count, size int, span frame.Time) uint64 {
		before := p.b.Counts().AcksSent
		for i := range count {
			p.send(uint32(i), size)
		}
		p.settle(span)
		return p.b.Counts().AcksSent - before
	}
	for _, c := range []struct {
		count, size int
		span        frame.Time
		want        uint64
	}{
		{1, 52, 20 * frame.Microsecond, 1},
		{8, 1400, frame.Millisecond, 8},
		{8, shortPacket + 1, frame.Millisecond, 8},
		{17, shortPacket, frame.Millisecond, 5}, // the first, then each fourth
		{3, 52, frame.Millisecond, 2},           // the first, then the other two when it is time
	} {
		p.settle(frame.Millisecond)
		if got := acks(c.count, c.size, c.span); got != c.want {
			t.Errorf("%d packets of %d bytes: %d acknowledgements, want %d", c.count, c.size, got, c.want)
		}
	}
	if n := p.a.Counts(); n.Retransmissions != 0 || n.Timeouts != 0 {
		t.Errorf("%d sent again, %d timeouts", n.Retransmissions, n.Timeouts)
	}
	p.drained()
}

// What cannot be sent is refused with its reason, and remains the caller's.
func TestFramesRefused(t *testing.T) {
	p := newFramesPair(t, transport.IRN, nil)
	for _, size := range []int{0, 1401} {
		if why := p.send(1, size); why != frame.MTUExceeded {
			t.Errorf("%d bytes: %v", size, why)
		}
	}
	if why := p.a.SendFrame(0, p.qa+1<<20, 0); why == frame.Keep {
		t.Error("a packet was taken for a queue pair that is not there")
	}
	sent := 0
	why := frame.Keep
	for ; why == frame.Keep; sent++ {
		why = p.send(uint32(sent), 100)
	}
	if why != frame.BufferFull || sent-1 != p.pool.Chunks()/carriedShare {
		t.Errorf("%d packets, then %v", sent-1, why)
	}
	p.settle(10 * frame.Millisecond)
	if len(p.got) != sent-1 {
		t.Errorf("%d of %d packets arrived", len(p.got), sent-1)
	}
	p.drained()
}

// Closing drops what is under way at both ends, with a reason, and leaves
// nothing; the queue pair after it begins anew.
func TestFramesClose(t *testing.T) {
	p := newFramesPair(t, transport.IRN, nil)
	n := 0
	p.lose = func(m *frame.Meta, _ []byte) bool { n++; return n == 3 } // what follows waits behind a gap
	for i := range 30 {
		p.send(uint32(i), 1000)
	}
	p.run(p.now + 3*frame.Microsecond)
	must(t, p.a.CloseQP(p.now, p.qa))
	must(t, p.b.CloseQP(p.now, p.qb))
	p.settle(frame.Millisecond)
	if p.a.Counts().Drops[frame.QueueFlush] == 0 {
		t.Error("nothing was dropped")
	}
	p.drained()
}

// Frames without a queue pair take turns with data: neither holds up the other.
func TestPlainFramesTakeTurns(t *testing.T) {
	p := newFramesPair(t, transport.IRN, func(c *Config) { c.Rate = 1e9 })
	var order []bool
	p.seen = func(from int, m *frame.Meta, b []byte) {
		if from == 0 && m.Wire > 500 {
			order = append(order, be.Uint16(b[12:]) == 0x88b5)
		}
	}
	plain := make([]byte, 1000)
	be.PutUint16(plain[12:], 0x88b5) // IEEE 802: local experiments
	for i := range 20 {
		p.send(uint32(i), 1000)
		if !p.a.QueueFrame(p.now, p.pool.New(plain), false, 20) {
			t.Fatal("not queued")
		}
	}
	if p.a.QueuedFrames() != 20 || p.a.QueueFrame(p.now, p.pool.New(plain), false, 20) {
		t.Errorf("%d frames wait, and another one was queued", p.a.QueuedFrames())
	}
	p.settle(10 * frame.Millisecond)
	if len(order) != 40 {
		t.Fatalf("%d frames left", len(order))
	}
	for i := 2; i < 38; i++ {
		if order[i] == order[i-1] && order[i-1] == order[i-2] {
			t.Fatalf("no turns: %v", order)
		}
	}
	p.drained()
}

// A packet costs no memory, and so much time from SendFrame to the other end
// and back.
func BenchmarkFrames(b *testing.B) {
	for _, c := range []struct {
		name string
		size int
	}{{"full", 1400}, {"short", 52}} {
		b.Run(c.name, func(b *testing.B) {
			p := newFramesPair(b, transport.IRN, nil)
			cycle := p.cycle(c.size)
			b.ReportAllocs()
			for b.Loop() {
				cycle()
			}
		})
	}
}

func TestFramesAllocations(t *testing.T) {
	for _, size := range []int{52, 1400} {
		cycle := newFramesPair(t, transport.IRN, nil).cycle(size)
		for range 1000 {
			cycle()
		}
		if n := testing.AllocsPerRun(1000, cycle); n != 0 {
			t.Errorf("%d bytes: %v allocations", size, n)
		}
	}
}

// cycle returns a function that sends a packet, and what answers it.
func (p *framesPair) cycle(size int) func() {
	packet := make([]byte, size)
	packet[0] = 0x45
	var out [8]frame.Ref
	var arrived [8]Arrived
	now := p.now
	hand := func(from, to *NIC) {
		from.Advance(now)
		for _, r := range out[:from.Transmit(now, 0, out[:])] {
			one := [1]frame.Ref{r}
			to.Receive(now, 0, one[:])
		}
	}
	return func() {
		now += 10 * frame.Microsecond
		p.a.SendFrame(now, p.qa, p.pool.New(packet))
		hand(p.a, p.b)
		for _, a := range arrived[:p.b.TakeFrames(arrived[:])] {
			p.pool.Free(a.Ref)
		}
		hand(p.b, p.a)
	}
}
