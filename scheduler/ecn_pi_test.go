package scheduler

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"gswitch/frame"
)

// The printed law, step by step: Ref 100 KB, A = 2^-24, B = 2^-25, so that all
// numbers are exact. p in multiples of 2^-25.
func TestPIVectors(t *testing.T) {
	k := newIntegrator(PI{Ref: 100_000, A: 1.0 / (1 << 24), B: 1.0 / (1 << 25), Period: 40})
	rng := frame.NewRand(1)
	for i, v := range []struct {
		now  frame.Time
		left uint64
		want int64 // p << 25
	}{
		{0, 0, 0},                                // -200000 + 100000, at least 0
		{39, 500_000, 0},                         // not yet
		{40, 150_000, 200_000},                   // 2 50000 + 100000
		{85, 150_000, 250_000},                   // + 100000 - 50000; instants stay multiples of the period
		{120, 100_000, 200_000},                  // 0 - 50000
		{160, 90_000, 180_000},                   // -20000 - 0
		{320, 101_000, 180_000 + 12_000 + 3_000}, // 2000 + 10000, then three times 2000 - 1000
		{360, 50_000_000, 1 << 25},               // at most 1
		{100_000_000, 0, 0},                      // a long rest with an empty queue
	} {
		k.marks(v.now, v.left, &rng)
		if got := k.p >> 23; got != v.want {
			t.Errorf("step %d: p = %d, want %d", i, got, v.want)
		}
	}
}

// Whatever the queue does, p is a probability, and what is made up for in one
// step is what single steps would have done.
func TestPIProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := PI{Ref: rapid.Uint32Range(1, longestPI).Draw(t, "ref"), A: rapid.Float64Range(1e-9, maxPIGain).Draw(t, "a"), Period: frame.Time(rapid.Int64Range(1, 1e6).Draw(t, "period"))}
		c.Max = rapid.SampledFrom([]float64{0, 0.25, 1}).Draw(t, "max")
		c.B = c.A * rapid.Float64Range(0, 0.999).Draw(t, "b")
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		lazy, eager := newIntegrator(c), newIntegrator(c)
		for now := frame.Time(0); now < 1000*c.Period; {
			q := rapid.Uint64Range(0, 2*longestPI).Draw(t, "queue")
			n := rapid.IntRange(1, 60).Draw(t, "periods")
			for i := range n {
				eager.update(now+frame.Time(i)*c.Period, q)
			}
			now += frame.Time(n-1) * c.Period
			lazy.update(now, q)
			if lazy.p < 0 || lazy.p > lazy.most || lazy.p != eager.p || lazy.due != eager.due {
				t.Fatalf("p = %d, in single steps %d; due %d and %d", lazy.p, eager.p, lazy.due, eager.due)
			}
			now += c.Period
		}
	})
}

// Marked are as many as p says, in a queue that stays as long as it should be.
func TestPIMarks(t *testing.T) {
	k := newIntegrator(PI{Ref: 1000, A: 1e-6, B: 1e-7, Period: 10})
	k.p, k.old = piOne/5, 0
	rng := frame.NewRand(1)
	n := 0
	for i := range frame.Time(100_000) {
		if k.marks(i, 1000, &rng) {
			n++
		}
	}
	if math.Abs(float64(n)-20_000) > 500 {
		t.Errorf("%d of 100000 marked, want a fifth", n)
	}
}

// A port that is configured again goes on from where it was, unless the law
// changed.
func TestPIStaysOverConfigure(t *testing.T) {
	law := PI{Ref: 1000, A: 1e-6, B: 1e-7, Period: 10}
	m := newMarker(ECN{PI: law}, &marker{})
	m.pi.p = 7
	if next := newMarker(ECN{PI: law}, &m); next.pi.p != 7 {
		t.Error("it began anew")
	}
	law.Ref++
	if next := newMarker(ECN{PI: law}, &m); next.pi.p != 0 {
		t.Error("another law goes on")
	}
	for _, bad := range []PI{{A: 1}, {Ref: 1, A: 1e-6, B: 1e-7}, {Ref: 1, Period: 1, A: 1e-6, B: 1e-6}, {Ref: 1, Period: 1, A: 1, B: 0}, {Ref: 1, Period: 1, A: 1e-6, Max: 1.5}, {Ref: 1, Period: 1, A: math.NaN()}} {
		if bad.Validate() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}
