package scenarios_test

import (
	"math"
	"slices"
	"testing"

	"gswitch/fabric/results"
	"gswitch/fabric/run"
	"gswitch/fabric/scenario"
)

func short(t *testing.T, file string) *results.File {
	t.Helper()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	s, err := scenario.Load(file, scenario.Options{Short: true})
	if err != nil {
		t.Fatal(err)
	}
	f, err := run.Scenario(t.Context(), s, run.Options{Version: "test", Jobs: run.DefaultJobs()})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// The mean of U over time and flows is where multiplicative decrease and
// additive increase balance: W = W*eta/U + W_AI with N*W = U*B*T gives
// U = eta + N*W_AI/(B*T).
func TestSteadyState(t *testing.T) {
	f := short(t, "hpcc/sec2.4-steady.yaml")
	const eta, bt = 0.95, 12.5 * 4300
	for name, c := range map[string]struct{ n, wai float64 }{"n2": {2, 80}, "n16": {16, 75}, "n100": {100, 25}} {
		i := slices.IndexFunc(f.Runs, func(r results.Run) bool { return r.Name == name })
		if i < 0 {
			t.Fatalf("there is no run %s", name)
		}
		sum, samples, flows := 0.0, 0, 0
		for _, s := range f.Runs[i].Series {
			if s.Name != "cc_U" {
				continue
			}
			flows++
			for k, at := range s.T {
				if at >= 1e-3 { // the warm-up
					sum += s.V[k]
					samples++
				}
			}
		}
		want := eta + c.n*c.wai/bt
		got := sum / float64(samples)
		t.Logf("%s: U %.4f, theory %.4f, %d samples of %d flows", name, got, want, samples, flows)
		if flows != int(c.n) || math.Abs(got-want) > 0.01 {
			t.Errorf("%s: U %.4f of %d flows, want %.4f of %g", name, got, flows, want, c.n)
		}
	}
}

// overflow is the probability that the work waiting at a link is more than x
// frames, with n sources that each send one frame in every d times of a frame
// at random phases: the queue n*D/D/1 (Roberts and Virtamo, IEEE Transactions
// on Communications 39(2), 1991).
func overflow(n int, d, x float64) (p float64) {
	for k := int(x) + 1; k <= n; k++ {
		a := (float64(k) - x) / d
		if a >= 1 {
			break
		}
		choose, _ := math.Lgamma(float64(n) + 1)
		up, _ := math.Lgamma(float64(k) + 1)
		down, _ := math.Lgamma(float64(n-k) + 1)
		p += math.Exp(choose-up-down+float64(k)*math.Log(a)+float64(n-k)*math.Log(1-a)) * (d - float64(n) + x) / (d - float64(k) + x)
	}
	return p
}

// The queue of paced senders is that of theory: what waits, less the part of
// the frame that is on the link, which is half a frame while it is busy.
func TestPacedQueue(t *testing.T) {
	f := short(t, "hpcc/sec2.4.3-paced.yaml")
	const frame, step = 1058, 0.01
	for name, load := range map[string]float64{"full": 1, "most": 0.95} {
		work := 0.0
		for x := step / 2; x < 50; x += step {
			work += overflow(50, 50/load, x) * step
		}
		want := work - load/2
		sum, n := 0.0, 0
		for _, r := range f.Runs {
			if r.Name == name {
				sum += r.Values["queue_mean_bytes"] / frame
				n++
			}
		}
		got := sum / float64(n)
		t.Logf("%s: %.2f frames wait in the mean of %d draws, theory %.2f (work %.2f)", name, got, n, want, work)
		// Four standard errors: draws differ by about half of their mean.
		if n < 20 || math.Abs(got-want) > 4*0.5*want/math.Sqrt(float64(n)) {
			t.Errorf("%s: %.2f frames in the mean of %d draws, theory says %.2f", name, got, n, want)
		}
	}
}
