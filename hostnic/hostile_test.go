package hostnic

import (
	"testing"

	"gswitch/frame"
	inband "gswitch/int"
	"gswitch/transport"
	"gswitch/wire"
)

// victim is a NIC with queue pairs of every kind in the middle of their work,
// and the frames that its peer sent it.
type victim struct {
	*pair
	frames [][]byte
}

func newVictim(t testing.TB, virtual bool) *victim {
	g := newRig(t, 4096, 2048)
	v := &victim{pair: newPairOn(t, g, func(_ int, c *Config) {
		c.PFC, c.PFCClasses, c.Virtual = true, 1<<3, virtual
		c.CNP.Frames = true
	})}
	// What the victim (b) receives: data, acknowledgements, NAKs, CNPs.
	v.seen = func(from int, m *frame.Meta, b []byte) {
		if from == 0 && len(v.frames) < 300 {
			v.frames = append(v.frames, append([]byte(nil), b...))
		}
	}
	rng := frame.NewRand(1)
	v.lose = func(m *frame.Meta, b []byte) bool {
		if m.Wire > 200 && rng.Uint32n(4) == 0 { // congestion: CE on IPv4
			b[15] |= 3
			s := uint32(b[24])<<8 | uint32(b[25])
			s--
			b[24], b[25] = byte(s>>8), byte(s)
		}
		return rng.Uint32n(10) == 0
	}
	for i, mode := range []*transport.Kind{transport.GoBackN, transport.IRN, transport.TCP, transport.IRN} {
		telem := []inband.Mode{inband.None, inband.HPCC, inband.INTMD, inband.HPCCGrow}[i]
		qa, qb := v.connect(func(c *QPConfig) {
			c.INT = telem
			c.CC = factory(t, []string{"dcqcn", "hpcc", "newreno", "hpcc"}[i], nil)
			c.Transport = transport.Config{Recovery: mode, Cap: 40, RTOHigh: 30 * frame.Microsecond, NakEvery: true}
		})
		must(t, v.a.SendMessage(0, qa, 20_000, 0))
		must(t, v.b.SendMessage(0, qb, 20_000_000, 0))
	}
	v.run(30 * frame.Microsecond)
	v.lose, v.seen = nil, nil
	return v
}

// total is every frame that the NIC has accounted for.
func total(n *NIC, now frame.Time) uint64 {
	s, f := n.Counts(), n.Flow(now)
	sum := s.Delivered + s.Duplicates + s.OutOfOrder + s.AcksReceived + s.NaksReceived + s.CNPsReceived + f.RxFrames + f.RxPause
	for why, k := range s.Drops {
		if why != int(frame.ArenaExhausted) {
			sum += k
		}
	}
	return sum
}

// Frames of a peer with bits flipped, bytes overwritten, ends cut off and
// parts of one put into another: no panic, and every one is accounted for.
func TestHostileFrames(t *testing.T) {
	for _, virtual := range []bool{true, false} {
		v := newVictim(t, virtual)
		rng := frame.NewRand(7)
		if len(v.frames) < 50 {
			t.Fatalf("only %d frames to mutate", len(v.frames))
		}
		before := total(v.b, v.now)
		const n = 60_000
		for i := range n {
			b := append([]byte(nil), v.frames[rng.Uint32n(uint32(len(v.frames)))]...)
			mutate(&rng, b, v.frames)
			if rng.Uint32n(8) == 0 {
				b = b[:rng.Uint32n(uint32(len(b)+1))]
			}
			r := v.pool.New(b)
			if m := v.pool.Meta(r); virtual && rng.Uint32n(4) != 0 {
				m.Wire = max(m.Wire, 1200)
			}
			v.b.Expect(0, r)
			v.b.Receive(v.now, 0, []frame.Ref{r})
			if i%64 == 0 {
				v.run(v.now + 100) // it goes on with its own work
			}
		}
		after := total(v.b, v.now)
		// Frames of host a arrive as well while it runs.
		if got := after - before; got < n || got > n+v.a.Counts().TxFrames {
			t.Errorf("virtual %v: %d frames were accounted for, %d were injected", virtual, got, n)
		}
		if got := v.b.Counts().RxFrames; got != after {
			t.Errorf("virtual %v: %d frames received, %d accounted for", virtual, got, after)
		}
		kinds := 0
		for _, k := range v.b.Counts().Drops {
			if k > 0 {
				kinds++
			}
		}
		if kinds < 6 {
			t.Errorf("virtual %v: only %d reasons were met", virtual, kinds)
		}
	}
}

