package main

import (
	"strings"
	"testing"
)

// The quickest tenth counts: what disturbed nine runs of ten is not in the table.
func TestTurnsReport(t *testing.T) {
	before := &contender{label: "./a@/old", names: []string{"X"}, ns: map[string][]float64{"X": {}}}
	after := &contender{label: "./a", names: []string{"X", "New"}, ns: map[string][]float64{"X": {}, "New": {7}}}
	for i := range 30 {
		before.ns["X"] = append(before.ns["X"], float64(100+i*i*50))
		after.ns["X"] = append(after.ns["X"], float64(90+i*i*80))
	}
	if v := before.quickest("X"); len(v) != 3 || v[1] != 150 {
		t.Errorf("the quickest tenth of 30 is %v", v)
	}
	var b strings.Builder
	if err := report(&b, []*contender{before, after}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 3 || strings.Join(strings.Fields(lines[1]), " ") != "X ./a@/old 30 100.0 150.0 1.000" ||
		strings.Join(strings.Fields(lines[2]), " ") != "X ./a 30 90.0 170.0 1.133" {
		t.Errorf("the table is\n%s", b.String())
	}
}
