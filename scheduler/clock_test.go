package scheduler

import (
	"math/big"
	"testing"

	"gswitch/frame"
)

func TestRateClockVector(t *testing.T) {
	// 1048 bytes at 100 Gb/s take 83.84 ns: 25 of them 2096 ns exactly.
	var c RateClock
	c.SetRate(100e9)
	want := []frame.Time{83, 167, 251, 335, 419, 503, 586}
	for i, w := range want {
		if c.Charge(1048); c.Free() != w {
			t.Fatalf("after frame %d: %d, want %d", i, c.Free(), w)
		}
	}
	for i := len(want); i < 25; i++ {
		c.Charge(1048)
	}
	if c.Free() != 2096 || c.rem != 0 {
		t.Fatalf("after 25 frames: %d + %d/%d", c.Free(), c.rem, c.den)
	}
	if got := c.Span(1048); got != 83 {
		t.Fatalf("span %d", got)
	}
}

// The clock is exact at every rate: the sum of many frames is the rounded sum
// of their exact times.
func TestRateClockExact(t *testing.T) {
	rates := []uint64{1e6, 1_544_000, 10e6, 33_333_333, 100e6, 1e9, 2_500_000_000, 10e9, 25e9, 40e9, 100e9, 400e9, 800e9,
		999_999_937, 7_999_999_999_993, 3, 1<<33 + 1}
	for _, rate := range rates {
		rng := frame.NewRand(rate)
		var c RateClock
		c.SetRate(rate)
		sum := new(big.Int)
		for i := 0; i < 20000; i++ {
			n := 60 + rng.Uint32n(9000)
			c.Charge(n)
			sum.Add(sum, big.NewInt(int64(n)))
		}
		sum.Mul(sum, big.NewInt(8e9))
		sum.Div(sum, new(big.Int).SetUint64(rate))
		if !sum.IsInt64() || frame.Time(sum.Int64()) != c.Free() {
			t.Errorf("rate %d: clock %d, exact %v", rate, c.Free(), sum)
		}
	}
}

func TestRateClockIdle(t *testing.T) {
	var c RateClock
	c.SetRate(3e9)
	c.Charge(1)
	if c.Free() != 2 || c.rem == 0 {
		t.Fatalf("free %d rem %d", c.Free(), c.rem)
	}
	c.Idle(2) // not idle: the fraction must survive
	if c.rem == 0 {
		t.Fatal("fraction lost")
	}
	if c.Idle(10); c.Free() != 10 || c.rem != 0 {
		t.Fatalf("free %d rem %d", c.Free(), c.rem)
	}
	c.SetRate(0)
	if c.Charge(1 << 20); c.Limited() || c.Free() != 10 || c.Span(100) != 0 {
		t.Fatal("a clock without rate was charged")
	}
}

func BenchmarkRateClock(b *testing.B) {
	for _, bb := range []struct {
		name string
		rate uint64
	}{{"1G", 1e9}, {"100G", 100e9}, {"odd", 999_999_937}} {
		b.Run(bb.name, func(b *testing.B) {
			var c RateClock
			c.SetRate(bb.rate)
			for i := 0; i < b.N; i++ {
				c.Charge(uint32(60 + i&1023))
			}
		})
	}
}

// In whole nanoseconds each frame is cut off by itself, as ns-3 does it: 1048
// bytes at 100 Gb/s are 83 ns each, however many follow each other, and what
// would be whole is one less.
func TestRateClockWholeNs(t *testing.T) {
	for _, c := range []struct {
		rate  uint64
		bytes uint32
		want  frame.Time
	}{{100e9, 1048, 83}, {100e9, 1090, 87}, {400e9, 1048, 20}, {25e9, 1048, 335}, {100e9, 60, 4}, {3e9, 1000, 2666},
		{25e9, 650, 207}, {100e9, 650, 51}, {8e9, 100, 99}} {
		var k RateClock
		k.SetRate(c.rate)
		k.WholeNs(true)
		for i := range frame.Time(1000) {
			if k.Free() != i*c.want {
				t.Fatalf("%d bytes at %d bit/s: the link is free at %d after %d frames", c.bytes, c.rate, k.Free(), i)
			}
			k.Charge(c.bytes)
		}
		if k.Span(c.bytes) != c.want {
			t.Errorf("%d bytes at %d bit/s span %d", c.bytes, c.rate, k.Span(c.bytes))
		}
		k.WholeNs(false)
		from := k.Free()
		for range 1000 {
			k.Charge(c.bytes)
		}
		if want := frame.Time(1000 * uint64(c.bytes) * 8e9 / c.rate); k.Free()-from != want {
			t.Errorf("%d bytes at %d bit/s: 1000 frames took %d, want %d", c.bytes, c.rate, k.Free()-from, want)
		}
	}
}
