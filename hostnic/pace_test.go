package hostnic

import (
	"strconv"
	"testing"

	"gswitch/cc"
	"gswitch/frame"
	"gswitch/transport"
)

func itoa(n uint32) string { return strconv.Itoa(int(n)) }

// fixed is congestion control by hand.
type fixed struct {
	rate, window float64
	due          frame.Time
	then         float64 // the rate after due
	acks         []cc.Feedback
}

func (f *fixed) OnAck(a *cc.Feedback)            { f.acks = append(f.acks, *a) }
func (f *fixed) OnCNP(frame.Time)                {}
func (f *fixed) OnLoss(frame.Time, cc.Loss)      {}
func (f *fixed) OnSend(frame.Time, uint32)       {}
func (f *fixed) OnTimer(frame.Time)              { f.rate, f.due = f.then, frame.Never }
func (f *fixed) Timer() frame.Time               { return f.due }
func (f *fixed) Rate() float64                   { return f.rate }
func (f *fixed) Window() float64                 { return f.window }
func (f *fixed) make(*cc.Env) cc.Algorithm       { return f }
func newFixed(rate float64) *fixed               { return &fixed{rate: rate, due: frame.Never} }
func (f *fixed) later(at frame.Time, to float64) { f.due, f.then = at, to }

// starts collects when data frames of a queue pair's number start.
func (p *pair) starts(least uint32) *[]frame.Time {
	v := new([]frame.Time)
	p.seen = func(from int, m *frame.Meta, _ []byte) {
		if from == 0 && m.Wire >= least {
			*v = append(*v, m.Depart)
		}
	}
	return v
}

func equal(t *testing.T, what string, got, want []frame.Time) {
	t.Helper()
	if len(got) < len(want) {
		t.Fatalf("%s: %d departures, want %v", what, len(got), want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%s: departures %v, want %v", what, got[:len(want)], want)
		}
	}
}

// Frames leave at start + bytes/rate, exactly, also where that is not a whole
// number of nanoseconds; with whole nanoseconds, rounded down each time.
func TestPacing(t *testing.T) {
	for whole, want := range map[bool][]frame.Time{
		// 1058 bytes at 7 Gb/s: 1209.142857 ns
		false: {0, 1209, 2418, 3627, 4836, 6045, 7254, 8464},
		true:  {0, 1209, 2418, 3627, 4836, 6045, 7254, 8463},
	} {
		p := newPair(t, func(_ int, c *Config) { c.WholeNs = whole })
		got := p.starts(1000)
		qa, _ := p.connect(func(c *QPConfig) { c.CC = newFixed(7e9).make })
		must(t, p.a.SendMessage(0, qa, 20_000, 0))
		p.run(20 * frame.Microsecond)
		equal(t, "7 Gb/s", *got, want)
	}
	// 8464 ns at 1 Gb/s: whole nanoseconds are below the exact time also where it is whole.
	for whole, gap := range map[bool]frame.Time{false: 8464, true: 8463} {
		p := newPair(t, func(_ int, c *Config) { c.WholeNs = whole })
		got := p.starts(1000)
		qa, _ := p.connect(func(c *QPConfig) { c.CC = newFixed(1e9).make })
		must(t, p.a.SendMessage(0, qa, 20_000, 0))
		p.run(30 * frame.Microsecond)
		equal(t, "1 Gb/s", *got, []frame.Time{0, gap, 2 * gap, 3 * gap})
	}
}

// A change of rate moves the departure that was planned by
// last/new - last/old (HPCC's reference behaviour).
func TestPacingFollowsRate(t *testing.T) {
	p := newPair(t, nil)
	got := p.starts(1000)
	up := newFixed(1e9)
	up.later(1000, 2e9)
	qa, _ := p.connect(func(c *QPConfig) { c.CC = up.make })
	must(t, p.a.SendMessage(0, qa, 20_000, 0))
	p.run(30 * frame.Microsecond)
	// 1058 bytes take 8464 ns at 1 Gb/s, 4232 at 2.
	equal(t, "rate doubles at 1000", *got, []frame.Time{0, 4232, 8464})

	p = newPair(t, nil)
	got = p.starts(1000)
	down := newFixed(2e9)
	down.later(1000, 1e9)
	qa, _ = p.connect(func(c *QPConfig) { c.CC = down.make })
	must(t, p.a.SendMessage(0, qa, 20_000, 0))
	p.run(30 * frame.Microsecond)
	equal(t, "rate halves at 1000", *got, []frame.Time{0, 8464, 16928})
}

