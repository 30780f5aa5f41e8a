package scenarios_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// measured is the distribution of round-trip times in a production network as
// DeTail's authors read it from the traces of DCTCP's: 61 us at least, a median
// of 334 us, a tenth above 1 ms, 14 ms at most (Zats et al., EECS-2012-33,
// figure 1; Alizadeh et al., SIGCOMM 2010). In between, the logarithm of the
// time is linear; 1.4 % are taken to be above 10 ms, which the second figure of
// the paper needs.
var measured = []struct{ p, ms float64 }{{0, 0.061}, {0.5, 0.334}, {0.9, 1}, {0.986, 10}, {1, 14}}

func draw(r *rand.Rand) float64 {
	u := r.Float64()
	i := 1
	for u > measured[i].p {
		i++
	}
	a, b := measured[i-1], measured[i]
	return a.ms * math.Pow(b.ms/a.ms, (u-a.p)/(b.p-a.p))
}

const trials = 10_000

// misses returns the 99.9th percentile of how many of n workers miss a deadline
// of 10 ms.
func misses(n int, draw func() float64) float64 {
	x := make([]float64, trials)
	for i := range x {
		for range n {
			if draw() > 10 {
				x[i]++
			}
		}
	}
	slices.Sort(x)
	return x[trials-trials/1000-1]
}

// inTurn returns how many round trips, one after the other, are over within
// 200 ms in 99.9 % of the trials.
func inTurn(draw func() float64) int {
	sums := make([]float64, trials)
	for n := 0; ; n++ {
		late := 0
		for i := range sums {
			if sums[i] += draw(); sums[i] > 200 {
				late++
			}
		}
		if late > trials/1000 {
			return n
		}
	}
}

// The mean of the distribution, between whose points the time grows
// exponentially.
func TestMeasuredMean(t *testing.T) {
	mean := 0.0
	for i := 1; i < len(measured); i++ {
		a, b := measured[i-1], measured[i]
		mean += (b.p - a.p) * (b.ms - a.ms) / math.Log(b.ms/a.ms)
	}
	if math.Abs(mean-0.83) > 0.01 {
		t.Errorf("mean %.3f ms, want 0.83", mean)
	}
}

// What a long tail does to workflows (figures 2 and 3): of 40 workers up to 4
// miss a deadline of 10 ms, of 400 up to 14, and fewer than 150 round trips fit
// into 200 ms. If times were normal about a median of 501 us no worker would,
// and 350 and more would fit. The paper does not give the deviation of that
// normal distribution.
func TestTailsOfWorkflows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	long := func() float64 { return draw(r) }
	for _, c := range []struct {
		workers int
		want    float64
	}{{40, 4}, {400, 14}} {
		if got := misses(c.workers, long); math.Abs(got-c.want) > 1 {
			t.Errorf("%g of %d workers miss the deadline, want %g", got, c.workers, c.want)
		}
	}
	if n := inTurn(long); n < 140 || n > 156 {
		t.Errorf("%d round trips fit, want 148", n)
	}
	for _, sd := range []float64{0.15, 0.2} {
		normal := func() float64 { return 0.501 + sd*r.NormFloat64() }
		if got := misses(400, normal); got != 0 {
			t.Errorf("deviation %g ms: %g of 400 workers miss the deadline", sd, got)
		}
		if n := inTurn(normal); n < 350 || n > 385 {
			t.Errorf("deviation %g ms: %d round trips fit, want 350 to 385", sd, n)
		}
	}
}
