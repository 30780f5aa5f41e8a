package orders

import (
	"math"
	"slices"
	"testing"

	"gswitch/frame"
	"gswitch/scheduler"
)

// reference is CoDel as RFC 8289 section 5 prints it, over a slice of the
// instants of arrival of frames of one size.
type reference struct {
	CoDel
	size             uint64
	queue            []frame.Time
	first, next      frame.Time
	count, lastCount uint32
	dropping         bool
	dropped          int
}

func (c *reference) dodequeue(now frame.Time) (at frame.Time, ok, some bool) {
	if len(c.queue) == 0 {
		c.first = 0
		return 0, false, false
	}
	at = c.queue[0]
	c.queue = c.queue[1:]
	if sojourn := now - at; sojourn < c.Target || uint64(len(c.queue))*c.size <= maxPacket {
		c.first = 0
	} else if c.first == 0 {
		c.first = now + c.Interval
	} else if now >= c.first {
		ok = true
	}
	return at, ok, true
}

func (c *reference) law(t frame.Time, count uint32) frame.Time {
	return t + frame.Time(float64(c.Interval)/math.Sqrt(float64(count)))
}

func (c *reference) dequeue(now frame.Time) (frame.Time, bool) {
	at, ok, some := c.dodequeue(now)
	if c.dropping {
		if !ok {
			c.dropping = false
		}
		for now >= c.next && c.dropping {
			c.dropped++
			c.count++
			at, ok, some = c.dodequeue(now)
			if !ok {
				c.dropping = false
			} else {
				c.next = c.law(c.next, c.count)
			}
		}
	} else if ok {
		c.dropped++
		at, _, some = c.dodequeue(now)
		c.dropping = true
		delta := c.count - c.lastCount
		c.count = 1
		if delta > 1 && now-c.next < 16*c.Interval {
			c.count = delta
		}
		c.next = c.law(now, c.count)
		c.lastCount = c.count
	}
	return at, some
}

// CoDel at a port sends and drops what the state machine of RFC 8289 does, frame
// by frame, through load that comes and goes.
func TestCoDelAgainstTheRFC(t *testing.T) {
	const size = 1000
	drops := 0
	for seed := range uint64(40) {
		o := CoDel{Target: 20_000, Interval: 400_000}
		if seed%4 == 0 {
			o.Target, o.Interval = 1200, 5000 // which a queue of a single frame can miss
		}
		rng := frame.NewRand(seed)
		cfg := scheduler.PortConfig{Rate: 8e9} // 1000 ns a frame
		cfg.Queues[0].Admission = o
		g := newRig(cfg, 4096)
		ref := &reference{CoDel: o, size: size}
		now := frame.Time(0)
		gap := uint32(1000)
		for step := range 20_000 {
			if step%1000 == 0 {
				gap = 500 + rng.Uint32n(1200)
			}
			now += frame.Time(rng.Uint32n(gap))
			if g.pool.Available() > 0 {
				r := g.pool.Alloc()
				g.pool.Reset(r).Wire = size
				g.p.Enqueue(now, r)
				ref.queue = append(ref.queue, now)
			}
			for g.p.Wake(now) <= now {
				k := g.p.Dequeue(now, g.out[:1])
				at, some := ref.dequeue(now)
				if some != (k == 1) {
					t.Fatalf("seed %d at %d: %d frames leave, the RFC's sends %v", seed, now, k, some)
				}
				if some {
					g.pool.Free(g.out[0])
				}
				shed := g.p.TakeShed(g.out[:])
				for _, r := range g.out[:shed] {
					g.pool.Free(r)
				}
				if drops += shed; int(g.p.Stats(now, 0, false).Shed) != ref.dropped {
					t.Fatalf("seed %d at %d: %d dropped, the RFC's %d; one of %d leaves", seed, now, g.p.Stats(now, 0, false).Shed, ref.dropped, at)
				}
				if n, _ := g.p.QueueLen(0); n != len(ref.queue) {
					t.Fatalf("seed %d at %d: %d wait, the RFC's %d", seed, now, n, len(ref.queue))
				}
			}
		}
	}
	if drops < 1000 {
		t.Errorf("only %d drops", drops)
	}
}

// The control law shortens the gaps with the root of the count (RFC 8289 section
// 4.1, 100 ms).
func TestCoDelControlLaw(t *testing.T) {
	o := CoDel{Interval: 100 * frame.Millisecond}
	for count, want := range map[uint32]frame.Time{1: 100_000_000, 2: 70_710_678, 3: 57_735_026, 4: 50_000_000} {
		if got := o.law(7, count) - 7; got != want {
			t.Errorf("gap %d is %d, want %d", count, got, want)
		}
	}
}

