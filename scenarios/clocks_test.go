package scenarios_test

import (
	"strings"
	"testing"

	"gswitch/fabric/scenario"
)

// Every run in which clocks are kept together as Sundial does, or in reaction only, expects
// that none is beyond its bound at any sample. Only a clock that breaks may be, and for how
// long stands in its scenario.
func TestScenariosHoldTheBound(t *testing.T) {
	clocks := 0
	for _, file := range files(t) {
		s, err := scenario.Load(file, scenario.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range s.Runs {
			r := &s.Runs[i]
			if c := r.Doc.Clock.Scheme; !strings.HasPrefix(c, "sundial") && c != "sync-messages" || i > 0 && s.Runs[i-1].Name == r.Name {
				continue
			}
			clocks++
			held := false
			for _, e := range s.Doc.Expect {
				held = held || e == "clock_broken_total == 0" || e == r.Variant+".clock_broken_total == 0"
				held = held || file == "sundial/sec3.4.2-broken.yaml" && e == "clock_broken_total * 10us <= 5 * 90us"
			}
			if !held {
				t.Errorf("%s, run %s: nothing is expected of clock_broken_total", file, r.Name)
			}
		}
	}
	if clocks < 25 {
		t.Errorf("%d runs with clocks", clocks)
	}
}
