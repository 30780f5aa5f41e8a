package pipeline

import (
	"math"
	"math/rand"
	"testing"

	"gswitch/frame"
)

func mustMeter(t testing.TB, rate, burst int64) Meter {
	t.Helper()
	m, err := NewMeter(rate, burst)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Twice the rate is offered for a while, in frames of random size at random
// instants; what passes is the rate plus the burst.
func TestMeterLongRunRate(t *testing.T) {
	for _, rate := range []int64{8e3, 1e6, 999_999_937, 100e9, 400e9} {
		rng := rand.New(rand.NewSource(rate))
		const burst = 20000
		m := mustMeter(t, rate, burst)
		var now frame.Time
		passed, offered := 0.0, 0.0
		for i := 0; i < 500000; i++ {
			n := 64 + rng.Intn(1455)
			offered += float64(n)
			now = frame.Time(offered * 8e9 / float64(rate) / 2)
			if m.Take(now, n) {
				passed += float64(n)
			}
		}
		due := float64(rate)/8*now.Seconds() + burst
		if e := passed/due - 1; math.Abs(e) > 0.001 {
			t.Errorf("rate %d: %.0f bytes passed, %.0f due, error %.4f %%", rate, passed, due, 100*e)
		}
	}
}

// In no interval passes more than rate times its length plus the burst.
func TestMeterBurstBound(t *testing.T) {
	const rate, burst = 1_000_003, 3000
	rng := rand.New(rand.NewSource(1))
	m := mustMeter(t, rate, burst)
	var now frame.Time
	worst := 0.0 // bytes above the rate since the interval that makes most of it
	var last frame.Time
	for i := 0; i < 200000; i++ {
		now += frame.Time(rng.Intn(10_000_000))
		worst = math.Max(0, worst-float64(now-last)*rate/8e9)
		last = now
		if n := 64 + rng.Intn(1400); m.Take(now, n) {
			if worst += float64(n); worst > burst+1e-3 {
				t.Fatalf("%.3f bytes in excess of the rate, burst is %d", worst, burst)
			}
		}
	}
}

func TestMeterEdges(t *testing.T) {
	m := mustMeter(t, 8e9, 1000) // a byte per ns
	if !m.Take(0, 1000) || m.Take(0, 1) {
		t.Error("a full bucket does not hold its burst, or more")
	}
	if m.Take(99, 100) || !m.Take(100, 100) {
		t.Error("100 bytes are not earned in 100 ns exactly")
	}
	if m.Take(50, 1) {
		t.Error("time that runs backwards earns tokens")
	}
	if m.Tokens(frame.Never) != 1000 {
		t.Errorf("%d tokens after a very long time", m.Tokens(frame.Never))
	}
	big := mustMeter(t, MaxRate, MaxBurst)
	big.Take(0, MaxBurst)
	if n := big.Tokens(1); n != MaxRate/8e9 {
		t.Errorf("%d tokens after 1 ns of the highest rate", n)
	}
	for _, c := range [][2]int64{{0, 1}, {-1, 1}, {MaxRate + 1, 1}, {1, 0}, {1, MaxBurst + 1}} {
		if _, err := NewMeter(c[0], c[1]); err == nil {
			t.Errorf("rate %d and burst %d are accepted", c[0], c[1])
		}
	}
}

func TestEventMeter(t *testing.T) {
	m, err := NewEventMeter(100, 5)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for now := frame.Time(0); now < 10*frame.Second; now += frame.Millisecond {
		if m.Take(now, 1) {
			n++
		}
	}
	if n < 1004 || n > 1005 {
		t.Errorf("%d events in 10 s at 100/s with a burst of 5", n)
	}
	if _, err := NewEventMeter(math.MaxInt64/4, 1); err == nil {
		t.Error("an overflowing rate is accepted")
	}
}

func TestTwoRate(t *testing.T) {
	m := TwoRate{Peak: mustMeter(t, 16e9, 300), Committed: mustMeter(t, 8e9, 100)}
	for i, want := range []Color{Green, Yellow, Yellow, Red} {
		if c := m.Mark(0, 100); c != want {
			t.Errorf("frame %d is %v, want %v", i, c, want)
		}
	}
	if c := m.Mark(100, 100); c != Green {
		t.Errorf("after 100 ns: %v", c)
	}
}

func TestMeterDoesNotAllocate(t *testing.T) {
	m := mustMeter(t, 1e9, 10000)
	now := frame.Time(0)
	if n := testing.AllocsPerRun(100, func() { now += 100; m.Take(now, 64) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkMeter(b *testing.B) {
	m := mustMeter(b, 1e9, 10000)
	for i := 0; i < b.N; i++ {
		m.Take(frame.Time(i*7), 64)
	}
	perFrame(b, 1)
}
