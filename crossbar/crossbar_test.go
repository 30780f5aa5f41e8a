package crossbar

import (
	"slices"
	"testing"

	"gswitch/frame"
)

const gigabit = 1_000_000_000

// detail is the switch of the report: 128 KiB at both sides, speed-up 4.
func detail() Config {
	return Config{Ingress: 128 << 10, Egress: 128 << 10, Reserve: 128 << 10, SkipBlocked: true, Rate: 4 * gigabit, Lossless: 0xff, Pause: 8192, Unpause: 4557}
}

// rig is a crossbar and frames for it.
type rig struct {
	t    testing.TB
	pool *frame.Pool
	x    *Crossbar
	now  frame.Time
	out  []frame.Ref // that crossed
	at   []frame.Time
}

func newRig(t testing.TB, cfg Config) *rig {
	t.Helper()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	pool := frame.NewPool(frame.MustArena(4096, 256, 0))
	return &rig{t: t, pool: pool, x: New(pool.Arena, cfg)}
}

func (g *rig) frame(in, out uint16, class uint8, bytes uint32) frame.Ref {
	r := g.pool.Alloc()
	if r == frame.Nil {
		g.t.Fatal("out of chunks")
	}
	m := g.pool.Reset(r)
	m.InPort, m.OutPort, m.Class, m.Wire = in, out, class, bytes
	return r
}

// arrive reports whether a frame was taken.
func (g *rig) arrive(in, out uint16, class uint8, bytes uint32) bool {
	r := g.frame(in, out, class, bytes)
	ok := arriveOne(g.x, g.now, r)
	if !ok {
		g.pool.Free(r)
	}
	return ok
}

// arriveOne reports whether a frame was accepted.
func arriveOne(x *Crossbar, now frame.Time, r frame.Ref) bool {
	return x.Arrive(now, []frame.Ref{r}) == 0
}

// nextOne returns the next frame that has crossed, and when; Nil if there is none.
func nextOne(x *Crossbar, now frame.Time) (frame.Ref, frame.Time) {
	out := [1]frame.Ref{frame.Nil}
	_, at := x.Next(now, out[:])
	return out[0], at
}

// run lets time pass and collects what crosses.
func (g *rig) run(until frame.Time) {
	for r, at := nextOne(g.x, until); r != frame.Nil; r, at = nextOne(g.x, until) {
		g.out, g.at = append(g.out, r), append(g.at, at)
	}
	g.now = until
}

// leave is the departure of the oldest frame that crossed.
func (g *rig) leave() {
	g.t.Helper()
	if len(g.out) == 0 {
		g.t.Fatal("nothing crossed")
	}
	g.x.Leave(g.now, []frame.Ref{g.out[0]})
	g.pool.Free(g.out[0])
	g.out, g.at = g.out[1:], g.at[1:]
}

// TestDrainVector follows the drain bytes of one ingress port by hand.
func TestDrainVector(t *testing.T) {
	cfg := detail()
	cfg.Egress, cfg.TotalCap = 1500, true // room for one frame: the rest waits
	g := newRig(t, cfg)
	g.arrive(2, 1, 7, 1500)
	g.run(frame.Microsecond * 4)
	expect := func(step string, wants uint8, drain ...uint32) {
		t.Helper()
		v := g.x.Port(0)
		if got := g.x.Wants(0); got != wants {
			t.Errorf("%s: classes %#02x should be paused, want %#02x", step, got, wants)
		}
		for p, n := range v.Ingress {
			want := drain[min(p, len(drain)-1)]
			if n != want {
				t.Errorf("%s: %d drain bytes of class %d, want %d", step, n, p, want)
			}
		}
	}
	add := func(class uint8) { g.arrive(0, 1, class, 1500) }
	take := func() { // the highest class crosses
		g.leave()
		g.run(g.now + 4*frame.Microsecond)
	}
	for range 5 {
		add(7)
	}
	expect("five of class 7", 0, 7500)
	add(0)
	expect("one of class 0", 0x01, 9000, 7500)
	add(7)
	expect("a sixth of class 7", 0xff, 10500, 9000)
	take()
	take()
	expect("two left", 0xff, 7500, 6000)
	take()
	expect("three left", 0x01, 6000, 4500)
	take()
	expect("four left", 0, 4500, 3000)
	if c := g.x.Port(0).In; c.Pauses != [8]uint64{1, 1, 1, 1, 1, 1, 1, 1} || c.Resume != c.Pauses {
		t.Errorf("counted pauses %v and ends %v", c.Pauses, c.Resume)
	}
	if p, ok := g.x.NextDirty(); !ok || p != 0 {
		t.Errorf("port %d, %t is the one that changed", p, ok)
	}
	if p, ok := g.x.NextDirty(); ok {
		t.Errorf("port %d changed, too", p)
	}
}

