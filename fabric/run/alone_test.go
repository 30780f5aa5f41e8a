package run

import (
	"math"
	"strings"
	"testing"
)

// What a flow takes alone in the simulated network is what the path promises,
// as long as nothing but the link holds it back.
func TestSimulatedIdeal(t *testing.T) {
	text := strings.Replace(incast, "cc: true", "cc: true, ideal: IDEAL", 1)
	computed := execute(t, strings.Replace(text, "IDEAL", "computed", 1), Options{Jobs: 1})
	simulated := execute(t, strings.Replace(text, "IDEAL", "simulated", 1), Options{Jobs: 1})
	for i := range computed.Runs {
		a, b := &computed.Runs[i], &simulated.Runs[i]
		if a.Digest != b.Digest {
			t.Errorf("%s: measuring the ideal changed the run", a.Name)
		}
		if len(a.Flows) == 0 || len(a.Flows) != len(b.Flows) {
			t.Fatalf("%s: %d and %d flows", a.Name, len(a.Flows), len(b.Flows))
		}
		for k := range a.Flows {
			x, y := a.Flows[k], b.Flows[k]
			// Computed without telemetry's bytes or with: at most a hundredth, and a few ns of rounding.
			if d := math.Abs(x.Ideal - y.Ideal); d > 0.01*x.Ideal+10e-9 {
				t.Errorf("%s: %d B from %s to %s: computed %g s, simulated %g s", a.Name, x.Bytes, x.Src, x.Dst, x.Ideal, y.Ideal)
			}
		}
	}
}
