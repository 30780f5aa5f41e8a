package pfc

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"gswitch/frame"
	"gswitch/wire"
)

const gig = 1_000_000_000

func gigPort() *Port {
	return NewPort(Config{Mode: PFC, Enable: 1<<3 | 1<<4, Rate: gig, Source: wire.MAC{2, 0, 0, 0, 0, 7}})
}

func q8(class int, quanta uint16) (q [8]uint16) {
	q[class] = quanta
	return q
}

func TestSpan(t *testing.T) {
	for _, v := range []struct {
		quanta uint16
		rate   uint64
		want   frame.Time
	}{
		{0xffff, 1e9, 33_553_920}, // 33.55 ms
		{0xffff, 10e9, 3_355_392}, // 3.36 ms
		{1, 1e9, 512},
		{1, 100e9, 6},                 // 5.12 ns, never shorter than asked
		{2, 1e9, 1024},                // the reaction time of a 1 Gb/s neighbour
		{0xffff, 1e6, 33_553_920_000}, // a slow emulated link
		{0xffff, 800e9, 41943},
	} {
		if got := Span(v.quanta, v.rate); got != v.want {
			t.Errorf("%d quanta at %d: %d, want %d", v.quanta, v.rate, got, v.want)
		}
	}
}

func TestReceive(t *testing.T) {
	p := gigPort()
	p.Receive(1000, 1<<3|1<<6|0xff00, q8(3, 10))
	if p.Until(3) != 1000+5120 || p.Paused(1000) != 1<<3 || p.Changed() != 1<<3 || p.Changed() != 0 {
		t.Fatalf("until %d, paused %b", p.Until(3), p.Paused(1000))
	}
	s := p.Stats(1000)
	if s.RxXOFF[3] != 1 || s.RxDisabled[6] != 1 || s.RxFrames != 1 || s.Pauses[3] != 1 {
		t.Fatalf("%+v", s)
	}
	p.Receive(2000, 1<<3, q8(3, 2)) // replaces what is left, be it longer
	if p.Until(3) != 3024 || p.Wake(2000) != 3024 {
		t.Fatal(p.Until(3))
	}
	if p.Paused(3023) != 1<<3 || p.Paused(3024) != 0 {
		t.Fatal("expiry")
	}
	p.Advance(5000, 0)
	if s = p.Stats(5000); s.Expired[3] != 1 || s.PausedTime[3] != 2024 || p.Changed() != 1<<3 {
		t.Fatalf("%+v", s)
	}
	p.Receive(6000, 1<<4|1<<3, [8]uint16{3: 100, 4: 100})
	p.Receive(7000, 1<<4, q8(4, 0))
	if s = p.Stats(8000); p.Paused(8000) != 1<<3 || s.RxXON[4] != 1 || s.PausedTime[4] != 1000 || s.PausedTime[3] != 2024+2000 || s.Pauses[3] != 2 {
		t.Fatalf("%+v", s)
	}
	if c := p.Class(3); !c.Paused || c.PausedSince != 6000 || c.PausedUntil != 6000+51200 {
		t.Fatalf("%+v", c)
	}
	// 802.3x is not for a PFC port.
	p.ReceivePause(8000, 9)
	if p.Paused(8000) != 1<<3 || p.Stats(8000).RxIgnored != 1 {
		t.Fatal("802.3x honoured")
	}
	p.Reset(9000)
	if p.Paused(9000) != 0 || p.Changed()&(1<<3) == 0 || p.Wake(9000) != frame.Never {
		t.Fatal("reset")
	}
}

