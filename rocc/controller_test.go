package rocc

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"gswitch/frame"
)

// at returns a controller in a given state, lengths in units.
func at(p Params, f float64, old int64) *Controller {
	c := NewController(&p)
	c.f, c.old = int64(f*65536), old<<fraction
	return c
}

func (c *Controller) step(units int64) (float64, Branch) {
	b := c.Update(uint64(units) * uint64(c.p.QueueUnit))
	return float64(c.f) / 65536, b
}

var forty, hundred = For(40e9), For(100e9)

// Vectors computed from the printed algorithm, by hand and by program.
func TestVectors(t *testing.T) {
	for _, v := range []struct {
		name   string
		p      Params
		f      float64
		old    int64
		q      []int64
		want   []float64
		branch map[int]Branch
	}{
		{"growth, length, refill", forty, 4000, 0, []int64{550, 590, 600, 640, 0, 0, 250}, []float64{2000, 1838, 10, 10, 42.34375, 44.6875, 32.96875}, map[int]Branch{0: Halved, 2: Cut, 3: Tuned}},
		{"a growing queue", forty, 4000, 0, []int64{100, 250, 400, 550, 560, 650}, []float64{3895, 3670, 3400, 3085, 2977, 10}, map[int]Branch{5: Cut}},
		{"steady state of ten flows", forty, 400, 250, []int64{250, 260, 280, 900, 1000, 200, 249, 251, 250}, []float64{400, 397.75, 392.875, 252.25, 205.375, 281.3125, 272.1625, 271.75, 271.9375}, nil},
		{"upper bound", forty, 3990, 50, []int64{0}, []float64{4000}, nil},
		{"lower bound", forty, 20, 250, []int64{900, 900, 250}, []float64{10, 10, 40.46875}, nil},
		{"gate shut", forty, 500, 600, []int64{700}, []float64{428.75}, nil},
		{"gate open", forty, 501, 600, []int64{700}, []float64{10}, map[int]Branch{0: Cut}},
		{"gate shut for growth", forty, 500, 0, []int64{550}, []float64{271.25}, nil},
		{"100 Gb/s", hundred, 10000, 0, []int64{0, 900, 1000, 2100, 1500, 500, 0, 0}, []float64{10000, 7795, 7345, 10, 38.125, 108.4375, 150.625, 157.65625}, nil},
	} {
		c := at(v.p, v.f, v.old)
		for i, q := range v.q {
			f, b := c.step(q)
			// The gains are rounded to 16 bits: 0.3 is 19661/65536.
			if math.Abs(f-v.want[i]) > 0.04*math.Max(1, v.want[i]/1000) {
				t.Errorf("%s: step %d, length %d: F = %v, want %v", v.name, i, q, f, v.want[i])
			}
			if want, ok := v.branch[i]; ok && b != want {
				t.Errorf("%s: step %d took branch %d, want %d", v.name, i, b, want)
			}
		}
	}
}

// The same numbers to the last bit.
func TestVectorsExact(t *testing.T) {
	c := at(forty, 4000, 0)
	for i, v := range [][2]int64{{550, 2000 << 16}, {590, 120455100}, {600, 10 << 16}, {640, 10 << 16}, {0, 2775042}, {0, 2928644}, {250, 2160644}} {
		c.Update(uint64(v[0]) * 600)
		if c.Raw() != v[1] {
			t.Errorf("step %d: %d, want %d", i, c.Raw(), v[1])
		}
	}
}

// Raw values of the growing queue.
func TestGrowingQueueExact(t *testing.T) {
	c := at(forty, 4000, 0)
	for i, v := range [][2]int64{{100, 255262750}, {250, 240517150}, {400, 222822400}, {550, 202178500}, {560, 195100550}, {650, 655360}} {
		c.Update(uint64(v[0]) * 600)
		if c.Raw() != v[1] {
			t.Errorf("step %d: %d, want %d", i, c.Raw(), v[1])
		}
	}
}

// The gains halve where the rate halves; a boundary belongs to the larger one.
func TestRegions(t *testing.T) {
	for f, want := range map[float64]float64{4000: -3, 2000: -3, 1999: -1.5, 1000: -1.5, 999: -.75, 500: -.75, 499: -.375, 250: -.375, 249: -.1875, 125: -.1875, 124: -.09375, 10: 0} {
		got, _ := at(forty, f, 260).step(260)
		if math.Abs(got-f-want) > 1e-3 {
			t.Errorf("F = %v moves by %v, want %v", f, got-f, want)
		}
	}
	p := forty
	p.Regions = 1
	if got, _ := at(p, 124, 260).step(260); math.Abs(got-121) > 1e-3 {
		t.Errorf("without auto-tuning F = 124 moves to %v, want 121", got)
	}
}

// The loop closed over a fluid queue, with a period of delay: n flows of rate F
// at a link of 4000 units, 12 units of rate being one of length in a period.
func TestClosedLoop(t *testing.T) {
	type point struct{ q, f float64 }
	for _, v := range []struct {
		name string
		n, f float64
		want map[int]point
	}{
		{"two more flows", 12, 400, map[int]point{1: {316.667, 385}, 2: {383.333, 367.5}, 3: {435, 350.875}, 4: {469.167, 336.25}, 6: {489.625, 314.552}, 20: {196.436, 335.477}, 40: {257.896, 331.676}, 60: {249.937, 333.518}, 400: {250, 333.333}}},
		{"half of the flows", 5, 400, map[int]point{1: {83.333, 437.5}, 2: {0, 462.5}, 6: {0, 500}, 7: {0, 518.75}, 20: {0, 762.5}, 40: {317.605, 793.531}, 80: {252.436, 798.553}, 600: {250, 800}}},
	} {
		p := forty
		// Thousandths of both units, so that the fluid is not rounded.
		p.QueueUnit, p.FMin, p.FMax = 1, 10_000, 4_000_000
		p.QRef, p.QMid, p.QMax = 250_000, 500_000, 600_000
		c := at(p, v.f*1000, 250_000)
		q, notified, sent := 250.0, v.f, v.f
		for k := 1; k <= 600; k++ {
			q = math.Max(0, q+(v.n*sent-4000)/12)
			sent = notified
			c.Update(uint64(q * 1000))
			notified = float64(c.Raw()) / 65536 / 1000
			if want, ok := v.want[k]; ok && (math.Abs(q-want.q) > 0.01 || math.Abs(notified-want.f) > 0.01) {
				t.Errorf("%s: after %d periods queue %.3f and rate %.3f, want %.3f and %.3f", v.name, k, q, notified, want.q, want.f)
			}
		}
	}
}

