package run

import (
	"context"
	"testing"

	"gswitch/fabric/scenario"
)

// failingClocks fail, drift and are planned anew in every way that a document asks for.
const failingClocks = `
version: 1
title: Clocks on real frames
topology:
  generate: leaf-spine(2, 3, 1)
  classes: {host: {rate: 100Gbps, delay: 500ns}, fabric: {rate: 100Gbps, delay: 500ns}}
clock: {scheme: sundial, root: spine1, controller: 1ms, oscillator: 40, sample: 20us, watch: h1}
workload:
  - {kind: flows, flows: [{from: h1, to: h2, size: 100KB, at: 1ms}]}
faults:
  - {kind: down, link: "leaf1:spine1", start: 2ms, stop: 4ms}
  - {kind: loss, link: "spine1:leaf2", share: 0.2, start: 1ms, stop: 5ms}
  - {kind: clock, node: leaf3, drift: 60000, start: 3ms}
measure: {warmup: 1ms, sample: 1ms, bin: 1ms}
duration: 6ms
`

// On real frames the bound holds at every sample, too, however late workers are:
// nodes know when messages came, and what came without that is not used.
func TestClocksOnRealFrames(t *testing.T) {
	s := load(t, failingClocks, scenario.Options{})
	res, err := Scenario(context.Background(), s, Options{On: Wire, Live: Live{Dilation: 100}})
	if err != nil {
		t.Fatal(err)
	}
	v := res.Runs[0].Values
	t.Log("unknown", v["clock_unknown_total"], "turns", v["clock_turns_timeout_total"], "eps", v["clock_eps_max_seconds"], "error", v["clock_error_max_seconds"], "plans", v["clock_plans_total"])
	if n := v["clock_samples_total"]; n < 1000 || v["clock_broken_total"] != 0 {
		t.Errorf("of %.0f readings %.0f were beyond their bound", n, v["clock_broken_total"])
	}
	if v["clock_error_max_seconds"] == 0 || v["clock_plans_total"] == 0 {
		t.Errorf("errors up to %v s, %v plans: nothing was tried", v["clock_error_max_seconds"], v["clock_plans_total"])
	}
}

// In virtual time no clock of any scheme is beyond its bound either, also those that their
// scheme calls certain: readings are in whole nanoseconds.
func TestBoundsOfAllSchemes(t *testing.T) {
	for _, scheme := range []string{"sundial", "sync-messages", "frequent-messages", "dtp", "huygens", "marzullo"} {
		s := load(t, `
version: 1
title: Clocks
topology:
  generate: leaf-spine(2, 3, 1)
  classes: {host: {rate: 100Gbps, delay: 500ns}, fabric: {rate: 100Gbps, delay: 500ns}}
clock: {scheme: `+scheme+`, root: spine1, interval: 90us, sample: 1us}
workload:
  - {kind: flows, flows: [{from: h1, to: h2, size: 100KB, at: 500us}]}
measure: {warmup: 500us, sample: 1ms, bin: 1ms}
duration: 1ms
seeds: [1, 2, 3, 4, 5]
`, scenario.Options{})
		res, err := Scenario(context.Background(), s, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range res.Runs {
			if v := r.Values; v["clock_samples_total"] < 4000 || v["clock_broken_total"] != 0 {
				t.Errorf("%s, seed %d: of %.0f readings %.0f were beyond their bound", scheme, r.Seed, v["clock_samples_total"], v["clock_broken_total"])
			}
		}
	}
}
