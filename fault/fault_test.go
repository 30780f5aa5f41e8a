package fault

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gswitch/frame"
)

// The chain of Bursts loses the share that was asked for, in rows of the mean
// length that was asked for.
func TestBursts(t *testing.T) {
	for _, c := range []struct{ share, length float64 }{{0.01, 4}, {0.1, 8}, {0.3, 2}} {
		m := NewModel(1)
		m.Set(Config{Burst: Bursts(c.share, c.length)})
		const n = 400_000
		lost, rows, in := 0, 0, false
		for range n {
			l := m.Judge(nil, nil).Loss == LossBurst
			if l {
				lost++
				if !in {
					rows++
				}
			}
			in = l
		}
		// A row's length is geometric: its variance is length*(length-1), so that of the number lost
		// is below share*n*2*length.
		if d := math.Abs(float64(lost) - c.share*n); d > 4*math.Sqrt(c.share*n*2*c.length) {
			t.Errorf("%v: %d of %d lost", c, lost, n)
		}
		if mean := float64(lost) / float64(rows); math.Abs(mean-c.length) > 4*c.length/math.Sqrt(float64(rows)) {
			t.Errorf("%v: rows of %.2f frames", c, mean)
		}
	}
}

// Whatever the configuration, the same seed decides the same, what is lost is
// nothing else, and delays stay within what was asked for.
func TestModelRepeats(t *testing.T) {
	share := rapid.Float64Range(0, 1)
	rapid.Check(t, func(t *rapid.T) {
		c := Config{Loss: share.Draw(t, "loss"), Corrupt: share.Draw(t, "corrupt"), Flip: share.Draw(t, "flip"), FlipBits: rapid.IntRange(0, 64).Draw(t, "bits"),
			Duplicate: share.Draw(t, "duplicate"), Reorder: share.Draw(t, "reorder"), ReorderBy: 1, Jitter: frame.Time(rapid.IntRange(0, 1000).Draw(t, "jitter")),
			Drop: []Drop{{First: 3, Every: 7}, {Match: FiveTuple{Proto: 17}.Match(), Share: share.Draw(t, "share")}}}
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		seed := rapid.Uint64().Draw(t, "seed")
		a, b := NewModel(seed), NewModel(seed)
		a.Set(c)
		b.Set(c)
		for range 200 {
			x, y := udp(), udp()
			v, w := a.Judge(x, nil), b.Judge(y, nil)
			if v != w || string(x) != string(y) {
				t.Fatalf("%+v and %+v", v, w)
			}
			if v.Loss != LossNone && (v.Held || v.Duplicate || v.Flipped) || v.Late < 0 || v.Late > c.Jitter || v.Flipped != (string(x) != string(udp())) && c.FlipBits < 2 {
				t.Fatalf("%+v", v)
			}
		}
	})
}

func TestNothingGoesWrong(t *testing.T) {
	m := NewModel(1)
	m.Set(Config{})
	if v := m.Judge(udp(), nil); v != (Verdict{}) || m.Slows() || m.Span(100) != 100 || (&Config{}).Active() {
		t.Errorf("%+v", v)
	}
	m.Set(Config{Slow: 1e6})
	if got := m.Span(4 * frame.Second); got != 4_000_000*frame.Second {
		t.Errorf("a span of 4 s takes %v", got.Duration())
	}
	m.Set(Config{Slow: 2.5})
	if !m.Slows() || m.Span(1000) != 2500 || !(&Config{Slow: 2.5}).Active() {
		t.Errorf("a span of 1000 takes %d", m.Span(1000))
	}
}

func TestConfigsAreChecked(t *testing.T) {
	for want, c := range map[string]Config{
		"loss -0.1":    {Loss: -0.1},
		"corrupt NaN":  {Corrupt: math.NaN()},
		"burst to bad": {Burst: Burst{ToBad: 2}},
		"drop 1.5":     {Drop: []Drop{{Share: 1.5}}},
		"held back":    {Reorder: 0.5},
		"negative":     {Jitter: -1},
		"99 bits":      {FlipBits: 99},
		"1h0m0s":       {Jitter: math.MaxInt64},
		"at most 1h":   {Reorder: 0.1, ReorderBy: math.MaxInt64},
		"slow 0.5":     {Slow: 0.5},
	} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", c, err, want)
		}
	}
}

func TestJudgeAllocatesNothing(t *testing.T) {
	m := NewModel(1)
	m.Set(Config{Loss: 0.1, Burst: Bursts(0.1, 3), Corrupt: 0.1, Flip: 0.1, Reorder: 0.1, ReorderBy: 1, Jitter: 5, Duplicate: 0.1, Drop: []Drop{{Match: FiveTuple{Proto: 6}.Match(), Share: 0.5}}})
	b := udp()
	if n := testing.AllocsPerRun(1000, func() { m.Judge(b, nil) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkJudge(b *testing.B) {
	m := NewModel(1)
	m.Set(Config{Loss: 0.01})
	for b.Loop() {
		m.Judge(nil, nil)
	}
}
