package e2e

import (
	"testing"

	"gswitch/fabric/flows"
	"gswitch/fabric/observe/losses"
)

const lossyWire = `
version: 1
topology:
  generate: leaf-spine(1, 2, 1)
  classes: {host: {rate: 1Gbps, delay: 10us}, fabric: {rate: 1Gbps, delay: 10us}}
switch:
  lossradar: {enabled: true, batch: 2ms, timeout: 1ms}
  flowradar: {enabled: true, mode: both, slot: 2ms, flows: 64}
hosts: {payload: 1000B, transport: {rto_high: 1ms}}
workload:
  - {group: messages, kind: periodic, from: [h1], to: [h2], size: 50KB, every: 1ms, count: 6}
faults: [{kind: loss, link: "leaf1:spine1", share: 0.05}]
measure: {sample: 100us, series: 0}
duration: 20ms
`

// A wire that loses frames is found by its two ends on real frames: every frame that
// was taken off it is named, on that wire and on no other, and the flows that
// switches count miss as many.
func TestLossyWire(t *testing.T) {
	f, out := runLiveFrom(t, aScenario(t, "lossy", lossyWire), 200)
	r := &f.Runs[0]
	lost := r.Values["faults_total"]
	if lost < 5 {
		t.Fatalf("the wire lost %v frames\n%s", lost, out)
	}
	for _, name := range []string{"lost_named_total", "flow_lost_total"} {
		if got := r.Values[name]; got != lost {
			t.Errorf("%s is %v, and the wire lost %v", name, got, lost)
		}
	}
	for _, name := range []string{"lost_strange_reports_total", "flow_strange_reports_total", "flow_garbage_total", "flow_loops_total"} {
		if r.Values[name] != 0 {
			t.Errorf("%s is %v", name, r.Values[name])
		}
	}
	sum := uint64(0)
	for _, l := range losses.Found.Of(r) {
		sum += l.Frames
		if l.Link != "leaf1>spine1" {
			t.Errorf("%d frames are said to be lost on %s", l.Frames, l.Link)
		}
	}
	if float64(sum) != lost {
		t.Errorf("%d frames in the table of losses, %v were lost", sum, lost)
	}
	for _, x := range flows.Reported.Of(r).Findings {
		if x.At != "leaf1>spine1" {
			t.Errorf("%+v", x)
		}
	}
	if v := r.Values["flow_decoded_share"]; v != 1 || r.Values["flow_counters_share"] != 1 {
		t.Errorf("decoded are %v of the flows, %v with their packets", v, r.Values["flow_counters_share"])
	}
}
