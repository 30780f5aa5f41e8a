package deter

import (
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
