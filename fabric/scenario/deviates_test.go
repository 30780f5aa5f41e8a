package scenario

import (
	"strings"
	"testing"

	"gswitch/fabric/results"
)

// A known deviation is the claim of a paper turned round: it is fine as long
// as the claim does not hold, and fails when it does.
func TestDeviates(t *testing.T) {
	s, err := Parse("d.yaml", []byte(small+"deviates:\n- {claim: slowdown_p99 < 3, why: queues are longer here}\n- {claim: slowdown_p99 > 3, why: a mistake}\n"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	runs := make([]*results.Run, len(s.Runs))
	for i := range runs {
		runs[i] = &results.Run{Values: map[string]float64{"slowdown_p99": 5}}
	}
	if between := s.Evaluate(runs); len(between) > 0 {
		t.Fatalf("%v compare runs", between)
	}
	for _, r := range runs {
		if len(r.Checks) != 2 || !r.Checks[0].OK || r.Checks[0].Deviates != "queues are longer here" || r.Checks[1].OK || r.Checks[1].Got != 5 {
			t.Errorf("the checks are %+v", r.Checks)
		}
	}
	for text, want := range map[string]string{
		"deviates: [{claim: slowdown_p99 < 3}]":               "why",
		"deviates:\n- {claim: nonesuch < 3, why: x}":          `deviates[0].claim: "nonesuch < 3"`,
		"deviates:\n- {claim: slowdown_p99 <, why: x}":        "deviates[0].claim",
		"deviates:\n- {claims: slowdown_p99 < 3, why: wrong}": "claims",
	} {
		if _, err := Parse("d.yaml", []byte(small+text+"\n"), Options{}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "d.yaml:") {
			t.Errorf("%s: the error is %v", text, err)
		}
	}
}
