package scheduler

import (
	"math"
	"testing"

	"gswitch/frame"
)

// rig is a port with frames to feed it.
type rig struct {
	t    testing.TB
	pool *frame.Pool
	p    *Port
	out  [64]frame.Ref
}

func newRig(t testing.TB, cfg PortConfig) *rig {
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	pool := frame.NewPool(frame.MustArena(8192, 256, 64))
	return &rig{t: t, pool: pool, p: NewPort(pool.Arena, cfg, 1)}
}

func (g *rig) frame(queue int, bytes uint32) frame.Ref {
	r := g.pool.Alloc()
	if r == frame.Nil {
		g.t.Fatal("no chunk")
	}
	m := g.pool.Reset(r)
	m.Queue, m.Wire = uint8(queue), bytes
	return r
}

func (g *rig) put(now frame.Time, queue int, bytes uint32) frame.Ref {
	r := g.frame(queue, bytes)
	g.p.Enqueue(now, r)
	return r
}

// step returns copies of the Meta of the frames that leave now.
func (g *rig) step(now frame.Time) []frame.Meta {
	var v []frame.Meta
	for {
		n := g.p.Dequeue(now, g.out[:])
		for _, r := range g.out[:n] {
			v = append(v, *g.pool.Meta(r))
			g.pool.Free(r)
		}
		if n < len(g.out) {
			return v
		}
	}
}

// run steps exactly at Wake up to and including end.
func (g *rig) run(now, end frame.Time) []frame.Meta {
	var v []frame.Meta
	for {
		if now = g.p.Wake(now); now > end {
			return v
		}
		got := g.step(now)
		if len(got) == 0 {
			g.t.Fatalf("Wake said %d, but nothing left", now)
		}
		v = append(v, got...)
	}
}

func order(v []frame.Meta) string {
	s := ""
	for i := range v {
		s += string('0' + rune(v[i].Queue))
	}
	return s
}

func TestUnlimited(t *testing.T) {
	g := newRig(t, PortConfig{})
	if g.p.Wake(5) != frame.Never {
		t.Fatal("an empty port wants to be called")
	}
	a := g.put(10, 3, 100)
	b := g.put(20, 3, 200)
	if g.p.Wake(30) != 30 {
		t.Fatal("wake")
	}
	if n := g.p.Dequeue(30, g.out[:]); n != 2 || g.out[0] != a || g.out[1] != b {
		t.Fatal("first in, first out")
	}
	ma, mb := g.pool.Meta(a), g.pool.Meta(b)
	if ma.Depart != 30 || ma.QBytes != 200 || ma.QFrames != 1 || ma.TxBytes != 0 {
		t.Fatalf("%+v", ma)
	}
	if mb.Depart != 30 || mb.QBytes != 0 || mb.QFrames != 0 || mb.TxBytes != 100 {
		t.Fatalf("%+v", mb)
	}
	if g.p.Sent() != 300 {
		t.Fatal("sent")
	}
}

// Called exactly at Wake, frames are spaced to the bit.
func TestExactSpacing(t *testing.T) {
	for _, rate := range []uint64{1e6, 1e9, 10e9, 100e9, 800e9, 999_999_937} {
		g := newRig(t, PortConfig{Rate: rate, Overhead: EthernetOverhead})
		for i := 0; i < 1000; i++ {
			g.put(7, i&7, uint32(60+i))
		}
		var bits float64
		for i, m := range g.run(7, frame.Never-1) {
			want := 7 + bits*1e9/float64(rate)
			if d := want - float64(m.Depart); d < -1e-3 || d > 1.001 {
				t.Fatalf("rate %d frame %d: departs at %d, exactly %f", rate, i, m.Depart, want)
			}
			bits += float64(m.Wire+EthernetOverhead) * 8
		}
	}
}

func TestIdleLinkEarnsNothing(t *testing.T) {
	g := newRig(t, PortConfig{Rate: 1e9, Burst: frame.Millisecond})
	g.put(0, 0, 1000)
	g.step(0)
	// Long idle, then two frames at once: the second waits for the first.
	now := 500 * frame.Microsecond
	g.put(now, 0, 1000)
	g.put(now, 0, 1000)
	v := g.step(now)
	if len(v) != 1 || v[0].Depart != now || g.p.Wake(now) != now+8000 {
		t.Fatalf("%d frames, wake %d", len(v), g.p.Wake(now))
	}
	v = g.step(now + 9000) // 1 us late
	if len(v) != 1 || v[0].Depart != now+8000 {
		t.Fatal("late call must not shift the departure")
	}
}

