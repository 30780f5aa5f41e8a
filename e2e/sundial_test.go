package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"gswitch/fabric/results"
)

// A link fails, or the root while the temperature moves all frequencies, between nodes
// that each have an oscillator of their own, on real frames: no clock is more wrong than
// it says at any sample, whether or not the machine kept time.
func TestSundialOnRealFrames(t *testing.T) {
	for _, name := range []string{"real-frames", "real-frames-root"} {
		t.Run(name, func(t *testing.T) { sundialOnRealFrames(t, name) })
	}
}

func sundialOnRealFrames(t *testing.T, name string) {
	text, err := os.ReadFile("../scenarios/sundial/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := aScenario(t, "sundial", string(text))
	c, out := fabricCommand(file, "run", file, "--short", "--on", "netns", "--out", "out")
	err = c.Run()
	f, wrong := results.Load(filepath.Join(c.Dir, "out"))
	if wrong != nil {
		t.Fatalf("%v, %v\n%s", err, wrong, out)
	}
	v := f.Runs[0].Values
	t.Logf("largest bound %v s, largest error %v s, %v plans, %v samples", v["clock_eps_max_seconds"], v["clock_error_max_seconds"], v["clock_plans_total"], v["clock_samples_total"])
	switch {
	case v["clock_samples_total"] < 500 || v["clock_messages_valid_total"] == 0 || v["host_clock_messages_valid_total"] == 0:
		t.Errorf("the clocks were hardly looked at, or heard nothing\n%s", out)
	case v["clock_broken_total"] != 0:
		t.Errorf("%v of %v readings were further from the truth than their bound\n%s", v["clock_broken_total"], v["clock_samples_total"], out)
	case v["clock_error_max_seconds"] == 0 || v["clock_plans_total"] != 1:
		t.Errorf("nothing was tried\n%s", out)
	}
}
