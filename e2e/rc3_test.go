package e2e

import (
	"os"
	"testing"
)

// RC3 on real frames: a message as large as its path takes a round trip and its
// time on the link, and those beside it no longer than without it. The run's
// time stands while a node is late, so that what is expected holds however
// late that is; links are slow enough for their own speed.
func TestRC3OnRealFrames(t *testing.T) {
	text, err := os.ReadFile("../scenarios/rc3/real.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f, out := runLiveFrom(t, aScenario(t, "rc3", string(text)), 1)
	if len(f.Runs) != 2 || len(f.Checks) == 0 {
		t.Fatalf("%d runs, %d expectations of several\n%s", len(f.Runs), len(f.Checks), out)
	}
	tcp, rc3 := f.Runs[0].Values, f.Runs[1].Values
	if tcp["low_frames_total"] != 0 || rc3["low_frames_total"] < 250 || rc3["message.flows_total"] != 1 {
		t.Errorf("frames of the second loop: %v without it, %v with it", tcp["low_frames_total"], rc3["low_frames_total"])
	}
	// By the round trips that each took: two in place of seven.
	if a, b := tcp["message.fct_mean_seconds"]/0.04, rc3["message.fct_mean_seconds"]/0.04; a < 6.4 || b > 2.3 {
		t.Errorf("%.2f round trips with TCP, %.2f with RC3", a, b)
	}
}
