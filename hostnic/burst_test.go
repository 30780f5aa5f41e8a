package hostnic

import (
	"testing"

	"gswitch/frame"
)

// A link that may catch up does so after a late caller, not after a time in
// which no queue pair had anything to send: no frame departs before it was there.
func TestBurstIsNoCredit(t *testing.T) {
	cfg := stackConfig(1, false)
	cfg.Rate, cfg.Burst = 1e9, frame.Millisecond
	n, err := New(&cfg, frame.NewPool(frame.MustArena(256, 2048, 32)))
	must(t, err)
	mac := testMAC(2)
	qpn, err := n.OpenQP(0, &QPConfig{RemoteAddr: stackConfig(2, false).Addr, RemoteMAC: mac})
	must(t, err)
	must(t, n.ConnectQP(0, qpn, 1))
	var out [64]frame.Ref
	send := func(now frame.Time) (k int) {
		k = n.Transmit(now, 0, out[:])
		for _, r := range out[:k] {
			n.pool.Free(r)
		}
		return k
	}
	posted := frame.Second
	must(t, n.SendMessage(posted, qpn, 50_000, 0)) // 50 frames of 8.5 us
	if k := n.Transmit(posted, 0, out[:]); k != 1 {
		t.Fatalf("%d frames at once, although the link had been idle", k)
	} else if at := n.arena.Meta(out[0]).Depart; at != posted {
		t.Errorf("the first frame departs at %v, posted at %v", at, posted)
	} else {
		n.pool.Free(out[0])
	}
	// The caller comes 100 us late: what should have left meanwhile leaves.
	if k := send(posted + 100*frame.Microsecond); k < 10 || k > 13 {
		t.Errorf("%d frames after 100 us, want about 11", k)
	}
	// 5 ms late is more than Burst: what fits into 1 ms, were there so many.
	if k := send(posted + 5*frame.Millisecond); k != 50-1-11 && k != 50-1-10 && k != 50-1-12 {
		t.Errorf("%d frames after 5 ms", k)
	}
}

// Nor after a pause: what the neighbour held back was not missed by a late
// caller, so that it leaves from the end of the pause on, whether XON ends it
// or its time.
func TestPauseIsNoCredit(t *testing.T) {
	for _, xon := range []bool{true, false} {
		p := newPair(t, func(_ int, c *Config) {
			c.PFC, c.PFCClasses, c.Burst = true, 1<<3, 20*frame.Microsecond
		})
		var sent []frame.Time
		p.seen = func(from int, m *frame.Meta, _ []byte) {
			if from == 0 && m.Class == 3 {
				sent = append(sent, m.Depart)
			}
		}
		qa, _ := p.connect(func(c *QPConfig) { c.Class, c.Transport.RTOHigh = 3, 0 })
		must(t, p.a.SendMessage(0, qa, 1_000_000, 0))
		p.run(1000)
		end := frame.Time(1000 + 5120)
		p.pauseClass(1<<3, 1000) // 5120 ns
		if xon {
			end = 4000
			p.run(end)
			p.pauseClass(1<<3, 0)
		}
		before := len(sent)
		p.run(end + 1000)
		if k := len(sent) - before; k < 11 || k > 12 {
			t.Errorf("XON %v: %d frames of 85 ns in the microsecond after the pause", xon, k)
		}
		for _, at := range sent[before:] {
			if at < end {
				t.Errorf("XON %v: a frame departs at %d, before the pause ends at %d", xon, at, end)
			}
		}
	}
}

// Acknowledgements that leave meanwhile change nothing of it: what is held back
// has no part in the time for which they waited, and they leave when they were
// made.
func TestPauseIsNoCreditBesideReplies(t *testing.T) {
	p := newPair(t, func(_ int, c *Config) {
		c.PFC, c.PFCClasses, c.Burst, c.AckClass = true, 1<<3, 20*frame.Microsecond, 7
	})
	var data, replies []frame.Time
	p.seen = func(from int, m *frame.Meta, _ []byte) {
		switch {
		case from == 0 && m.Class == 3:
			data = append(data, m.Depart)
		case from == 0:
			replies = append(replies, m.Depart)
			if late := p.now - m.Depart; late > 200 {
				t.Errorf("a reply departs %d ns before it is sent", late)
			}
		}
	}
	qa, qb := p.connect(func(c *QPConfig) { c.Class, c.Transport.RTOHigh = 3, 0 })
	must(t, p.a.SendMessage(0, qa, 1_000_000, 0))
	must(t, p.b.SendMessage(0, qb, 1_000_000, 0))
	p.run(1000)
	p.pauseClass(1<<3, 1000) // 5120 ns
	p.run(4000)
	p.pauseClass(1<<3, 0)
	before := len(data)
	p.run(5000)
	if len(replies) < 20 {
		t.Fatalf("%d replies: the test tests nothing", len(replies))
	}
	if k := len(data) - before; k > 12 {
		t.Errorf("%d frames of 85 ns in the microsecond after the pause", k)
	}
	for _, at := range data[before:] {
		if at < 4000 {
			t.Errorf("a frame departs at %d, before the pause ends", at)
		}
	}
}
