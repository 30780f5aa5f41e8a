package tcp

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"gswitch/frame"
)

var env = Environment{MSS: 1000, Initial: 10_000}

// RFC 5681: slow start doubles, congestion avoidance adds a segment in a window, a
// loss halves what was under way, a timeout leaves one segment.
func TestReno(t *testing.T) {
	r := newReno(env)
	for range 10 {
		r.Acked(0, 1000, true, 0)
	}
	if r.Window() != 20_000 {
		t.Errorf("%d after one window of slow start", r.Window())
	}
	r.Acked(0, 5000, true, 0)
	if r.Window() != 22_000 {
		t.Errorf("%d: one acknowledgement counts for two segments at most (RFC 3465)", r.Window())
	}
	r.Lost(0, 18_000)
	if r.Window() != 9000 || r.Threshold() != 9000 {
		t.Errorf("%d after a loss with 18,000 under way", r.Window())
	}
	for range 9 {
		r.Acked(0, 1000, true, 0)
	}
	if r.Window() != 10_000 {
		t.Errorf("%d after a window of congestion avoidance", r.Window())
	}
	r.Acked(0, 100_000, false, 0)
	if r.Window() != 10_000 {
		t.Error("a window that is not used grows")
	}
	r.TimedOut(0, 10_000, false)
	if r.Window() != 1000 || r.Threshold() != 5000 {
		t.Errorf("%d, threshold %d after a timeout", r.Window(), r.Threshold())
	}
}

// RFC 9438: after a loss at W_max the window is back there after K = cbrt(W_max
// (1-beta)/C), slowest around it, and goes on beyond.
func TestCubic(t *testing.T) {
	c := newCubic(env)
	c.window, c.threshold = 1000, 1000
	c.Lost(0, 1_000_000)
	if math.Abs(c.window-700) > 0.01 || c.most != 1000 {
		t.Fatalf("%v after a loss, W_max %v", c.window, c.most)
	}
	k := math.Cbrt(1000 * 0.3 / 0.4)
	rtt := 200 * frame.Millisecond // with a shorter one Reno would be faster, see below
	at := map[int]float64{}
	for now := rtt; now < 20*frame.Second; now += rtt {
		for range 20 {
			c.Acked(now, int(c.window*1000/20), true, rtt)
		}
		at[int(now/frame.Second)] = c.window
	}
	if math.Abs(c.k-k) > 0.01 || math.Abs(cubeRoot(750)-k) > 1e-9 || cubeRoot(0) != 0 || math.Abs(cubeRoot(1e-3)-0.1) > 1e-12 {
		t.Errorf("K is %v, want %v", c.k, k)
	}
	want := func(t float64) float64 { return 0.4*math.Pow(t-k, 3) + 1000 }
	for _, s := range []int{3, 6, 8, 9, 12} {
		if w := want(float64(s) + 1); math.Abs(at[s]-w) > 0.02*w {
			t.Errorf("after %d s the window is %.1f, want %.1f", s+1, at[s], w)
		}
	}
	c.window, c.most = 500, 1000
	c.Lost(0, 500_000)
	if c.most != 425 {
		t.Errorf("W_max %v: a loss below the last one makes room for others", c.most)
	}
	// With a short round trip and a small window Reno is faster, and CUBIC keeps up.
	c = newCubic(env)
	c.window, c.threshold, c.most = 10, 10, 10
	for now := frame.Time(0); now < 200*frame.Millisecond; now += frame.Millisecond {
		c.Acked(now, int(c.window*1000), true, frame.Millisecond)
	}
	if c.window < 100 {
		t.Errorf("%v after 200 round trips of a millisecond", c.window)
	}
}

// RFC 8257: alpha follows the share of marked bytes, and a window with marks costs
// half of it.
func TestDCTCPControl(t *testing.T) {
	d := newDCTCP(env)
	d.window, d.threshold = 100_000, 100_000
	next := uint64(0)
	round := func(marked int) {
		next += 100_000
		d.Marks(0, 100_000, marked, next, next+100_000)
	}
	for range 200 {
		round(0)
	}
	if d.alpha > 1e-5 || d.Window() != 100_000 {
		t.Errorf("alpha %v, window %d without marks", d.alpha, d.Window())
	}
	round(50_000)
	if math.Abs(d.alpha-0.03125) > 1e-4 || math.Abs(float64(d.Window())-100_000*(1-0.03125/2)) > 10 {
		t.Errorf("alpha %v, window %d after a window with half marked", d.alpha, d.Window())
	}
	for range 200 {
		d.window = 100_000
		round(100_000)
	}
	if math.Abs(d.alpha-1) > 1e-4 || d.Window() > 50_010 {
		t.Errorf("alpha %v, window %d with all marked", d.alpha, d.Window())
	}
}

// RFC 6298 section 2.
func TestRTO(t *testing.T) {
	c, err := newConn(Default(), 1)
	if err != nil {
		t.Fatal(err)
	}
	c.cfg.MinRTO = frame.Millisecond
	if c.RTO() != frame.Second {
		t.Errorf("%v before the first round trip", c.RTO().Duration())
	}
	c.rtt.measure(100 * ms)
	c.setRTO()
	if c.RTO() != 300*ms {
		t.Errorf("%v after 100 ms, want SRTT + 4 RTTVAR", c.RTO().Duration())
	}
	c.rtt.measure(180 * ms)
	c.setRTO()
	if c.RTT() != 110*ms || c.rtt.variance != 57500*us || c.RTO() != 340*ms {
		t.Errorf("SRTT %v, RTTVAR %v, RTO %v", c.RTT().Duration(), c.rtt.variance.Duration(), c.RTO().Duration())
	}
}