// A late caller gets at most Burst of link time back.
func TestBurstBound(t *testing.T) {
	g := newRig(t, PortConfig{Rate: 1e9, Burst: 20 * frame.Microsecond})
	for i := 0; i < 100; i++ {
		g.put(0, 0, 1000) // 8 us each
	}
	v := g.step(200 * frame.Microsecond)
	if len(v) != 3 || v[0].Depart != 180*frame.Microsecond {
		t.Fatalf("%d frames, first at %d", len(v), v[0].Depart)
	}
}

// Whatever the rhythm of the calls, the departures are those of the ideal
// link, as long as no call is later than the burst.
func TestCatchUpIsExact(t *testing.T) {
	type arrival struct {
		at    frame.Time
		queue int
		bytes uint32
	}
	cfg := PortConfig{Rate: 1e9, Overhead: EthernetOverhead}
	cfg.Queues[6].MaxRate = 100e6
	cfg.Queues[6].Burst = 3000
	for _, q := range []int{0, 1, 2, 4, 5} {
		cfg.Queues[q].Weight = uint32(q + 1)
	}
	for seed := uint64(0); seed < 200; seed++ {
		rng := frame.NewRand(seed)
		var in []arrival
		at := frame.Time(0)
		for i := 0; i < 400; i++ {
			at += frame.Time(rng.Uint32n(2000 + 18000*uint32(seed&1)))
			in = append(in, arrival{at, int(rng.Uint32n(8)), 60 + rng.Uint32n(1455)})
		}
		play := func(burst, late frame.Time) []frame.Meta {
			c := cfg
			c.Burst = burst
			g := newRig(t, c)
			var v []frame.Meta
			jitter := frame.NewRand(seed + 1000)
			call, i := frame.Time(0), 0
			for i < len(in) || g.p.Wake(call) != frame.Never {
				next := g.p.Wake(call)
				if late > 0 && next != frame.Never {
					next = max(next, call) + frame.Time(jitter.Uint32n(uint32(late)))
				}
				if i < len(in) && in[i].at <= next {
					call = max(call, in[i].at)
					g.put(in[i].at, in[i].queue, in[i].bytes)
					i++
					if late > 0 {
						continue
					}
					next = call
				}
				if i < len(in) && in[i].at <= next {
					continue // simultaneous arrivals come before the choice
				}
				call = next
				v = append(v, g.step(call)...)
			}
			return v
		}
		want, got := play(0, 0), play(frame.Millisecond, 50*frame.Microsecond)
		if len(want) != len(in) || len(got) != len(in) {
			t.Fatalf("seed %d: %d and %d of %d frames", seed, len(want), len(got), len(in))
		}
		for i := range want {
			if want[i].Depart != got[i].Depart || want[i].Queue != got[i].Queue || want[i].Wire != got[i].Wire {
				t.Fatalf("seed %d frame %d: queue %d at %d, late caller: queue %d at %d", seed, i,
					want[i].Queue, want[i].Depart, got[i].Queue, got[i].Depart)
			}
		}
	}
}

func TestStrictOrder(t *testing.T) {
	g := newRig(t, PortConfig{})
	for _, q := range []int{0, 3, 7, 1, 3, 7} {
		g.put(0, q, 100)
	}
	if s := order(g.step(0)); s != "773310" {
		t.Fatal(s)
	}
}

// Levels: {7} {6} {5,4,3 as 4:2:1} {2} {1,0 as 3:1}.
func TestLevelsAndWeights(t *testing.T) {
	cfg := PortConfig{Rate: 1e9}
	for q, w := range map[int]uint32{5: 4, 4: 2, 3: 1, 1: 3, 0: 1} {
		cfg.Queues[q].Weight = w
	}
	g := newRig(t, cfg)
	for i := 0; i < 700; i++ {
		for q := 0; q < 6; q++ {
			g.put(0, q, 500+uint32(q)*137)
		}
	}
	g.put(0, 6, 60)
	g.put(0, 7, 60)
	share := func(v []frame.Meta) (n [8]float64) {
		total := 0.0
		for i := range v {
			n[v[i].Queue] += float64(v[i].Wire)
			total += float64(v[i].Wire)
		}
		for q := range n {
			n[q] /= total
		}
		return n
	}
	v := g.run(0, 2*frame.Millisecond)
	if order(v[:2]) != "76" {
		t.Fatal("strict queues first")
	}
	n := share(v)
	for q, want := range map[int]float64{5: 4. / 7, 4: 2. / 7, 3: 1. / 7, 2: 0, 1: 0, 0: 0} {
		if math.Abs(n[q]-want) > 0.03 {
			t.Errorf("queue %d has %.3f of the link, want %.3f", q, n[q], want)
		}
	}
	// A strict queue between the levels, then the lower level.
	for q := 3; q <= 5; q++ {
		for g.p.FlushQueue(0, q, g.out[:]) > 0 {
		}
	}
	v = g.run(2*frame.Millisecond, 9*frame.Millisecond)
	two := 0
	for ; v[two].Queue == 2; two++ {
	}
	if two != 700 {
		t.Fatalf("%d frames of queue 2 first", two)
	}
	n = share(v[two:])
	if math.Abs(n[1]-0.75) > 0.03 || math.Abs(n[0]-0.25) > 0.03 {
		t.Errorf("lower level %.3f %.3f", n[1], n[0])
	}
}