// TestTransfer: a full frame of the report takes a quarter of its 12.24 us.
func TestTransfer(t *testing.T) {
	for _, c := range []struct {
		overhead, bytes uint32
		latency, want   frame.Time
	}{
		{0, 1530, 0, 3060},
		{24, 1506, 0, 3060},
		{0, 84, 0, 168},
		{0, 84, 4224, 4392},
		{24, 1506, 4224, 7284},
	} {
		cfg := detail()
		cfg.Overhead, cfg.Latency = c.overhead, c.latency
		g := newRig(t, cfg)
		g.now = 1000
		g.arrive(0, 1, 3, c.bytes)
		if due := g.x.Due(); c.latency == 0 && due != 1000+c.want {
			t.Errorf("%+v: due at %d", c, due)
		}
		g.run(1000 + c.want - 1)
		if len(g.out) != 0 {
			t.Fatalf("%+v: crossed early", c)
		}
		if n := g.x.Port(0).Ingress[0]; n != c.bytes {
			t.Errorf("%+v: %d bytes wait while it crosses", c, n)
		}
		g.run(frame.Second)
		if len(g.out) != 1 || g.at[0] != 1000+c.want {
			t.Errorf("%+v: crossed at %v", c, g.at)
		}
		if v := g.x.Port(0); v.Ingress != [8]uint32{} || v.IngressPeak != c.bytes || g.x.Due() != frame.Never || g.x.Held() != 0 {
			t.Errorf("%+v: left behind %+v, due %d", c, v, g.x.Due())
		}
	}
}

// TestOrder: the highest class first, ingress ports in turn, and of two frames
// for different egress ports both at once.
func TestOrder(t *testing.T) {
	g := newRig(t, detail())
	g.arrive(0, 9, 0, 1530) // crosses at once
	for _, class := range []uint8{0, 5, 5, 7} {
		for in := range uint16(3) {
			g.arrive(in, 9, class, 1530)
		}
	}
	g.arrive(3, 8, 1, 1530)
	g.run(frame.Second)
	type hop struct {
		in    uint16
		class uint8
	}
	var got []hop
	for i, r := range g.out {
		m := g.pool.Meta(r)
		if m.OutPort == 8 {
			if g.at[i] != 3060 {
				t.Errorf("the frame for the free port crossed at %d", g.at[i])
			}
			continue
		}
		got = append(got, hop{m.InPort, m.Class})
		if want := frame.Time(3060 * len(got)); g.at[i] != want {
			t.Errorf("frame %d crossed at %d, want %d", i, g.at[i], want)
		}
	}
	want := []hop{{0, 0}, {1, 7}, {2, 7}, {0, 7}, {1, 5}, {2, 5}, {0, 5}, {1, 5}, {2, 5}, {0, 5}, {1, 0}, {2, 0}, {0, 0}}
	if len(got) != len(want) {
		t.Fatalf("%d frames crossed, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("frame %d is %v, want %v", i, got[i], want[i])
		}
	}
}

// fill lets class 0 fill the egress queue of a port.
func (g *rig) fill(in, out uint16, class uint8) {
	for g.x.EgressDrain(out, class)+1530 <= g.x.Config().Egress {
		if !g.arrive(in, out, class, 1530) {
			g.t.Fatal("refused")
		}
		g.run(g.now + 4*frame.Microsecond)
	}
}

