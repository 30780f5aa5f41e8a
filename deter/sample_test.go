package deter

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gswitch/frame"
)

func samples(bound frame.Time, at ...frame.Time) []Sample {
	s := &Sampler{Bound: bound}
	for _, t := range at {
		s.Add(t)
	}
	return s.Samples()
}

// Bursts at one pace are two samples: a pause ends the first.
func TestSamplesVector(t *testing.T) {
	got := samples(5*us, 0, 10*us, 20*us, 30*us, 60*us, 70*us)
	if diff := cmp.Diff([]Sample{{0, 0, 10_000}, {4, 60 * us, 10_000}}, got); diff != "" {
		t.Error(diff)
	}
	if got := samples(5*us, 7); len(got) != 1 || got[0] != (Sample{0, 7, 0}) {
		t.Errorf("one packet gives %v", got)
	}
}

// rates samples as algorithm 12 of the dissertation is printed, by the set of rates in packets per
// nanosecond that explain the packets since the last sample.
func rates(bound frame.Time, at []frame.Time) (v []Sample, sets [][2]float64) {
	low, top := math.Inf(-1), math.Inf(1)
	for i, t := range at {
		if i == 0 {
			v = append(v, Sample{At: t})
			continue
		}
		s := &v[len(v)-1]
		n := float64(uint64(i) - s.Index)
		from, to := n/float64(t+bound-s.At), math.Inf(1)
		if early := t - bound - s.At; early > 0 {
			to = n / float64(early)
		}
		if l, h := max(low, from), min(top, to); l <= h {
			low, top = l, h
			continue
		}
		sets = append(sets, [2]float64{low, top})
		v, low, top = append(v, Sample{Index: uint64(i), At: t}), math.Inf(-1), math.Inf(1)
	}
	return v, append(sets, [2]float64{low, top})
}

// The set of gaps is that of the paper's rates: samples begin at the same packets, and what is kept of
// the set explains all packets between them. Of the rates 3/35 to 3/25 a microsecond the middle puts
// packet 3 at 29.17 us, the middle of the gaps at 30.
func TestSamplesAsRates(t *testing.T) {
	at := []frame.Time{0, 10 * us, 20 * us, 30 * us, 60 * us, 70 * us}
	v, sets := rates(5*us, at)
	if len(v) != 2 || v[0].Index != 0 || v[1].Index != 4 {
		t.Fatalf("samples %v", v)
	}
	low, top := sets[0][0]*1000, sets[0][1]*1000
	mid := (low + top) / 2
	if math.Abs(low-3.0/35) > 1e-12 || math.Abs(top-3.0/25) > 1e-12 || math.Abs(mid-0.10286) > 5e-6 || math.Abs(3/mid-29.17) > 0.005 {
		t.Errorf("rates %v to %v, packet 3 at %v us", low, top, 3/mid)
	}
	if got := Times(samples(5*us, at...), len(at)); got[3] != 30*us {
		t.Errorf("by gaps packet 3 is at %v", got[3].Duration())
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		at, now := []frame.Time(nil), frame.Time(0)
		for range 300 {
			if now += 2 * frame.Time(r.IntN(1500)); r.IntN(20) == 0 {
				now += 2 * frame.Time(r.IntN(20_000))
			}
			at = append(at, now)
		}
		v, sets := rates(5*us+1, at)
		got := samples(5*us+1, at...)
		if len(got) != len(v) {
			t.Fatalf("%d samples by gaps, %d by rates", len(got), len(v))
		}
		for i := range v {
			if got[i].Index != v[i].Index || got[i].At != v[i].At {
				t.Fatalf("sample %d is %v by gaps, %v by rates", i, got[i], v[i])
			}
			if rate := 1 / got[i].Gap; got[i].Gap > 0 && (rate < sets[i][0]*(1-1e-9) || rate > sets[i][1]*(1+1e-9)) {
				t.Errorf("sample %d: a rate of %v is not in %v", i, rate, sets[i])
			}
		}
	}
}

// No time is off by more than the bound, and half a nanosecond of rounding.
func TestSamplesBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bound := frame.Time(rapid.IntRange(0, 20_000).Draw(t, "bound"))
		var at []frame.Time
		now := frame.Time(0)
		for range rapid.IntRange(1, 30).Draw(t, "bursts") {
			gap := frame.Time(rapid.IntRange(0, 5000).Draw(t, "gap"))
			for range rapid.IntRange(1, 50).Draw(t, "packets") {
				now += gap + frame.Time(rapid.IntRange(0, 40).Draw(t, "noise"))
				at = append(at, now)
			}
			now += frame.Time(rapid.IntRange(0, 100_000).Draw(t, "idle"))
		}
		v := samples(bound, at...)
		if len(v) > len(at) {
			t.Fatalf("%d samples of %d packets", len(v), len(at))
		}
		for i, got := range Times(v, len(at)) {
			if d := got - at[i]; d > bound+1 || d < -bound-1 {
				t.Fatalf("packet %d is off by %d ns, the bound is %d", i, d, bound)
			}
		}
	})
}

// The case of the paper: the second of two senders begins after 500 us, so that the
// gap of the first doubles within a burst. A constant rate for each burst is off by
// tens of microseconds, samples by the bound.
func TestSamplesChangeOfRate(t *testing.T) {
	var at []frame.Time
	now := frame.Time(0)
	for i := range 500 {
		at = append(at, now)
		if now += 1230; i >= 96 {
			now += 1230
		}
	}
	worst := func(got []frame.Time) (d frame.Time) {
		for i := range got {
			d = max(d, got[i]-at[i], at[i]-got[i])
		}
		return d
	}
	v := samples(5*us, at...)
	if d := worst(Times(v, len(at))); len(v) > 5 || d > 5*us {
		t.Errorf("%d samples, off by %v", len(v), d.Duration())
	}
	burst := []Sample{{0, 0, float64(at[499]) / 499}}
	if d := worst(Times(burst, len(at))); d < 30*us {
		t.Errorf("a constant rate is off by %v only", d.Duration())
	}
}