func TestPauseMode(t *testing.T) {
	p := NewPort(Config{Mode: Pause, Rate: gig})
	p.ReceivePause(0, 4)
	if p.Paused(0) != 0xff || p.Until(6) != 2048 {
		t.Fatal("802.3x pauses all classes")
	}
	p.ReceivePause(100, 0)
	if p.Paused(100) != 0 {
		t.Fatal("XON")
	}
	p.Receive(200, 0xff, q8(1, 7))
	if p.Paused(200) != 0 || p.Stats(200).RxIgnored != 1 {
		t.Fatal("PFC honoured on a pause port")
	}
	b := make([]byte, 64)
	p.Request(1 << 5)
	var f wire.PauseFields
	if n := p.NextFrame(300, b); n != 60 {
		t.Fatal(n)
	} else if _, why := f.Decode(b[:n]); why != 0 || f.Quanta != 0xffff {
		t.Fatal(why, f)
	}
	p.Request(1 << 5 >> 1) // another class: the link stays paused
	if p.NextFrame(400, b) != 0 {
		t.Fatal("nothing changed")
	}
	p.Request(0)
	if n := p.NextFrame(500, b); n != 60 {
		t.Fatal(n)
	} else if f.Decode(b[:n]); f.Quanta != 0 {
		t.Fatal(f)
	}
	if s := p.Stats(500); s.TxPause != 2 || s.TxFrames != 0 || s.RequestTime[5] != 200 {
		t.Fatalf("%+v", s)
	}
}

func TestOff(t *testing.T) {
	p := NewPort(Config{})
	p.Receive(0, 0xff, q8(1, 7))
	p.ReceivePause(0, 7)
	p.Request(0xff)
	if p.Paused(0) != 0 || p.NextFrame(0, make([]byte, 60)) != 0 || p.Wake(0) != frame.Never || p.Stats(0).RxIgnored != 2 {
		t.Fatal("flow control that is off acts")
	}
}

// The frame on the wire, byte by byte, as IEEE 802.3 annex 31D lays it out.
func TestFrameBytes(t *testing.T) {
	p := gigPort()
	p.Request(1<<3 | 1<<5) // class 5 is not under flow control
	b := bytes.Repeat([]byte{0xee}, 60)
	if p.NextFrame(0, b[:59]) != 0 || p.XOFFSent() != 0 {
		t.Fatal("a frame that does not fit was taken for sent")
	}
	if n := p.NextFrame(0, b); n != 60 {
		t.Fatal(n)
	}
	want := "0180c2000001" + "020000000007" + "8808" + "0101" + "0008" + "000000000000ffff" + "0000000000000000" + strings.Repeat("00", 26)
	if got := hex.EncodeToString(b); got != want {
		t.Fatalf("\n%s\n%s", got, want)
	}
}

func TestRequestAndRenew(t *testing.T) {
	p := gigPort()
	b := make([]byte, 60)
	next := func(now frame.Time) (f wire.PFCFields, ok bool) {
		n := p.NextFrame(now, b)
		if n == 0 {
			return f, false
		}
		if _, why := f.Decode(b[:n]); why != 0 {
			t.Fatal(why)
		}
		return f, true
	}
	half := Span(0xffff, gig) / 2
	p.Request(1 << 3)
	if p.Wake(10) != 10 {
		t.Fatal("wake")
	}
	if f, ok := next(10); !ok || f.Enable != 1<<3 || f.Quanta[3] != 0xffff {
		t.Fatal(f)
	}
	if _, ok := next(10); ok || p.Wake(10) != 10+half {
		t.Fatal("one frame is enough")
	}
	if f, ok := next(10 + half); !ok || f.Enable != 1<<3 || f.Quanta[3] != 0xffff {
		t.Fatal("not renewed")
	}
	p.Request(1<<3 | 1<<4)
	if f, ok := next(20 + half); !ok || f.Enable != 1<<3|1<<4 || f.Quanta[4] != 0xffff {
		t.Fatal(f)
	}
	if p.Wake(20+half) != 20+2*half {
		t.Fatal("a frame for one class renews the others")
	}
	p.Request(1 << 4)
	if f, ok := next(30 + half); !ok || f.Enable != 1<<3|1<<4 || f.Quanta[3] != 0 || f.Quanta[4] != 0xffff {
		t.Fatal(f)
	}
	// A pause that is asked for and withdrawn before a frame left sends nothing.
	p.Request(1<<3 | 1<<4)
	p.Request(1 << 4)
	if _, ok := next(40 + half); ok {
		t.Fatal("nothing to say")
	}
	s := p.Stats(50 + half)
	if s.TxFrames != 4 || s.TxXOFF[3] != 3 || s.TxXON[3] != 1 || s.Requests[3] != 2 || s.RequestTime[3] != 20+half || s.RequestTime[4] != 30 {
		t.Fatalf("%+v", s)
	}
	// The link flaps: sent anew.
	p.Reset(60 + half)
	if f, ok := next(70 + half); !ok || f.Enable != 1<<4 || f.Quanta[4] != 0xffff {
		t.Fatal(f)
	}
	// Flow control is taken off the class: the neighbour is set free.
	c := p.Config()
	c.Enable = 1 << 3
	p.Configure(80+half, c)
	if f, ok := next(80 + half); !ok || f.Enable != 1<<4 || f.Quanta[4] != 0 {
		t.Fatal(f)
	}
	// And off altogether, while a class is paused.
	p.Request(1 << 3)
	next(90 + half)
	c.Mode = Off
	p.Configure(100+half, c)
	if f, ok := next(100 + half); !ok || f.Enable != 1<<3 || f.Quanta[3] != 0 {
		t.Fatal("left the neighbour paused", f)
	}
	if _, ok := next(frame.Second); ok || p.Wake(frame.Second) != frame.Never {
		t.Fatal("off is off")
	}
}