func TestOptions(t *testing.T) {
	for _, want := range []Options{
		{}, {MSS: 1460}, {MSS: 1460, SACKPermitted: true, HasStamp: true, Stamp: 1, Echo: 2, Scale: 7, HasScale: true}, {SACKPermitted: true},
		{HasStamp: true, Stamp: 5, Echo: 6, SACKs: 3, SACK: [4][2]uint32{{1, 2}, {3, 4}, {5, 6}}}, {SACKs: 4, SACK: [4][2]uint32{{1, 2}, {3, 4}, {5, 6}, {7, 8}}},
	} {
		b := want.Append(nil)
		got, ok := ParseOptions(b)
		if !ok || !reflect.DeepEqual(got, want) || len(b)%4 != 0 || len(b) != want.Len() || len(b) > 40 {
			t.Errorf("%+v (%t, %d bytes), want %+v", got, ok, len(b), want)
		}
	}
	for _, b := range [][]byte{{2}, {2, 4, 5}, {2, 3, 1}, {8, 9, 1, 2, 3, 4, 5, 6, 7}, {5, 9, 1, 2, 3, 4, 5, 6, 7}, {99, 1}, {3, 2}, {4, 3, 0}, {5, 2}} {
		if _, ok := ParseOptions(b); ok {
			t.Errorf("%v was read", b)
		}
	}
	if o, ok := ParseOptions([]byte{1, 1, 99, 4, 0, 0, 3, 3, 20, 0, 255, 255}); !ok || o.Scale != MaxScale {
		t.Errorf("%+v, %t", o, ok)
	}
}

func FuzzParsePacket(f *testing.F) {
	s := Segment{Flags: SYN | ACK, Len: 3, Data: []byte("abc"), Options: Options{MSS: 1460, HasStamp: true}}
	f.Add(s.AppendPacket(nil, ends[0], 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, flow, err := ParsePacket(b)
		if err != nil {
			return
		}
		again, f2, err := ParsePacket(s.AppendPacket(nil, flow, 7))
		if err != nil || f2 != flow || again.Seq != s.Seq || again.Len != s.Len || !reflect.DeepEqual(again.Options, s.Options) {
			t.Fatalf("%+v becomes %+v (%v)", s, again, err)
		}
	})
}

func TestConfigErrors(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"":                 func(*Config) {},
		"MSS":              func(c *Config) { c.MSS = 10 },
		"timeouts":         func(c *Config) { c.MinRTO = 0 },
		"held back":        func(c *Config) { c.DelayedACK = frame.Second },
		"initial window":   func(c *Config) { c.InitialWindow = -1 },
		"buffers":          func(c *Config) { c.ReceiveBuffer = 10 },
		"not known":        func(c *Config) { c.Control = "vegas" },
		"works with marks": func(c *Config) { c.Control = "dctcp" },
	} {
		c := Default()
		change(&c)
		if err := c.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// Without SACK an acknowledgement that names another window is no duplicate (RFC
// 5681 section 2), so that losses behind a window that grows are found by the timer.
func TestWindowUpdates(t *testing.T) {
	for _, slow := range []bool{false, true} {
		cfg := Default()
		cfg.SACK, cfg.RACK, cfg.TailProbe = false, false, false
		cfg.ReceiveBuffer, cfg.MaxReceive, cfg.SlowWindow, cfg.QuickACKs = 10<<20, 10<<20, slow, 1000
		p := newPair(t, 1, cfg, cfg)
		p.fate = func(from, k int, s *Segment) fate { return fate{lose: from == 0 && k == 2} } // the first of data
		x := p.transfer(9 * 1448)
		p.run(10 * frame.Second)
		st := &p.ends[0].Stats
		if x.got != x.want {
			t.Fatalf("%d bytes arrived of %d", x.got, x.want)
		}
		if slow && (st.Recoveries != 0 || st.Timeouts != 1 || st.WindowUpdates < 3) || !slow && (st.Recoveries != 1 || st.Timeouts != 0) {
			t.Errorf("window grows with each segment: %v: %+v", slow, *st)
		}
	}
}

// The threshold of duplicates grows with the reordering that is seen, up to its
// bound, and a loss with fewer than that behind it waits.
func TestReorderingGrows(t *testing.T) {
	for _, most := range []int{0, 45} {
		cfg := Default()
		cfg.RACK, cfg.TailProbe, cfg.MaxReordering, cfg.InitialWindow = false, false, most, 60
		p := newPair(t, 1, cfg, cfg)
		p.fate = func(from, k int, s *Segment) (f fate) {
			if from == 0 && k == 2 {
				f.late = ms / 2
			}
			return f
		}
		p.gap = 10 * us
		x := p.transfer(60 * 1448)
		p.run(10 * frame.Second)
		if x.got != x.want {
			t.Fatalf("%d bytes arrived of %d", x.got, x.want)
		}
		if got := p.ends[0].Reordering(); most == 0 && got != 3 || most > 0 && (got < 40 || got > 45) {
			t.Errorf("with a bound of %d the threshold is %d", most, got)
		}
	}
}
