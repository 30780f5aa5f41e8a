package e2e

import (
	"testing"

	"gswitch/fabric/flows"
)

const movedFlow = `
version: 1
topology:
  generate: leaf-spine(2, 2, 1)
  classes: {host: {rate: 100Mbps, delay: 5ms}, fabric: {rate: 100Mbps, delay: 5ms}}
switch:
  flowradar: {enabled: true, slot: 20ms, flows: 64}
hosts: {payload: 1000B, transport: {rto_high: 100ms}}
controller: {blackholes: move, takes: 5ms}
workload:
  - {group: messages, kind: periodic, from: [h1], to: [h2], size: 10KB, every: 10ms, count: 60}
faults: [{kind: loss, link: "leaf1:spine1", to: h2, share: 1, start: 200ms}]
measure: {sample: 1ms, series: 0}
duration: 2s
`

// A cable sends one host's frames nowhere. The flows that are lost are named there, on
// real frames, and moved to the other path within 300 ms; all of them complete. Links are
// as long as those of a country, so that a machine keeps time at scale 1, where these are
// milliseconds of the wall clock; one that is too busy for that runs slower.
func TestBlackholeMoved(t *testing.T) {
	f, out := runLiveFrom(t, aScenario(t, "moved", movedFlow), 1)
	r := &f.Runs[0]
	if r.Values["faults_total"] == 0 || r.Values["flow_moved_total"] != 1 {
		t.Fatalf("the cable lost %v frames, flows were moved %v times\n%s", r.Values["faults_total"], r.Values["flow_moved_total"], out)
	}
	if n := r.Values["flows_unfinished_total"]; n != 0 {
		t.Errorf("%v flows are not complete", n)
	}
	for _, x := range flows.Reported.Of(r).Findings {
		switch {
		case x.At != "leaf1>spine1":
			t.Errorf("%+v", x)
		case x.Kind == "blackhole" && x.Moved > 0 && x.Moved-x.From > 0.3:
			t.Errorf("moved after %v s: %+v", x.Moved-x.From, x)
		case x.Kind == "blackhole" && x.Moved > 0:
			t.Logf("moved %.0f ms after the slot began in which it was gone", 1000*(x.Moved-x.From))
		}
	}
}
