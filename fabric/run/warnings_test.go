package run

import (
	"slices"
	"strings"
	"testing"

	"gswitch/fabric/results"
	"gswitch/fabric/scenario"
)

// ran is a scenario, and what its runs came to.
func ran(t *testing.T, text string) (*scenario.Scenario, *results.File) {
	t.Helper()
	s, err := scenario.Parse("s.yaml", []byte(text), scenario.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := Scenario(t.Context(), s, Options{Version: "test", Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	return s, f
}

// A run says in its results what is seldom meant: here marks that no switch makes.
func TestWarningsOfRuns(t *testing.T) {
	const text = `version: 1
topology: {generate: star(2), classes: {host: {rate: 10Gbps, delay: 1us}}}
hosts: {cc: dctcp}
workload: [{kind: flows, flows: [{from: h1, to: h2, size: 1KB}]}]
duration: 1ms
variants: [{name: without}, {name: marks, set: {switch.ecn: {kmin: 10KB, kmax: 20KB}}}]
`
	s, f := ran(t, text)
	for i, want := range [][]string{s.Runs[0].Doc.Warnings(), nil} {
		if got := f.Runs[i].Warnings; !slices.Equal(got, want) || i == 0 && len(got) != 1 {
			t.Errorf("%s: %q", f.Runs[i].Name, got)
		}
	}
}

// Telemetry that switches cannot write is counted and reported, and auto takes a
// format that fits the longest path.
func TestUnstampedTelemetryIsReported(t *testing.T) {
	const text = `version: 1
topology: {generate: line(6), classes: {host: {rate: 10Gbps, delay: 1us}, fabric: {rate: 10Gbps, delay: 1us}}}
hosts: {cc: hpcc}
workload: [{kind: flows, flows: [{from: h1, to: h6, size: 100KB}]}]
duration: 2ms
variants: [{name: auto}, {name: five, set: {switch.int.mode: hpcc}}]
`
	_, f := ran(t, text)
	auto, five := f.Runs[0], f.Runs[1]
	if n, ok := auto.Values["telemetry_unstamped_total"]; !ok || n != 0 || len(auto.Warnings) != 0 {
		t.Errorf("auto: %v unstamped, %q", n, auto.Warnings)
	}
	// Of 100 frames the sixth switch's.
	if n := five.Values["telemetry_unstamped_total"]; n != 100 || len(five.Warnings) != 1 || !strings.Contains(five.Warnings[0], "100 of 600 records of switches were not written (full 100)") {
		t.Errorf("hpcc: %v unstamped, %q", n, five.Warnings)
	}
}

// A threshold of TIMELY below the round-trip time of the empty network lowers all
// rates for ever, which the results say; one above it is no warning.
func TestThresholdsBelowTheBaseRTT(t *testing.T) {
	const text = `version: 1
topology: {generate: star(2), classes: {host: {rate: 10Gbps, delay: 30us}}}
hosts: {cc: timely, params: {tlow: 50us, thigh: 100us}}
workload: [{group: own, kind: flows, flows: [{from: h1, to: h2, size: 1KB}]}]
duration: 1ms
variants: [{name: below}, {name: above, set: {hosts.params.thigh: 200us}}, {name: target, set: {hosts.params: {mode: queue, target: 100us}}},
  {name: entry, set: {hosts.cc: dctcp, hosts.params: {}, hosts.mark_above: 10KB, workload.own.cc: timely, workload.own.params: {thigh: 60us}}}]
`
	_, f := ran(t, text)
	for i, want := range []string{"hosts.params.thigh: 100us is below", "", "hosts.params.target: 100us is below", "workload[0].params.thigh: 60us is below"} {
		got := f.Runs[i].Warnings
		if want == "" && len(got) != 0 || want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], want)) {
			t.Errorf("%s: %q", f.Runs[i].Name, got)
		}
	}
}
