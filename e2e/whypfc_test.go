package e2e

import (
	"strings"
	"testing"

	"gswitch/fabric/traces"
	"gswitch/frame"
)

// The link to a host carries its frames too slowly.
const slowHost = `
version: 1
topology:
  generate: leaf-spine(2, 3, 1)
  classes: {host: {rate: 10Gbps, delay: 1us}, fabric: {rate: 40Gbps, delay: 1us}}
switch:
  buffer: {size: 1MB, lossless_alpha: 0.06}
  watch: {enabled: true, sessions: [{name: everflow, to: 10.0.2.2, snap: 128, own_pauses: true, everflow: {sample: 10}}]}
pfc: {enabled: true}
hosts: {class: 3, params: {window: none}}
workload:
  - {group: data, kind: saturate, from: [h1], to: [h2], size: 1MB}
measure: {traces: [h3], sample: 100us, series: 0}
faults: [{kind: slow, link: "leaf2:h2", rate: 1Gbps, start: 1ms}]
duration: 4ms
expect: [copies_collected_total > 0]
`

// Pauses spread hop by hop from the switch whose host takes its frames too slowly to the
// sender, each earlier the nearer it is.
func TestWhyPausesOnRealFrames(t *testing.T) {
	file := aScenario(t, "whypfc", slowHost)
	runLiveFrom(t, file, 200)
	first := map[string]frame.Time{}
	for _, p := range why[traces.Pauser](t, file, "pfc", "") {
		who := strings.TrimRight(p.Who, "12")
		if p.Who == "leaf1" || p.Who == "leaf2" {
			who = p.Who
		}
		if at, ok := first[who]; p.Pauses > 0 && (!ok || p.First < at) {
			first[who] = p.First
		}
	}
	if len(first) != 3 || !(first["leaf2"] > 0 && first["leaf2"] < first["spine"] && first["spine"] < first["leaf1"]) {
		t.Errorf("pauses began at %v, want leaf2, then a spine, then leaf1", first)
	}
}
