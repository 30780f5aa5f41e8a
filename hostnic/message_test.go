package hostnic

import (
	"testing"

	"gswitch/frame"
	"gswitch/transport"
)

// A message crosses a cable in the time that its bytes take, and both ends
// show it.
func TestMessageCrossesTwoNICs(t *testing.T) {
	p := newPair(t, nil)
	qa, _ := p.connect(nil)
	must(t, p.a.SendMessage(0, qa, 10_000, 7))
	p.run(frame.Millisecond)
	// 10 frames of 14+20+8+12+1000+4 = 1058 bytes at 100 Gb/s, then a cable of 1 us, an
	// acknowledgement of 62 bytes and the cable again.
	const data = 846 // 10*1058*8/100 = 846.4
	rx, tx := take(p.b), take(p.a)
	if len(rx) != 1 || rx[0].Bytes != 10_000 || rx[0].Op != RecvDone || rx[0].End != data+1000 || rx[0].Start != 84+1000 || rx[0].ID != 0 {
		t.Fatalf("receiver: %+v", rx)
	}
	if len(tx) != 1 || tx[0].Bytes != 10_000 || tx[0].Op != SendDone || tx[0].ID != 7 || tx[0].End != data+1000+4+1000 || tx[0].Start != 0 || tx[0].Status != StatusOK {
		t.Fatalf("sender: %+v", tx)
	}
	p.drained()
}

// Under loss of both data and acknowledgements every byte is delivered once,
// in order of messages, by each transport.
func TestEveryByteOnceUnderLoss(t *testing.T) {
	for _, mode := range []*transport.Kind{transport.GoBackN, transport.IRN, transport.IRNGoBackN, transport.IRNNoSACK, transport.TCP} {
		for seed := uint64(1); seed <= 8; seed++ {
			p := newPair(t, nil)
			rng := frame.NewRand(seed)
			p.lose = func(*frame.Meta, []byte) bool { return rng.Uint32n(100) < 4 }
			qa, qb := p.connect(func(c *QPConfig) {
				c.InitialPSN = 0xffffe0 // wraps
				c.Transport = transport.Config{Recovery: mode, RTOHigh: 50 * frame.Microsecond, RTOLow: 20 * frame.Microsecond, N: 3,
					Cap: 60, NakInterval: 20 * frame.Microsecond, AckEvery: uint32(seed % 3)}
			})
			var sizes []uint64
			for i := range 60 {
				sizes = append(sizes, []uint64{0, 1, 999, 1000, 1001, 2000, 12345, uint64(rng.Uint32n(30000))}[i%8])
				must(t, p.a.SendMessage(p.now, qa, sizes[i], uint64(i)))
			}
			p.run(frame.Second)
			tx, rx := take(p.a), take(p.b)
			if len(tx) != 60 || len(rx) != 60 {
				t.Fatalf("%v seed %d: %d and %d of 60 messages complete", mode, seed, len(tx), len(rx))
			}
			total := uint64(0)
			for i := range sizes {
				total += sizes[i]
				if tx[i].ID != uint64(i) || tx[i].Bytes != sizes[i] || rx[i].ID != uint64(i) || rx[i].Bytes != sizes[i] || rx[i].End > tx[i].End || rx[i].Start > rx[i].End {
					t.Fatalf("%v seed %d: message %d of %d bytes: %+v, %+v", mode, seed, i, sizes[i], tx[i], rx[i])
				}
			}
			v, err := p.b.QP(qb)
			must(t, err)
			if v.Stats.RxBytes != total {
				t.Fatalf("%v seed %d: %d bytes delivered, not %d", mode, seed, v.Stats.RxBytes, total)
			}
			if p.a.Counts().Retransmissions == 0 {
				t.Fatalf("%v seed %d: nothing was lost", mode, seed)
			}
			p.drained()
		}
	}
}

// A message begins when its first frame arrives, not when the one before
// ended; both wait in one queue, and the second is posted late.
func TestMessageStart(t *testing.T) {
	p := newPair(t, nil)
	qa, _ := p.connect(nil)
	must(t, p.a.SendMessage(0, qa, 1000, 0))
	p.run(50 * frame.Microsecond)
	must(t, p.a.SendMessage(p.now, qa, 2000, 1))
	must(t, p.a.SendMessage(p.now, qa, 1000, 2))
	p.run(frame.Millisecond)
	v := take(p.b)
	if len(v) != 3 || v[0].Start != 1084 || v[1].Start != 51_084 || v[1].End != 51_169 || v[2].Start != v[2].End || v[2].End != 51_253 {
		t.Fatalf("%+v", v)
	}
}

// A program that takes completions as they come, and always leaves one, makes nothing grow.
func TestCompletionsLeftBehind(t *testing.T) {
	p := newPair(t, nil)
	qa, _ := p.connect(nil)
	must(t, p.a.SendMessage(0, qa, 1, 0))
	var one [1]Completion
	for i := range uint64(5000) {
		must(t, p.a.SendMessage(p.now, qa, 1, i+1))
		p.run(p.now + 10*frame.Microsecond)
		if p.a.TakeCompletions(one[:]) != 1 || one[0].ID != i || p.a.Completed() != 1 {
			t.Fatalf("%+v was taken as number %d, %d are left", one[0], i, p.a.Completed())
		}
		take(p.b)
	}
	if c := cap(p.a.done); c > 16 {
		t.Errorf("the list of completions has grown to %d", c)
	}
}

// A message has at most 2^31 packets.
func TestLongestMessage(t *testing.T) {
	p := newPair(t, nil)
	qa, _ := p.connect(nil)
	most := uint64(1<<31) * uint64(p.a.cfg.Payload)
	must(t, p.a.SendMessage(0, qa, most-1, 1))
	for _, bytes := range []uint64{most, 1<<64 - 1} {
		if p.a.SendMessage(0, qa, bytes, 2) == nil {
			t.Errorf("a message of %d bytes is taken", bytes)
		}
	}
}