// Whatever is ready in a level, long-run shares of queues that always have
// frames follow the weights within two turns.
func TestDeficitRoundRobinFair(t *testing.T) {
	for seed := uint64(0); seed < 30; seed++ {
		rng := frame.NewRand(seed)
		var cfg PortConfig
		cfg.Rate = 10e9
		for q := range cfg.Queues {
			cfg.Queues[q].Weight = 1 + rng.Uint32n(9)
		}
		g := newRig(t, cfg)
		var sent [8]float64
		now := frame.Time(0)
		for i := 0; i < 20000; i++ {
			for q := 0; q < 8; q++ {
				if n, _ := g.p.QueueLen(q); n < 2 {
					g.put(now, q, 60+rng.Uint32n(1455))
				}
			}
			now = g.p.Wake(now)
			n := g.p.Dequeue(now, g.out[:1])
			m := g.pool.Meta(g.out[0])
			sent[m.Queue] += float64(m.Wire)
			g.pool.Free(g.out[0])
			_ = n
		}
		for q := 1; q < 8; q++ {
			a := sent[0] / float64(cfg.Queues[0].Weight)
			b := sent[q] / float64(cfg.Queues[q].Weight)
			if math.Abs(a-b) > 2*minQuantum {
				t.Errorf("seed %d: queue %d has %.0f bytes per weight, queue 0 %.0f", seed, q, b, a)
			}
		}
	}
}

func TestMaxRate(t *testing.T) {
	for _, burst := range []uint32{0, 10000} {
		cfg := PortConfig{Rate: 1e9, Overhead: EthernetOverhead}
		cfg.Queues[5].MaxRate, cfg.Queues[5].Burst = 50e6, burst
		g := newRig(t, cfg)
		for i := 0; i < 600; i++ {
			g.put(0, 5, 976) // 1000 bytes: 160 us at 50 Mb/s
			g.put(0, 1, 976)
		}
		v := g.run(0, 3*frame.Millisecond)
		five := 0
		for i := range v {
			if v[i].Queue == 5 {
				five++
			}
		}
		want := 1 + 3000/160 + int(burst)/1000
		if five < want-1 || five > want+1 {
			t.Errorf("burst %d: %d frames of the limited queue, want %d", burst, five, want)
		}
		if len(v) != 376 {
			t.Errorf("burst %d: the link sent %d frames of 376", burst, len(v))
		}
	}
}

// The longest burst is whole at the least rate, and a longer one is refused.
func TestLongestBurst(t *testing.T) {
	var cfg PortConfig
	cfg.Queues[5].MaxRate = 1
	for _, burst := range []uint32{MaxBurst, MaxBurst + 1, 1<<32 - 1} {
		cfg.Queues[5].Burst = burst
		if err := cfg.Validate(); (err == nil) != (burst == MaxBurst) {
			t.Errorf("burst %d: %v", burst, err)
		}
		p := NewPort(frame.MustArena(16, 2048, 32), cfg, 1)
		if want := frame.Time(MaxBurst) * 8 * frame.Second; p.q[5].burst != want {
			t.Errorf("burst %d lasts for %d ns, want %d", burst, p.q[5].burst, want)
		}
	}
}

// A limited queue of an unlimited port keeps its rate although the caller is
// always late.
func TestMaxRateLateCaller(t *testing.T) {
	cfg := PortConfig{Burst: 100 * frame.Microsecond}
	cfg.Queues[0].MaxRate = 100e6
	g := newRig(t, cfg)
	for i := 0; i < 1000; i++ {
		g.put(0, 0, 1000) // 80 us
	}
	n, now := 0, frame.Time(0)
	for now < 40*frame.Millisecond {
		n += len(g.step(now))
		now = g.p.Wake(now) + 30*frame.Microsecond
	}
	if n < 499 || n > 502 {
		t.Fatalf("%d frames in 40 ms, want 500", n)
	}
}