func TestConfigureEndsPauses(t *testing.T) {
	p := gigPort()
	p.Receive(0, 1<<3|1<<4, [8]uint16{3: 100, 4: 100})
	p.Changed()
	c := p.Config()
	c.Enable = 1 << 4
	p.Configure(1000, c)
	if p.Paused(1000) != 1<<4 || p.Changed() != 1<<3 || p.Until(3) > 1000 {
		t.Fatalf("paused %b", p.Paused(1000))
	}
}

func TestWatchdog(t *testing.T) {
	for _, action := range []Action{Drop, Forward, Alert} {
		p := NewPort(Config{Mode: PFC, Enable: 0xff, Rate: gig, Watchdog: Watchdog{Detect: 100 * frame.Millisecond, Restore: 200 * frame.Millisecond, Action: action}})
		const ms = frame.Millisecond
		// Paused with nothing waiting is no storm.
		now := frame.Time(0)
		for ; now < 500*ms; now += 10 * ms {
			p.Receive(now, 1<<3, q8(3, 0xffff))
			p.Advance(now, 0)
		}
		if p.Storms() != 0 {
			t.Fatal("storm without frames waiting")
		}
		// Frames wait, but the neighbour lets go in between.
		for ; now < 1000*ms; now += 10 * ms {
			p.Receive(now, 1<<3, q8(3, 0xffff))
			p.Advance(now, 1<<3)
			if now%(50*ms) == 0 {
				p.Receive(now+1, 1<<3, q8(3, 0))
			}
		}
		if p.Storms() != 0 {
			t.Fatal("storm although the neighbour lets go")
		}
		// A storm.
		p.Receive(now, 1<<3, q8(3, 0))
		start := now
		for ; p.Storms() == 0; now += 10 * ms {
			p.Receive(now, 1<<3, q8(3, 0xffff))
			p.Advance(now, 1<<3)
			if now > start+300*ms {
				t.Fatal("not found")
			}
		}
		if found := now - 10*ms - start; found < 100*ms || found > 110*ms {
			t.Fatalf("found after %v", found.Duration())
		}
		wantPaused, wantDrop := uint8(0), uint8(0)
		switch action {
		case Alert:
			wantPaused = 1 << 3
		case Drop:
			wantDrop = 1 << 3
		}
		if p.Paused(now) != wantPaused || p.Dropping() != wantDrop || (p.Until(3) > now) != (action == Alert) || p.Changed() == 0 {
			t.Fatalf("%v: paused %b dropping %b", action, p.Paused(now), p.Dropping())
		}
		// It lasts as long as the neighbour pauses, and Restore longer.
		for end := now + 300*ms; now < end; now += 10 * ms {
			p.Receive(now, 1<<3, q8(3, 0xffff))
			p.Advance(now, 0)
		}
		if p.Storms() != 1<<3 {
			t.Fatal("over too early")
		}
		p.Receive(now, 1<<3, q8(3, 0))
		p.Advance(now, 0)
		if w := p.Wake(now); w != now+200*ms {
			t.Fatalf("wake in %v", (w - now).Duration())
		}
		p.Advance(now+199*ms, 0)
		if p.Storms() != 1<<3 {
			t.Fatal("over too early")
		}
		p.Advance(now+200*ms, 0)
		if s := p.Stats(now + 200*ms); p.Storms() != 0 || s.Storms[3] != 1 || s.Restored[3] != 1 || s.StormTime[3] < 500*ms {
			t.Fatalf("%+v", s)
		}
	}
}