// Whatever the queue does, the rate stays within its bounds, does not move
// where queue and reference agree, and does not rise while a long queue grows.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := For(rapid.SampledFrom([]uint64{1e9, 10e9, 25e9, 40e9, 100e9, 400e9}).Draw(t, "rate"))
		p.First = FirstCut(rapid.IntRange(0, 2).Draw(t, "first"))
		p.Regions = rapid.IntRange(0, 8).Draw(t, "regions")
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		c := NewController(&p)
		float := rapid.Bool().Draw(t, "float")
		for _, q := range rapid.SliceOfN(rapid.Uint64Range(0, 2<<20), 1, 60).Draw(t, "lengths") {
			f, old, region := c.f, c.old, c.region()
			branch := c.Update(q)
			if c.f < c.min || c.f > c.max || c.Units() < p.FMin || c.Units() > p.FMax {
				t.Fatalf("F = %d is not between %d and %d", c.f, c.min, c.max)
			}
			if c.old >= c.ref && c.old >= old && c.f > f {
				t.Fatalf("F rose from %d to %d while the queue grew from %d to %d", f, c.f, old, c.old)
			}
			if float && branch == Tuned {
				n := float64(c.old) / 65536
				r := float64(int(1) << region)
				want := float64(f)/65536 - p.Alpha/r*(n-float64(p.QRef)/float64(p.QueueUnit)) - p.Beta/r*(n-float64(old)/65536)
				want = math.Min(math.Max(want, float64(p.FMin)), float64(p.FMax))
				// The gains are rounded to 2^-17, times thousands of units.
				if math.Abs(want-float64(c.f)/65536) > 0.1 {
					t.Fatalf("F = %v, in floating point %v", float64(c.f)/65536, want)
				}
			}
		}
		if c.old = c.ref; c.ref&(1<<fraction-1) == 0 {
			f := c.f
			if c.Update(uint64(p.QRef)); c.f != f {
				t.Fatalf("F moved from %d to %d at the reference", f, c.f)
			}
		}
	})
}

// Similar links behave alike: bytes and gains are the same, and rate times
// period.
func TestSimilar(t *testing.T) {
	a, b := For(40e9), For(1e9)
	if b.Period != 40*a.Period || b.RateUnit*40 != a.RateUnit || b.FMax != a.FMax || b.QRef != a.QRef || b.Alpha != a.Alpha {
		t.Errorf("%+v is not similar to %+v", b, a)
	}
	x, y := NewController(&a), NewController(&b)
	r := frame.NewRand(1)
	for range 10_000 {
		q := r.Uint64() % 500_000
		if x.Update(q) != y.Update(q) || x.f != y.f {
			t.Fatal("two similar controllers part")
		}
	}
}

func TestValidate(t *testing.T) {
	for name, change := range map[string]func(*Params){
		"unit":     func(p *Params) { p.QueueUnit = 0 },
		"period":   func(p *Params) { p.Period = 0 },
		"least":    func(p *Params) { p.FMin = 0 },
		"largest":  func(p *Params) { p.FMax = p.FMin },
		"growth":   func(p *Params) { p.QMid = p.QRef },
		"length":   func(p *Params) { p.QMax = p.QMid },
		"gain":     func(p *Params) { p.Alpha = math.NaN() },
		"first":    func(p *Params) { p.First = 3 },
		"regions":  func(p *Params) { p.Regions = 17 },
		"unstable": func(p *Params) { p.QRef = 10 },
	} {
		p := forty
		if change(&p); p.Validate() == nil {
			t.Errorf("%s: %+v is taken", name, p)
		}
	}
}

func TestAllocs(t *testing.T) {
	c := NewController(&forty)
	if n := testing.AllocsPerRun(100, func() { c.Update(150_000) }); n != 0 {
		t.Errorf("an update allocates %v times", n)
	}
}

// In a queue that is short the largest rate stays, whatever the queue was
// before; in one that is two units longer it does not always.
func TestShortQueuesLeaveTheLargestRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Options{Alpha: rapid.Float64Range(0.01, 2).Draw(t, "alpha"), QRef: rapid.Uint32Range(10_000, 400_000).Draw(t, "qref")}
		p := o.At(rapid.SampledFrom([]uint64{1e9, 40e9, 100e9}).Draw(t, "rate"))
		c := NewController(&p)
		short := c.Steady()
		for range rapid.IntRange(1, 30).Draw(t, "updates") {
			if c.Update(rapid.Uint64Range(0, short).Draw(t, "queue")); !c.AtMax() {
				t.Fatalf("the rate fell to %d of %d, short is %d", c.Units(), p.FMax, short)
			}
		}
		c = NewController(&p)
		if c.Update(short + 2*uint64(p.QueueUnit)); c.AtMax() {
			t.Errorf("an empty queue that grew to %d leaves the rate, short is %d", short+2*uint64(p.QueueUnit), short)
		}
	})
}