// TestRoom: bytes of a class that no output takes lock out neither the classes
// above them nor other egress ports, unless all bytes count alike.
func TestRoom(t *testing.T) {
	for _, total := range []bool{false, true} {
		cfg := detail()
		cfg.TotalCap = total
		g := newRig(t, cfg)
		g.fill(0, 1, 0)
		g.arrive(0, 1, 0, 1530)
		g.arrive(2, 1, 7, 1530)
		g.arrive(0, 3, 0, 1530) // behind the one that is blocked, in one list
		before := len(g.out)
		g.run(g.now + frame.Millisecond)
		crossed := g.out[before:]
		if want := map[bool]int{false: 1, true: 0}[total]; len(crossed) != want {
			t.Fatalf("total cap %t: %d frames crossed, want %d", total, len(crossed), want)
		}
		if len(crossed) > 0 && g.pool.Meta(crossed[0]).Class != 7 {
			t.Error("not the frame of class 7")
		}
		var in []uint16
		g.x.Blocked(1, 0, func(p uint16) { in = append(in, p) })
		if !slices.Equal(in, []uint16{0}) {
			t.Errorf("ingress ports %v are blocked", in)
		}
		// Two must leave: what is above class 0 counts against it, too. Then the
		// one behind has its turn.
		g.leave()
		g.run(g.now + frame.Millisecond)
		if n := len(g.out) - before + 1; n != 1 {
			t.Errorf("total cap %t: %d frames crossed after one left", total, n)
		}
		g.leave()
		g.run(g.now + frame.Millisecond)
		if n := len(g.out) - before + 2; n != 3 {
			t.Errorf("total cap %t: %d frames crossed after two left", total, n)
		}
	}
	// The reserve bounds what classes above may take beside paused ones.
	cfg := detail()
	cfg.Reserve = 3060
	g := newRig(t, cfg)
	g.fill(0, 1, 0)
	left := cfg.Egress - g.x.EgressDrain(1, 0)
	for range 4 {
		g.arrive(2, 1, 7, 1530)
	}
	before := len(g.out)
	g.run(g.now + frame.Millisecond)
	if n, want := len(g.out)-before, int((3060+left)/1530); n != want {
		t.Errorf("%d frames took the reserve, want %d", n, want)
	}
}

// TestSkipBlocked: while the highest class of an ingress port has no room, the
// next one crosses, if that is allowed.
func TestSkipBlocked(t *testing.T) {
	for _, skip := range []bool{false, true} {
		cfg := detail()
		cfg.SkipBlocked, cfg.TotalCap = skip, true
		g := newRig(t, cfg)
		g.fill(5, 1, 0)
		g.arrive(0, 1, 7, 1530) // blocked
		g.arrive(0, 2, 3, 1530)
		before := len(g.out)
		g.run(g.now + frame.Millisecond)
		if n := len(g.out) - before; skip && n != 1 || !skip && n != 0 {
			t.Errorf("skip %t: %d frames crossed", skip, n)
		}
		if n := g.x.Port(2).Out.Skipped; n != uint64(len(g.out)-before) {
			t.Errorf("skip %t: %d counted", skip, n)
		}
		g.leave()
		g.run(g.now + frame.Millisecond)
		if n := len(g.out) - before + 1; n != 2 {
			t.Errorf("skip %t: %d frames crossed after there was room", skip, n)
		}
	}
}

// TestLossyShare: what is not lossless, and copies, leave what lossless classes
// need after a pause.
func TestLossyShare(t *testing.T) {
	cfg := detail()
	cfg.Lossless, cfg.Lossy, cfg.Egress = 0x80, 6000, 1
	g := newRig(t, cfg)
	for i := range 5 {
		if got, want := g.arrive(0, 1, 0, 1500), i < 4; got != want {
			t.Errorf("frame %d of a lossy class: taken %t", i, got)
		}
	}
	r := g.frame(0, 1, 7, 1500)
	g.pool.Meta(r).Flags |= frame.IsClone
	if arriveOne(g.x, 0, r) {
		t.Error("a copy took what is for lossless classes")
	}
	n := uint64(0)
	for g.arrive(0, 1, 7, 1500) {
		n++
	}
	if want := uint64((cfg.Ingress - 6000) / 1500); n != want {
		t.Errorf("%d lossless frames had room, want %d", n, want)
	}
	if c := g.x.Port(0).In; c.RefusedLossy != 2 || c.Refused != 1 || c.Frames != 4+n || c.Bytes != 1500*c.Frames {
		t.Errorf("counted %+v", c)
	}
	if g.x.Wants(0) != 0x80 {
		t.Errorf("classes %#02x should be paused", g.x.Wants(0))
	}
	var v [16]frame.Ref
	for k := g.x.Flush(v[:]); k > 0; k = g.x.Flush(v[:]) {
		for _, r := range v[:k] {
			g.pool.Free(r)
		}
	}
	if p := g.x.Port(0); p.Ingress != [8]uint32{} || p.Wants != 0 || g.x.in[0].lossy != 0 || g.x.Held() != 0 {
		t.Errorf("after Flush: %+v, lossy %d", p, g.x.in[0].lossy)
	}
}