// Segments of 64,000 bytes at 1 Gb/s start 512 us apart and leave as bursts at
// line rate. Lazily, a fall of the rate puts the planned departure off, a rise
// does not bring it forward (TIMELY section 4.3).
func TestSegments(t *testing.T) {
	const us = frame.Microsecond
	for name, c := range map[string]struct {
		at   frame.Time
		to   float64
		want []frame.Time
	}{
		"steady":            {frame.Never, 0, []frame.Time{0, 512 * us, 1024 * us}},
		"halves at 300 us":  {300 * us, 0.5e9, []frame.Time{0, 1024 * us, 2048 * us}},
		"doubles at 300 us": {300 * us, 2e9, []frame.Time{0, 512 * us, 768 * us}},
	} {
		// Frames of 1000 bytes in all, so that a segment is 64,000.
		p := newPair(t, func(_ int, c *Config) { c.Rate, c.Payload, c.Sizes.Data = 10e9, 940, 60 })
		all := p.starts(900)
		f := newFixed(1e9)
		f.later(c.at, c.to)
		qa, _ := p.connect(func(q *QPConfig) {
			q.CC, q.Segment, q.LazyPacing, q.Transport.RTOHigh = f.make, 64*940, true, 0
		})
		must(t, p.a.SendMessage(0, qa, 4*64*940, 0))
		p.run(3 * frame.Millisecond)
		var starts []frame.Time
		for i, at := range *all {
			if i%64 == 0 {
				starts = append(starts, at)
			} else if at != (*all)[i-1]+800 {
				t.Fatalf("%s: frame %d left at %d, %d after the one before", name, i, at, at-(*all)[i-1])
			}
		}
		equal(t, name, starts, c.want)
		// One sample for each segment: its own bytes, two cables, an
		// acknowledgement of 62 bytes.
		samples := 0
		for _, a := range f.acks {
			if a.RTT == 0 {
				continue
			}
			samples++
			if a.Bytes != 64_000 || a.RTT != 51_200+2*p.delay+49 {
				t.Fatalf("%s: sample %+v", name, a)
			}
		}
		if samples != 4 && name != "halves at 300 us" {
			t.Fatalf("%s: %d samples of 4 segments", name, samples)
		}
	}
}

// Flows that are due take turns: packet by packet, or segment by segment.
func TestTurns(t *testing.T) {
	for _, segment := range []uint32{0, 3000} {
		p := newPair(t, nil)
		var order []byte
		p.seen = func(from int, m *frame.Meta, b []byte) {
			if from == 0 && m.Wire > 1000 {
				order = append(order, 'A'+b[34]) // by UDP source port
			}
		}
		for i := range uint16(3) {
			qa, _ := p.connect(func(c *QPConfig) { c.SrcPort, c.Segment = i<<8|1, segment })
			must(t, p.a.SendMessage(0, qa, 6000, 0))
		}
		p.run(frame.Millisecond)
		want := "BCABCABCABCABCABCA"
		if segment != 0 {
			want = "BBBCCCAAABBBCCCAAA"
		}
		if string(order) != want {
			t.Errorf("segment %d: order %s, want %s", segment, order, want)
		}
	}
}

// RTT, Ack, SndNxt and Newly of the first acknowledgements.
func TestFeedback(t *testing.T) {
	p := newPair(t, nil)
	f := newFixed(100e9)
	qa, _ := p.connect(func(c *QPConfig) { c.CC = f.make })
	must(t, p.a.SendMessage(0, qa, 2500, 0))
	p.run(frame.Millisecond)
	if len(f.acks) != 3 {
		t.Fatalf("%d acknowledgements", len(f.acks))
	}
	// 1058 bytes 84.64 ns, cable, 62 bytes 4.96 ns, cable.
	for i, want := range []cc.Feedback{
		{Ack: 1000, SndNxt: 2500, Newly: 1000, RTT: 2088, Bytes: 1058},
		{Ack: 2000, SndNxt: 2500, Newly: 1000, RTT: 2089, Bytes: 1058},
		{Ack: 2500, SndNxt: 2500, Newly: 500, RTT: 2049, Bytes: 558},
	} {
		got := f.acks[i]
		got.Now = 0
		if d := got.RTT - want.RTT; d < -1 || d > 1 {
			t.Errorf("acknowledgement %d: RTT %d, want %d", i, got.RTT, want.RTT)
		}
		got.RTT = want.RTT
		if got != want {
			t.Errorf("acknowledgement %d: %+v, want %+v", i, got, want)
		}
	}
}

