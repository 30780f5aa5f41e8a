package e2e

import "testing"

// slowUplink has two leaves with two ways between them, one of them at a tenth
// of its rate. A choice by flow sends half of the flows there: what waits in
// front of it fills the crossbar's queues, and the hosts are paused. A choice by
// what waits gives it what it can carry. 60 s of timeout and no fast
// retransmission: one frame lost is a flow that does not end.
const slowUplink = `version: 1
topology:
  generate: leaf-spine(2, 2, 2)
  classes: {host: {rate: 25Gbps, delay: 1us}, fabric: {rate: 40Gbps, delay: 1us}}
  change: [{link: "leaf1:spine1", rate: 4Gbps}]
pfc: {enabled: true}
switch: {crossbar: {enabled: true}}
hosts:
  payload: 1400B
  base_rtt: 30us
  cc: none
  params: {window: none}
  transport: {mode: newreno, fast_retransmit: false, rto_low: 60s, rto_high: 60s}
workload: [{group: web, kind: poisson, from: [h1, h2], to: [h3, h4], size: 16KB, load: 0.4, stop: 600us}]
measure: {sample: 10us, bin: 100us}
duration: 100ms
until: done
variants:
  - {name: hash}
  - {name: adaptive, set: {switch.paths.choose: adaptive}}
expect:
  - flows_total > 50
  - flows_unfinished_total == 0
  - drops_total == 0
  - retransmissions_total == 0
  - hash.pauses_total > 0
  - adaptive.fct_p99_seconds <= 0.5 * hash.fct_p99_seconds
`

// Crossbars, pauses by their queues and adaptive paths on real frames: nothing
// is lost, all flows end, and a slow way up matters less. The scenario says so,
// and fails else.
func TestDeTailSlowUplink(t *testing.T) {
	file := aScenario(t, "detail", slowUplink)
	f, _ := runLive(t, file)
	for i := range f.Runs {
		v := f.Runs[i].Values
		t.Logf("%s: %v flows, p99 %.0f us, %v pauses, below the first threshold %.2f", f.Runs[i].Name, v["flows_total"], 1e6*v["fct_p99_seconds"],
			v["pauses_total"], v["paths_tier1_share"])
	}
	if left := wiresLeft(nameOf(file)); left != nil {
		t.Errorf("left behind: %v", left)
	}
}
