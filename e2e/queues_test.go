package e2e

import (
	"math"
	"os"
	"strings"
	"testing"
)

// One trace through an exact priority queue, four that do with less and a plain one on real
// frames: how often a frame left while one of smaller rank waited.
func TestPriorityQueuesOnRealFrames(t *testing.T) {
	text, err := os.ReadFile("../scenarios/orders/real.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f, out := runLiveFrom(t, aScenario(t, "pifo", string(text)), 1, "--short")
	if len(f.Runs) != 6 {
		t.Fatalf("%d runs\n%s", len(f.Runs), out)
	}
	for i := range f.Runs {
		v := f.Runs[i].Values
		t.Logf("%s: %v inversions, %v frames dropped", f.Runs[i].Name, v["inversions_total"], v["drops_total"])
		if v["drops_total"] == 0 {
			t.Errorf("%s: nothing was dropped, so that the order decided nothing", f.Runs[i].Name)
		}
	}
}

// The slack that frames used on their way through three switches is what they took
// longer than alone, end to end, but for how late the nodes were.
func TestUsedSlackOnRealFrames(t *testing.T) {
	text, err := os.ReadFile("../scenarios/ups/real.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// Of real frames the difference is judged below, by how late the run says it was.
	loose := strings.Replace(string(text), "/ 120) < 5us", "/ 120) < 10ms", 1)
	if loose == string(text) {
		t.Fatal("the scenario has changed")
	}
	f, out := runLiveFrom(t, aScenario(t, "slack", loose), 1)
	if len(f.Runs) != 2 {
		t.Fatalf("%d runs\n%s", len(f.Runs), out)
	}
	busy, quiet := f.Runs[0].Values, f.Runs[1].Values
	longer := busy["fct_mean_seconds"] - quiet["fct_mean_seconds"]
	waited := (busy["slack_wait_seconds_total"] - quiet["slack_wait_seconds_total"]) / 120
	// A frame passes five nodes, and each may be late by as much.
	late := 5 * (f.Runs[0].Timing.LateMax + f.Runs[1].Timing.LateMax)
	t.Logf("%.1f us longer, %.1f us of slack used, nodes late by up to %.1f us", longer*1e6, waited*1e6, late*1e6)
	if math.Abs(longer-waited) > 5e-6+late {
		t.Errorf("frames took %v s longer than alone, and used %v s of slack", longer, waited)
	}
}