// The window holds: in flight at most what it says, a frame at least, and with
// Overshoot up to a frame more.
func TestWindow(t *testing.T) {
	for _, c := range []struct {
		window    float64
		overshoot bool
		most      uint64
	}{{5500, false, 5000}, {5500, true, 6000}, {5000, false, 5000}, {5000, true, 5000}, {300, false, 1000}, {0.5, true, 1000}} {
		p := newPair(t, func(_ int, n *Config) { n.Overshoot = c.overshoot })
		f := newFixed(100e9)
		f.window = c.window
		qa, _ := p.connect(func(q *QPConfig) { q.CC = f.make })
		most := uint64(0)
		p.seen = func(int, *frame.Meta, []byte) {
			v, _ := p.a.QP(qa)
			most = max(most, v.InFlight)
		}
		must(t, p.a.SendMessage(0, qa, 50_000, 0))
		p.run(frame.Millisecond)
		if most != c.most || len(take(p.b)) != 1 {
			t.Errorf("window %v overshoot %v: %d bytes in flight, want %d", c.window, c.overshoot, most, c.most)
		}
		p.drained()
	}
}

// A queue pair that is closed while it waits leaves nothing behind, and the
// next one starts afresh: without allocation once its memory has grown.
func TestQueuePairsAreRecycled(t *testing.T) {
	p := newPair(t, nil)
	make := factory(t, "hpcc", nil)
	ca := QPConfig{RemoteAddr: p.b.cfg.Addr, RemoteMAC: p.b.cfg.MAC, CC: make, CCName: "hpcc",
		Transport: transport.Config{Recovery: transport.IRN, Cap: 100, RTOHigh: 300 * frame.Microsecond}}
	cb := ca
	cb.RemoteAddr, cb.RemoteMAC = p.a.cfg.Addr, p.a.cfg.MAC
	l := &loop{pair: p}
	var out [16]Completion
	cycle := func() {
		qa, _ := p.a.OpenQP(l.next, &ca)
		qb, _ := p.b.OpenQP(l.next, &cb)
		if p.a.ConnectQP(l.next, qa, qb) != nil || p.b.ConnectQP(l.next, qb, qa) != nil || p.a.SendMessage(l.next, qa, 3000, 1) != nil {
			t.Fatal("cannot open")
		}
		for range 3 {
			l.frame()
		}
		if n := p.a.TakeCompletions(out[:]); n != 1 || out[0].Status != StatusOK || out[0].QPN != qa {
			t.Fatalf("%d completions: %+v", n, out[0])
		}
		if p.b.TakeCompletions(out[:]) != 1 || p.a.CloseQP(l.next, qa) != nil || p.b.CloseQP(l.next, qb) != nil {
			t.Fatal("cannot close")
		}
	}
	for range 600 { // all generations, and again
		cycle()
	}
	if n := testing.AllocsPerRun(100, cycle); n != 0 {
		t.Errorf("%v allocations to open, use and close a queue pair", n)
	}
	p.drained()
}

// Frames to a queue pair that was closed are counted as stale and reach no
// other, though one with its index is open.
func TestLateFramesAreStale(t *testing.T) {
	p := newPair(t, nil)
	qa, qb := p.connect(nil)
	must(t, p.a.SendMessage(0, qa, 5000, 1))
	p.run(500) // under way
	must(t, p.b.CloseQP(p.now, qb))
	must(t, p.a.CloseQP(p.now, qa))
	if v := take(p.a); len(v) != 1 || v[0].Status != StatusFlushed {
		t.Fatalf("%+v", v)
	}
	_, again := p.connect(nil)
	p.run(frame.Millisecond)
	v, err := p.b.QP(again)
	must(t, err)
	if s := p.b.Counts(); again == qb || v.Stats.RxFrames != 0 || s.Drops[frame.QPStale] != 5 || s.AcksSent != 0 {
		t.Fatalf("%#x after %#x: %+v, %d stale", again, qb, v.Stats, s.Drops[frame.QPStale])
	}
	if _, err := p.b.QP(qb); err == nil {
		t.Fatal("a closed queue pair is found")
	}
	p.drained()
}

