package cc

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestPower(t *testing.T) {
	for _, c := range []struct{ x, a, want float64 }{
		{0, 0, 1}, {5, 0, 1}, {0, 2, 0}, {0, 0.5, 0}, {3, 4, 81}, {4, 0.5, 2}, {16, 1.75, 128}, {1, 1e18, 1},
		{math.Inf(1), 0.3, math.Inf(1)}, {2, 2000, math.Inf(1)}, {0.5, 2000, 0},
	} {
		if got := power(c.x, c.a); got != c.want {
			t.Errorf("power(%v, %v) = %v, want %v", c.x, c.a, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		x, a := rapid.Float64Range(1e-6, 1e6).Draw(t, "x"), rapid.Float64Range(0, 40).Draw(t, "a")
		if got, want := power(x, a), math.Pow(x, a); math.Abs(got-want) > 1e-12*want {
			t.Errorf("power(%v, %v) = %v, want %v", x, a, got, want)
		}
	})
}
