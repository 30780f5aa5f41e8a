package escape

import (
	"slices"
	"testing"

	"gswitch/escape/point"
	"gswitch/fabric/results"
	"gswitch/vswitch"
)

// Reports show what switches count, behind the deadlocks that it resolves.
func TestLabelsAreOfCounters(t *testing.T) {
	var counted []string
	for _, c := range vswitch.Find(point.Name).Counters {
		counted = append(counted, c.Keys()...)
	}
	at := slices.IndexFunc(results.Measures, func(m results.Measure) bool { return m.Name == "deadlocks_total" })
	for i, label := range []string{"tokens of Escape", "tokens of Escape that came to nothing", "tokens of Escape frames released", "tokens of Escape released without one"} {
		m := results.Measures[at+1+i]
		if m.FullLabel() != label {
			t.Errorf("%s is shown as %q, want %q", m.Name, m.FullLabel(), label)
		}
		if !slices.Contains(counted, m.Name) {
			t.Errorf("reports show %s, which nothing counts", m.Name)
		}
	}
}