// A NIC that is called late catches up within Burst: frames keep the instants
// of the link and of their pace.
func TestLateCaller(t *testing.T) {
	for rate, gap := range map[float64]float64{100e9: 84.64, 30e9: 1058 * 8 / 30.} {
		p := newPair(t, func(_ int, c *Config) { c.Burst = 20 * frame.Microsecond })
		qa, _ := p.connect(func(c *QPConfig) { c.CC, c.Transport.RTOHigh = newFixed(rate).make, 0 })
		must(t, p.a.SendMessage(0, qa, 20_000_000, 0))
		var out [512]frame.Ref
		frames, last := 0, frame.Time(-1)
		for now := frame.Time(0); now <= 1_000_000; now += 10_000 {
			for _, r := range out[:p.a.Transmit(now, 0, out[:])] {
				m := p.pool.Meta(r)
				if want := frame.Time(float64(frames)*gap + 1e-6); m.Depart < want-1 || m.Depart > want+1 || m.Depart <= last || m.Depart > now {
					t.Fatalf("at %.0f Gb/s frame %d departs at %d, want %d", rate/1e9, frames, m.Depart, want)
				}
				last = m.Depart
				frames++
				p.pool.Free(r)
			}
		}
		if want := int(1e6/gap) + 1; frames != want {
			t.Fatalf("at %.0f Gb/s %d frames in a millisecond, want %d", rate/1e9, frames, want)
		}
	}
}

// Without chunks nothing stands still or spins: frames count as lost, and
// flow control asks again a little later.
func TestWithoutChunks(t *testing.T) {
	p := newPair(t, func(i int, c *Config) {
		c.PFC, c.PFCClasses = true, 8
		if i == 1 {
			c.Receive = ReceiveConfig{Rate: 1e9, Buffer: 10_000, XOFF: 1000}
		}
	})
	qa, _ := p.connect(func(c *QPConfig) { c.Transport.RTOHigh = 50 * frame.Microsecond })
	other, _ := p.connect(func(c *QPConfig) { c.Class, c.Transport.RTOHigh = 1, 50*frame.Microsecond }) // is not paused
	must(t, p.a.SendMessage(0, qa, 9000, 0))
	p.run(2500) // frames wait at the slow host
	var all []frame.Ref
	for r := p.pool.Alloc(); r != frame.Nil; r = p.pool.Alloc() {
		all = append(all, r)
	}
	p.b.SetLink(p.now, 0, false)
	p.b.SetLink(p.now, 0, true) // sends anew, and cannot
	if w := p.b.TimerWake(p.now); w <= p.now {
		t.Fatal("the timer spins")
	}
	must(t, p.a.SendMessage(p.now, other, 3000, 0))
	p.run(3 * frame.Microsecond)
	if p.a.Counts().Drops[frame.ArenaExhausted] == 0 || p.b.Counts().Drops[frame.ArenaExhausted] == 0 {
		t.Fatalf("%d and %d frames found no chunk", p.a.Counts().Drops[frame.ArenaExhausted], p.b.Counts().Drops[frame.ArenaExhausted])
	}
	for _, r := range all {
		p.pool.FreeChunk(r)
	}
	p.run(10 * frame.Millisecond)
	if v := take(p.b); len(v) != 2 {
		t.Fatalf("%d of 2 messages arrived", len(v))
	}
	p.drained()
}

// A queue pair without a window has a terabyte to send and no chunks: what it
// loses is what the link had time for.
func TestLostWithoutChunksAtTheLinksRate(t *testing.T) {
	p := newPair(t, nil)
	qa, _ := p.connect(func(c *QPConfig) { c.Transport.RTOHigh = frame.Millisecond })
	var all []frame.Ref
	for r := p.pool.Alloc(); r != frame.Nil; r = p.pool.Alloc() {
		all = append(all, r)
	}
	must(t, p.a.SendMessage(0, qa, 1<<40, 0))
	p.run(10 * frame.Microsecond) // 125,000 bytes at 100 Gb/s, in frames of 1058
	if got := p.a.Counts().Drops[frame.ArenaExhausted]; got != 119 {
		t.Errorf("%d frames were lost in 10 us, not 119", got)
	}
	for _, r := range all {
		p.pool.FreeChunk(r)
	}
	p.run(2 * frame.Millisecond)
	if got := p.b.Counts().Delivered; got < 1000 {
		t.Errorf("%d frames arrived once there were chunks", got)
	}
}