// With ECN, frames that can be marked are, at the instants at which others would
// be dropped, and none is lost.
func TestCoDelMarks(t *testing.T) {
	cfg := scheduler.PortConfig{Rate: 8e9}
	cfg.Queues[0].Admission = CoDel{Target: 20_000, Interval: 400_000, ECN: true}
	g := newRig(cfg, 4096)
	for range 4096 {
		r := g.pool.Alloc()
		m := g.pool.Reset(r)
		m.Wire, m.Flags = 1000, frame.IsECT
		g.p.Enqueue(0, r)
	}
	var marks []frame.Time
	for now := frame.Time(0); ; now = g.p.Wake(now) {
		if g.p.Dequeue(now, g.out[:1]) == 0 {
			break
		}
		if m := g.pool.Meta(g.out[0]); m.Flags&frame.MarkCE != 0 {
			marks = append(marks, m.Depart)
		}
	}
	// Above the target from 20 us on, so for an interval at 420 us; then by the law.
	want := []frame.Time{420_000, 820_000, 1_103_000, 1_334_000, 1_534_000}
	if len(marks) < 5 || !slices.Equal(marks[:5], want) || g.p.HasShed() {
		t.Errorf("marked at %v, want %v first", marks[:min(len(marks), 5)], want)
	}
}

// FQ with CoDel drops of the flow that stands alone, not of one that comes and
// goes.
func TestFQCoDelDropsTheStandingFlow(t *testing.T) {
	cfg := scheduler.PortConfig{Rate: 8e9}
	cfg.Queues[0].Order = FQ{CoDel: CoDel{Target: 20_000, Interval: 400_000}}
	g := newRig(cfg, 4096)
	lost := map[uint32]int{}
	put := func(now frame.Time, hash uint32) {
		if r := g.pool.Alloc(); r != frame.Nil {
			m := g.pool.Reset(r)
			m.Wire, m.Hash = 1000, hash
			g.p.Enqueue(now, r)
		}
	}
	for step := range 20_000 {
		now := frame.Time(step) * 1000
		put(now, 1)
		if step%10 == 0 {
			put(now, 2)
		}
		for k := g.p.Dequeue(now, g.out[:]); k > 0; k-- {
			g.pool.Free(g.out[k-1])
		}
		for k := g.p.TakeShed(g.out[:]); k > 0; k-- {
			lost[g.pool.Meta(g.out[k-1]).Hash]++
			g.pool.Free(g.out[k-1])
		}
	}
	if lost[1] < 100 || lost[2] != 0 {
		t.Errorf("the standing flow lost %d frames, the other %d", lost[1], lost[2])
	}
}

// RED drops nothing below its lower threshold, everything above twice the upper
// one, and between them with the probability of its paper, evenly spread.
func TestRED(t *testing.T) {
	o := RED{Min: 10_000, Max: 30_000, PMax: 0.1, Weight: 9}
	settled := func(bytes uint64) *red {
		g := o.New(scheduler.Env{Seed: 3}).(*red)
		g.mean = bytes << 16
		return g
	}
	m := &frame.Meta{}
	share := func(bytes uint64) float64 {
		g, drops := settled(bytes), 0
		const n = 200_000
		for range n {
			if g.Admits(0, m, 1, bytes) == scheduler.Drop {
				drops++
			}
		}
		return float64(drops) / n
	}
	// The gaps between drops are uniform on 1 to 1/p: the rate is 2/(1/p + 1), p as
	// the length says (the paper's section 7).
	even := func(p float64) float64 { return 2 / (1/p + 1) }
	for bytes, want := range map[uint64]float64{0: 0, 9_900: 0, 20_000: even(0.05), 29_900: even(0.0995), 61_000: 1} {
		if got := share(bytes); math.Abs(got-want) > 0.02*want {
			t.Errorf("at a mean of %d bytes %v are dropped, want %v", bytes, got, want)
		}
	}
	if gentle := share(45_000); gentle < even(0.5) || gentle > 0.75 {
		t.Errorf("halfway to twice the upper threshold %v are dropped", gentle)
	}
	o.ECN = true
	g := settled(29_000)
	for range 100 {
		if g.Admits(0, m, 1, 29_000) == scheduler.Drop {
			t.Fatal("a frame is dropped that could be marked")
		}
	}
}

// The mean follows the length by its weight, and falls while the queue is empty as
// if frames came.
func TestREDMean(t *testing.T) {
	g := RED{Min: 1e6, Max: 2e6, PMax: 0.1, Weight: 2}.New(scheduler.Env{Rate: 8e9}).(*red)
	m := &frame.Meta{}
	for i, want := range []uint64{250, 437, 578, 683} { // 1000(1 - 0.75^n)
		g.Admits(frame.Time(i), m, 1, 1000)
		if got := g.mean >> 16; got != want {
			t.Errorf("frame %d: the mean is %d, want %d", i, got, want)
		}
	}
	g.Sheds(1000, m, 0)
	g.Admits(3000, m, 0, 0) // two frames' time later: 683 * 0.75^2, and then for itself
	if got := g.mean >> 16; got != 288 {
		t.Errorf("the mean is %d, want 288", got)
	}
}