func TestPause(t *testing.T) {
	g := newRig(t, PortConfig{Rate: 1e9, Burst: frame.Millisecond})
	for i := 0; i < 10; i++ {
		g.put(0, 5, 1000) // 8 us
		g.put(0, 2, 1000)
	}
	if s := order(g.step(0)); s != "5" {
		t.Fatal(s)
	}
	g.p.Pause(5, 30*frame.Microsecond)
	if g.p.Paused(10) != 1<<5 {
		t.Fatal("paused mask")
	}
	v := g.run(0, 25*frame.Microsecond)
	if s := order(v); s != "222" {
		t.Fatalf("sent %s while queue 5 is paused", s)
	}
	// The pause ends at 30 us: the frame at 32 us is of queue 5 again.
	if v = g.step(32 * frame.Microsecond); order(v) != "5" || v[0].Depart != 32*frame.Microsecond {
		t.Fatalf("%s at %d", order(v), v[0].Depart)
	}
	g.p.Pause(5, frame.Never)
	g.p.Pause(2, frame.Never)
	if g.p.Wake(40000) != frame.Never || len(g.step(frame.Second)) != 0 {
		t.Fatal("all is paused")
	}
	// The link was not busy while paused: no credit for that time.
	g.p.Unpause(frame.Second, 2)
	v = g.step(frame.Second + 4000)
	if order(v) != "2" || v[0].Depart != frame.Second {
		t.Fatalf("%s, first at %d", order(v), v[0].Depart)
	}
}

func TestControlFrames(t *testing.T) {
	g := newRig(t, PortConfig{Rate: 1e9, Overhead: EthernetOverhead})
	for i := 0; i < 3; i++ {
		g.put(0, 7, 976)
	}
	g.step(0)
	g.p.Pause(7, frame.Never)
	g.p.EnqueueControl(g.frame(0, 60))
	if g.p.Wake(100) != 100 {
		t.Fatal("a control frame waits for nothing")
	}
	v := g.step(100) // the link is busy until 8000
	if len(v) != 1 || v[0].Wire != 60 || v[0].Depart != 8000 {
		t.Fatalf("%+v", v)
	}
	g.p.Unpause(100, 7)
	v = g.step(8000)
	if len(v) != 0 {
		t.Fatal("the control frame was not charged")
	}
	if v = g.step(8672); len(v) != 1 || v[0].TxBytes != 1084 {
		t.Fatalf("%+v", v)
	}
	if g.p.Controls() != 1 {
		t.Fatal("controls")
	}
}

func TestFlush(t *testing.T) {
	g := newRig(t, PortConfig{Rate: 1e6})
	for i := 0; i < 100; i++ {
		g.put(0, i&7, 100)
	}
	g.p.EnqueueControl(g.frame(0, 60))
	total := 0
	for {
		n := g.p.Flush(5, g.out[:])
		for _, r := range g.out[:n] {
			g.pool.Free(r)
		}
		if total += n; n == 0 {
			break
		}
	}
	if frames, bytes := g.p.Backlog(); total != 101 || frames != 0 || bytes != 0 || g.pool.Available() != 8192 {
		t.Fatalf("%d flushed, %d left", total, frames)
	}
	if s := g.p.Stats(5, 3, false); s.RemovedFrames == 0 || s.EnqueuedFrames != s.RemovedFrames || s.Frames != 0 {
		t.Fatalf("%+v", s)
	}
}

func TestDrainBytes(t *testing.T) {
	g := newRig(t, PortConfig{})
	for q := 0; q < 8; q++ {
		g.put(0, q, 100<<q)
	}
	want := uint64(0)
	for q := 7; q >= 0; q-- {
		want += 100 << q
		if got := g.p.DrainBytes(q); got != want {
			t.Fatalf("queue %d: %d, want %d", q, got, want)
		}
	}
}

func TestValidate(t *testing.T) {
	for name, f := range map[string]func(*PortConfig){
		"weight":    func(c *PortConfig) { c.Queues[1].Weight = MaxWeight + 1 },
		"ecn order": func(c *PortConfig) { c.Queues[1].ECN = ECN{KMin: 2, KMax: 1} },
		"pmax":      func(c *PortConfig) { c.Queues[1].ECN = ECN{KMin: 1, KMax: 2, PMax: 1.5} },
		"pmax nan":  func(c *PortConfig) { c.Queues[1].ECN = ECN{KMin: 1, KMax: 2, PMax: math.NaN()} },
		"no pmax":   func(c *PortConfig) { c.Queues[1].ECN = ECN{KMin: 1, KMax: 2} },
		"burst":     func(c *PortConfig) { c.Queues[1].Burst = 5 },
		"negative":  func(c *PortConfig) { c.Burst = -1 },
	} {
		var c PortConfig
		if c.Validate() != nil {
			t.Fatal("the zero value is valid")
		}
		f(&c)
		if c.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
		NewPort(frame.MustArena(2, 256, 0), c, 0) // and must not panic
	}
}
