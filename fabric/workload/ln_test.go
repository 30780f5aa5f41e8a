package workload

import (
	"math"
	"testing"

	"gswitch/frame"
)

func TestLogarithm(t *testing.T) {
	// By a computer algebra system, to the nearest.
	for _, c := range []struct{ x, want float64 }{
		{1, 0}, {2, 0.6931471805599453}, {0.5, -0.6931471805599453}, {10, 2.302585092994046},
		{1e-3, -6.907755278982137}, {1.0 / (1 << 53), -36.7368005696771},
	} {
		if got := ln(c.x); got != c.want {
			t.Errorf("ln(%v) = %v, not %v", c.x, got, c.want)
		}
	}
	r := frame.NewRand(7)
	for range 200_000 {
		x := 1 - r.Float64()
		got, want := ln(x), math.Log(x)
		if d := int64(math.Float64bits(got) - math.Float64bits(want)); d < -1 || d > 1 {
			t.Fatalf("ln(%v) = %v, not %v", x, got, want)
		}
	}
}