func mutate(rng *frame.Rand, b []byte, frames [][]byte) {
	if len(b) == 0 {
		return
	}
	for range 1 + rng.Uint32n(4) {
		at := rng.Uint32n(uint32(min(len(b), 110)))
		switch rng.Uint32n(4) {
		case 0:
			b[at] ^= 1 << rng.Uint32n(8)
		case 1:
			b[at] = byte(rng.Uint64())
		case 2:
			b[at] = []byte{0, 1, 0x7f, 0x80, 0xff}[rng.Uint32n(5)]
		case 3:
			other := frames[rng.Uint32n(uint32(len(frames)))]
			if int(at) < len(other) {
				copy(b[at:], other[at:min(len(other), int(at)+int(rng.Uint32n(16)))])
			}
		}
	}
	if len(b) >= 34 && b[12] == 8 && rng.Uint32n(4) != 0 { // most get past the header checksum
		if b[14]&0xf >= 5 && len(b) >= 14+int(b[14]&0xf)*4 {
			wire.IPv4(b[14:]).UpdateChecksum()
		}
	}
}

// Any bytes whatever, at a NIC in the middle of its work.
func FuzzReceive(f *testing.F) {
	for _, virtual := range []bool{true, false} {
		v := newVictim(f, virtual)
		for i, b := range v.frames {
			if i%10 == 0 {
				f.Add(b, virtual)
			}
		}
	}
	v := [2]*victim{newVictim(f, true), newVictim(f, false)}
	f.Fuzz(func(t *testing.T, b []byte, virtual bool) {
		w := v[0]
		if !virtual {
			w = v[1]
		}
		r := w.pool.New(b)
		if r == frame.Nil {
			return
		}
		w.b.Receive(w.now, 0, []frame.Ref{r})
		if got, want := total(w.b, w.now), w.b.Counts().RxFrames; got != want {
			t.Fatalf("%d frames received, %d accounted for", want, got)
		}
		var out [64]frame.Ref
		w.now += 50
		for _, r := range out[:w.b.Transmit(w.now, 0, out[:])] {
			w.pool.Free(r)
		}
		w.b.Advance(w.now)
	})
}

// An acknowledgement of what was never sent, and a frame of another host, are
// counted and change nothing.
func TestForgedFrames(t *testing.T) {
	p := newPair(t, nil)
	qa, _ := p.connect(func(c *QPConfig) { c.Transport.RTOHigh = 0 })
	var ack []byte
	p.seen = func(from int, m *frame.Meta, b []byte) {
		if from == 1 {
			ack = append([]byte(nil), b...)
		}
	}
	must(t, p.a.SendMessage(0, qa, 5000, 0))
	p.run(frame.Millisecond)
	take(p.a)
	must(t, p.a.SendMessage(p.now, qa, 5000, 1))
	before, _ := p.a.QP(qa)
	for why, change := range map[frame.Reason]func(b []byte){
		frame.QPSequence: func(b []byte) { b[53] = 9 },
		frame.QPPeer:     func(b []byte) { b[29] = 77; reseal(b) },
		frame.QPUnknown:  func(b []byte) { b[48] ^= 0x20 },
		frame.QPStale:    func(b []byte) { b[47] ^= 4 },
		frame.QPOpcode:   func(b []byte) { b[42] = 0x81 - 1 },
		frame.ForeignMAC: func(b []byte) { b[5] ^= 7 },
	} {
		b := append([]byte(nil), ack...)
		change(b)
		n := p.a.Counts().Drops[why]
		r := p.pool.New(b)
		p.pool.Meta(r).Wire = 62
		p.a.Receive(p.now, 0, []frame.Ref{r})
		if p.a.Counts().Drops[why] != n+1 {
			t.Errorf("%v: not counted; drops %v", why, p.a.Counts().Drops)
		}
	}
	if after, _ := p.a.QP(qa); after != before {
		t.Errorf("forged frames changed\n%+v to\n%+v", before, after)
	}
}

// reseal writes the checksum of the IPv4 header.
func reseal(b []byte) { wire.IPv4(b[14:34]).UpdateChecksum() }
