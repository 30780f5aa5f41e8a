package e2e

import "testing"

// circle is three switches in a ring, of which each flow crosses two links: by
// priority flow control alone each link waits for the next before long, for
// good. With Escape what could go on goes on, and nothing is lost or overtaken:
// with go-back-N one frame that is would be asked for again.
const circle = `version: 1
topology: {generate: "ring(3, 1)", classes: {host: {rate: 40Gbps, delay: 1us}, fabric: {rate: 40Gbps, delay: 1us}}}
pfc: {enabled: true}
switch:
  buffer: {size: 8MB, xoff: 40KB, xon_offset: 4KB}
  detours: [{at: s1, to: s3, via: s2}, {at: s2, to: s1, via: s3}, {at: s3, to: s2, via: s1}]
hosts: {class: 3, ack_class: 7, base_rtt: 100us, cc: none, params: {window: none}}
workload:
  - {group: f1, kind: saturate, from: [h1], to: [h3], size: 200KB}
  - {group: f2, kind: saturate, from: [h2], to: [h1], size: 200KB}
  - {group: f3, kind: saturate, from: [h3], to: [h2], size: 200KB}
measure:
  sample: 20us
  bin: 100us
  links: ["s1:s2", "s2:s3", "s3:s1"]
  windows: [{name: settled, from: 1ms, to: 2ms}]
duration: 2ms
variants:
  - {name: pause}
  - {name: escape, set: {switch.escape.enabled: true}}
expect:
  - drops_total == 0
  - retransmissions_total == 0
  - pause.deadlocks_total == 1
  - pause.settled.goodput_bps == 0
  - pause.settled.utilisation_share < 0.01
  - escape.deadlocks_total == 0
  - escape.tokens_total > 1000
  - escape.settled.utilisation_share > 0.7
  - escape.settled.goodput_min_bps > 1Gbps
`

// A deadlock of three switches on real frames stays one without Escape and is
// none with it: the scenario says so, and fails else.
func TestEscapeFromDeadlock(t *testing.T) {
	file := aScenario(t, "escape", circle)
	f, _ := runLive(t, file)
	for i := range f.Runs {
		v := f.Runs[i].Values
		t.Logf("%s: %v deadlocks, %.1f Gb/s, the ring is used to %.0f %%, %v frames escaped", f.Runs[i].Name, v["deadlocks_total"],
			v["settled.goodput_bps"]/1e9, 100*v["settled.utilisation_share"], v["escaped_total"])
	}
	if left := wiresLeft(nameOf(file)); left != nil {
		t.Errorf("left behind: %v", left)
	}
}
