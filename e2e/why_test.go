package e2e

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"gswitch/fabric/traces"
	"gswitch/frame"
)

// What goes wrong in a network of two spines and three leaves; h3 collects the copies.
const incidents = `
version: 1
topology:
  generate: leaf-spine(2, 3, 1)
  classes: {host: {rate: 1Gbps, delay: 10us}, fabric: {rate: 1Gbps, delay: 10us}}
switch:
  buffer: {size: 4MB}
  watch: {enabled: true, sessions: [{name: everflow, to: 10.0.2.2, snap: 128, everflow: {sample: 1}, drops: [all]}]}
hosts: {tcp: {enabled: true}}
workload:
  - {group: web, kind: poisson, from: [h1], to: [h2], load: 0.2, size: 10KB, stop: 18ms}
measure: {traces: [h3], sample: 100us, series: 0}
duration: 20ms
variants:
  - {name: silent, set: {faults: [{kind: loss, link: "spine1:leaf2", share: 0.2}]}}
  - {name: loop, set: {workload.web.load: 0.05, switch.detours: [{at: spine1, to: leaf2, via: leaf1}]}}
  - {name: slow, set: {faults: [{kind: jitter, link: "spine1:leaf2", delay: 800us}]}}
  - {name: uneven, set: {switch.detours: [{at: leaf1, to: leaf2, via: spine1}]}}
expect: [copies_collected_total > 0]
`

// why asks a question of the copies of a run.
func why[T any](t *testing.T, file, question, run string) (v []T) {
	t.Helper()
	out, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "out-*"))
	slices.SortFunc(out, func(a, b string) int { return len(a) - len(b) }) // the last scale was good
	c, answer := fabricCommand(file, "why", question, out[len(out)-1], "--run", run, "--json")
	if err := c.Run(); err != nil {
		t.Fatalf("gfabric why %s: %v\n%s", question, err, answer)
	}
	if err := json.Unmarshal(answer.Bytes(), &v); err != nil || len(v) == 0 {
		t.Fatalf("gfabric why %s: %v\n%s", question, err, answer)
	}
	return v
}

// An incident of each kind, on real frames, is the first thing that its question names:
// a link that loses packets silently, switches that packets circle between, a slow link,
// a switch that takes one way of two.
func TestWhyOnRealFrames(t *testing.T) {
	file := aScenario(t, "why", incidents)
	runLiveFrom(t, file, 100)
	if v := why[traces.Suspect](t, file, "drops", "silent"); v[0].Name != "leaf2" || v[0].Reason != "" || !slices.Equal(v[0].After, []string{"spine1"}) || v[0].Traces < 5 || len(v) > 1 {
		t.Errorf("the link from spine1 to leaf2 loses packets: %+v", v)
	}
	// 64 hops, of which each of the two has half.
	if v := why[traces.Circle](t, file, "loops", "loop"); !slices.Equal(v[0].Switches, []string{"leaf1", "spine1"}) || v[0].Visits < 31 || v[0].Visits > 33 || len(v) > 1 {
		t.Errorf("leaf1 and spine1 send packets to each other: %+v", v)
	}
	const slow = 800 * frame.Microsecond
	v := why[traces.Link](t, file, "slow", "slow")
	if v[0].From != "spine1" || v[0].To != "leaf2" || v[0].Spread < slow*3/4 || v[0].Spread > slow*5/4 {
		t.Errorf("the link from spine1 to leaf2 is slow: %+v", v)
	}
	for _, l := range v[1:] {
		if l.Spread > slow/4 {
			t.Errorf("only the link from spine1 to leaf2 is slow: %+v", l)
		}
	}
	if v := why[traces.Share](t, file, "uneven", "uneven"); v[0].Switch != "leaf1" || v[0].Ways != 2 || v[0].Ratio != 2 || v[0].Most != "spine1" {
		t.Errorf("leaf1 takes one way of two: %+v", v)
	}
}