// TestReconfigure: what waits stays, thresholds count at once.
func TestReconfigure(t *testing.T) {
	cfg := detail()
	cfg.Egress = 1
	g := newRig(t, cfg)
	for range 4 {
		g.arrive(0, 1, 6, 1500)
	}
	if g.x.Wants(0) != 0 {
		t.Fatal("paused too early")
	}
	cfg.Pause, cfg.Unpause, cfg.Lossless = 5000, 3000, 0x0f
	g.x.Configure(g.now, cfg)
	if g.x.Wants(0) != 0x0f {
		t.Errorf("classes %#02x should be paused", g.x.Wants(0))
	}
	cfg.Lossless, cfg.Egress = 0, 128<<10
	g.x.Configure(g.now, cfg)
	g.run(frame.Second)
	if g.x.Wants(0) != 0 || len(g.out) != 4 || g.x.in[0].lossy != 0 {
		t.Errorf("classes %#02x, %d frames, %d lossy bytes", g.x.Wants(0), len(g.out), g.x.in[0].lossy)
	}
}

func TestNothingAllocates(t *testing.T) {
	g := newRig(t, detail())
	r := g.frame(0, 1, 3, 1000)
	m := g.pool.Meta(r)
	i := uint16(0)
	if n := testing.AllocsPerRun(1000, func() {
		i = (i + 1) % MaxPorts
		m.InPort, m.OutPort, m.Class = i, (i*7)%MaxPorts, uint8(i%8)
		g.now += 10 * frame.Microsecond
		if !arriveOne(g.x, g.now, r) {
			t.Fatal("refused")
		}
		g.now += 10 * frame.Microsecond
		if out, _ := nextOne(g.x, g.now); out != r {
			t.Fatal("it did not cross")
		}
		if out, _ := nextOne(g.x, g.now); out != frame.Nil {
			t.Fatal("what was that?")
		}
		g.x.Leave(g.now, []frame.Ref{r})
	}); n != 0 {
		t.Errorf("%v allocations a frame", n)
	}
}

// FuzzConfig: a configuration is refused or works.
func FuzzConfig(f *testing.F) {
	f.Add(uint32(131072), uint32(131072), uint32(131072), uint64(4e9), uint32(24), int64(4224), uint8(0xff), uint32(8192), uint32(4557), uint32(0), byte(2))
	f.Add(uint32(1), uint32(1), uint32(0), uint64(1), uint32(0), int64(0), uint8(0), uint32(0), uint32(0), uint32(1), byte(1))
	f.Add(uint32(1<<30), uint32(1<<30), uint32(1<<30), uint64(1e15), uint32(1024), int64(1e9), uint8(1), uint32(1<<30), uint32(1), uint32(1<<29), byte(3))
	f.Fuzz(func(t *testing.T, ingress, egress, reserve uint32, rate uint64, overhead uint32, latency int64, lossless uint8, pause, unpause, lossy uint32, flags byte) {
		cfg := Config{Ingress: ingress, Egress: egress, Reserve: reserve, Rate: rate, Overhead: overhead, Latency: frame.Time(latency),
			Lossless: lossless, Pause: pause, Unpause: unpause, Lossy: lossy, TotalCap: flags&1 != 0, SkipBlocked: flags&2 != 0}
		if cfg.Validate() != nil {
			return
		}
		g := newRig(t, cfg)
		taken := 0
		for i := range 64 {
			if g.arrive(uint16(i%5), uint16(i%3), uint8(i%8), uint32(60+i*150)) {
				taken++
			}
		}
		for range 2 * taken {
			g.run(min(g.x.Due(), 1<<60))
			for len(g.out) > 0 {
				g.leave()
				taken--
			}
		}
		if g.x.Held() != taken {
			t.Fatalf("%d frames are held of %d", g.x.Held(), taken)
		}
	})
}

// A frame larger than its egress queue, as one from before a change is, crosses
// when that queue is empty, alone.
func TestLargeFrameCrosses(t *testing.T) {
	for _, total := range []bool{false, true} {
		cfg := detail()
		cfg.TotalCap = total
		g := newRig(t, cfg)
		small, large := g.frame(1, 9, 3, 1000), g.frame(0, 9, 3, 9018)
		arriveOne(g.x, g.now, small)
		arriveOne(g.x, g.now, large)
		cfg.Egress, cfg.Reserve = 4096, 0
		g.x.Configure(g.now, cfg)
		if r, _ := nextOne(g.x, frame.Second); r != small {
			t.Fatalf("frame %d crossed first, want %d", r, small)
		}
		if r, _ := nextOne(g.x, frame.Second); r != frame.Nil {
			t.Fatalf("frame %d crossed into a queue that is not empty", r)
		}
		g.x.Leave(frame.Second, []frame.Ref{small})
		if r, _ := nextOne(g.x, 2*frame.Second); r != large || g.x.Held() != 0 {
			t.Errorf("frame %d crossed, want %d; %d wait", r, large, g.x.Held())
		}
	}
}