// Stepping exactly at Wake finds a storm exactly after Detect.
func TestWatchdogWake(t *testing.T) {
	p := NewPort(Config{Mode: PFC, Enable: 1, Rate: 1e6, Watchdog: Watchdog{Detect: 5 * frame.Millisecond}})
	p.Receive(1000, 1, q8(0, 0xffff))
	p.Advance(2000, 1)
	now := p.Wake(2000)
	if p.Advance(now, 1); now != 2000+5*frame.Millisecond || p.Storms() != 1 {
		t.Fatal(now, p.Storms())
	}
}

func TestValidate(t *testing.T) {
	for name, c := range map[string]Config{
		"mode":     {Mode: 9},
		"action":   {Watchdog: Watchdog{Action: 9}},
		"time":     {Watchdog: Watchdog{Detect: -1}},
		"no class": {Mode: PFC},
	} {
		if c.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	c := gigPort().Config()
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if PFC.String() != "pfc" || Pause.String() != "pause" || Off.String() != "off" || Drop.String() != "drop" || Forward.String() != "forward" || Alert.String() != "alert" {
		t.Error("names")
	}
}

// Two ports that receive from each other, with random requests: each follows exactly
// what the other was last asked for, and long pauses never lapse.
func TestPairProperty(t *testing.T) {
	for seed := uint64(0); seed < 100; seed++ {
		rng := frame.NewRand(seed)
		cfg := Config{Mode: PFC, Enable: uint8(rng.Uint64()) | 1, Rate: 1e9, Quanta: uint16(10 + rng.Uint32n(1000))}
		a, b := NewPort(cfg), NewPort(cfg)
		buf := make([]byte, 60)
		now, want := frame.Time(0), uint8(0)
		for i := 0; i < 3000; i++ {
			if rng.Uint32n(4) == 0 {
				want = uint8(rng.Uint64())
				a.Request(want)
			}
			for n := a.NextFrame(now, buf); n != 0; n = a.NextFrame(now, buf) {
				var f wire.PFCFields
				if _, why := f.Decode(buf[:n]); why != 0 {
					t.Fatal(why)
				}
				b.Receive(now, uint16(f.Enable), f.Quanta)
			}
			if got := b.Paused(now); got != want&cfg.Enable {
				t.Fatalf("seed %d: paused %08b, wanted %08b of %08b", seed, got, want, cfg.Enable)
			}
			b.Advance(now, 0xff)
			next := now + frame.Time(rng.Uint32n(10000))
			if w := a.Wake(now); w < next {
				next = w
			}
			now = next
		}
		if s := b.Stats(now); s.Expired != [8]uint64{} {
			t.Fatalf("seed %d: pauses lapsed: %v", seed, s.Expired)
		}
		sa, sb := a.Stats(now), b.Stats(now)
		if sa.TxXOFF != sb.RxXOFF || sa.TxXON != sb.RxXON || sa.RequestTime != sb.PausedTime {
			t.Fatalf("seed %d: the two ends count differently", seed)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	p := gigPort()
	b := make([]byte, 60)
	now := frame.Time(0)
	if n := testing.AllocsPerRun(100, func() {
		now += 1000
		p.Receive(now, 0xff, q8(3, 5))
		p.Request(uint8(now / 1000))
		p.NextFrame(now, b)
		p.Advance(now, 0xff)
		p.Wake(now)
		p.Changed()
	}); n != 0 {
		t.Fatal(n)
	}
}

func BenchmarkReceive(b *testing.B) {
	p := gigPort()
	for i := 0; i < b.N; i++ {
		p.Receive(frame.Time(i), 1<<3, q8(3, uint16(i&1)))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/frame")
}

func BenchmarkAdvanceIdle(b *testing.B) {
	p := gigPort()
	for i := 0; i < b.N; i++ {
		p.Advance(frame.Time(i), 0xff)
	}
}
