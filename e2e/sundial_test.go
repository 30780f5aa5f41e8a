package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"gswitch/fabric/results"
)

// A link fails, or the root while the temperature moves all frequencies, between nodes
// that each have an oscillator of their own, on real frames. No clock is more wrong than it
// says at any sample, whether or not the machine kept time. Where it did, the scenario's bands
// hold; where it did not, time is dilated more, until it does.
func TestSundialOnRealFrames(t *testing.T) {
	for _, c := range []struct {
		name  string
		scale int
		late  time.Duration // of the nodes: the bands have room for so much at each hop
		plans float64
		order [3]string // windows: the second has the largest bound
	}{
		{"real-frames", 1000, 20 * time.Microsecond, 1, [3]string{"before", "failing", "planned"}},
		{"real-frames-root", 1000, 20 * time.Microsecond, 1, [3]string{"before", "failing", "behind"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, err := os.ReadFile("../scenarios/sundial/" + c.name + ".yaml")
			if err != nil {
				t.Fatal(err)
			}
			file := aScenario(t, "sundial", string(text))
			for scale := c.scale; ; scale *= 4 {
				r := sundialOnRealFrames(t, file, scale, c.plans)
				g := r.Timing
				late := time.Duration(max(g.LateMax, g.TransitMax) * 1e9)
				if !g.Valid || late > c.late {
					t.Logf("at a scale of %d workers were late by %v, and frames by %v: once more, at four times that", scale, g.LateMax, g.TransitMax)
					continue
				}
				for _, k := range r.Checks {
					if !k.OK {
						t.Errorf("%s: it is %v, and workers were late by %v at most", k.Text, k.Got, late)
					}
				}
				eps := func(window string) float64 { return r.Values[window+".clock_eps_max_seconds"] }
				if len(r.Checks) == 0 || eps(c.order[0]) >= eps(c.order[1]) || eps(c.order[2]) >= eps(c.order[1]) {
					t.Errorf("bounds of %v, %v and %v s, %d expectations", eps(c.order[0]), eps(c.order[1]), eps(c.order[2]), len(r.Checks))
				}
				return
			}
		})
	}
}

// A link and the root fail at a scale of 1, with messages each 10 ms: missing messages are found 20.6 ms
// behind the last message, give or take 2 ms, a link's failure is behind 31 ms and the root's
// behind 44 ms. No band is wider than those: the nodes' time stands while their worker is kept
// from its processor, so that a busy machine takes longer. What does not hold in a run in which a
// frame or a timer was later than the bands have room for says nothing of them, and the run is
// done again. No clock is more wrong than it says in any run, whether it counts or not.
func TestSundialAtMachineSpeed(t *testing.T) {
	const (
		runs = 40
		// The narrowest band is 1 ms beside what is expected, and the way of a message has four
		// hops.
		late = 200 * time.Microsecond
	)
	text, err := os.ReadFile("../scenarios/sundial/real-time.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := aScenario(t, "sundial", string(text))
	for i := range runs {
		r := sundialOnRealFrames(t, file, 1, 2)
		g := r.Timing
		if g.Scale != 1 || len(r.Checks) < 8 {
			t.Fatalf("a scale of %v, %d expectations", g.Scale, len(r.Checks))
		}
		was := time.Duration(max(g.LateMax, g.TransitMax) * 1e9)
		good := true
		for _, k := range r.Checks {
			t.Logf("%s: %v", k.Text, k.Got)
			good = good && k.OK
		}
		switch {
		case good:
			t.Logf("the clock stood for %.0f %% of the time, and nothing was later than %v", 100*g.StoppedShare, was)
			return
		case g.Valid && was <= late:
			t.Fatalf("run %d: nothing was later than %v, and yet it does not hold", i, was)
		}
		t.Logf("run %d does not count: something was late by %v", i, was)
	}
	t.Skipf("the machine has other work: frames or timers were later than %v in each of %d runs, and the times of failures did not hold in any", late, runs)
}

// sundialOnRealFrames runs a scenario at a scale, and asks of it what holds however late a
// worker is.
func sundialOnRealFrames(t *testing.T, file string, scale int, plans float64) *results.Run {
	t.Helper()
	out := "out-" + strconv.Itoa(scale)
	c, said := fabricCommand(file, "run", file, "--short", "--on", "netns", "--scale", strconv.Itoa(scale), "--out", out)
	err := c.Run()
	f, wrong := results.Load(filepath.Join(c.Dir, out))
	if wrong != nil {
		t.Fatalf("%v, %v\n%s", err, wrong, said)
	}
	r := &f.Runs[0]
	v := r.Values
	t.Logf("at a scale of %d: largest bound %v s, largest error %v s, %v plans, %v samples; the clock was stopped %v of the time", scale,
		v["clock_eps_max_seconds"], v["clock_error_max_seconds"], v["clock_plans_total"], v["clock_samples_total"], r.Timing.StoppedShare)
	switch {
	case v["clock_samples_total"] < 500 || v["clock_messages_valid_total"] == 0 || v["host_clock_messages_valid_total"] == 0:
		t.Fatalf("the clocks were hardly looked at, or received nothing\n%s", said)
	case v["clock_broken_total"] != 0:
		t.Fatalf("%v of %v readings were further from the truth than their bound\n%s", v["clock_broken_total"], v["clock_samples_total"], said)
	case v["clock_error_max_seconds"] == 0 || v["clock_plans_total"] != plans:
		t.Fatalf("nothing was tried\n%s", said)
	}
	return r
}
