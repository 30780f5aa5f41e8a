package run

import (
	"slices"
	"testing"

	"gswitch/fabric/scenario"
)

// A run tells in its results what is seldom meant: here marks that no switch makes.
func TestWarningsOfRuns(t *testing.T) {
	const text = `version: 1
topology: {generate: star(2), classes: {host: {rate: 10Gbps, delay: 1us}}}
hosts: {cc: dctcp}
workload: [{kind: flows, flows: [{from: h1, to: h2, size: 1KB}]}]
duration: 1ms
variants: [{name: without}, {name: marks, set: {switch.ecn: {kmin: 10KB, kmax: 20KB}}}]
`
	s, err := scenario.Parse("s.yaml", []byte(text), scenario.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := Scenario(t.Context(), s, Options{Version: "test", Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]string{s.Runs[0].Doc.Warnings(), nil} {
		if got := f.Runs[i].Warnings; !slices.Equal(got, want) || i == 0 && len(got) != 1 {
			t.Errorf("%s: %q", f.Runs[i].Name, got)
		}
	}
}
