package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"gswitch/fabric/results"
)

// Lossless classes on real frames, however a run is divided into processes, where nodes
// stand still again and again for longer than the headroom of exact nodes lasts.

// congestedRing is three switches in a ring with a host each. Two hosts send to the third
// until all has arrived; or, in the variants that are circles, each flow crosses two links
// of the ring, as in scenarios/escape/fig4.7-ring.yaml: by pauses alone all that was sent
// waits in the end. Each node stands still for an eighth of T again and again: that leaves
// half of what a run on real frames may be late by to the machine.
func congestedRing() string {
	const circle = `duration: 300us, until: time, hosts.ack_class: 7,
      switch.detours: [{at: s1, to: s3, via: s2}, {at: s2, to: s1, via: s3}, {at: s3, to: s2, via: s1}],
      workload: [{group: f1, kind: saturate, from: [h1], to: [h3], size: 100KB}, {group: f2, kind: saturate, from: [h2], to: [h1], size: 100KB},
        {group: f3, kind: saturate, from: [h3], to: [h2], size: 100KB}]`
	var b strings.Builder
	b.WriteString(`version: 1
topology: {generate: "ring(3, 1)", classes: {host: {rate: 10Gbps, delay: 1us}, fabric: {rate: 10Gbps, delay: 1us}}}
pfc: {enabled: true}
switch: {buffer: {size: 2MB, xoff: 20KB, xon_offset: 2KB}}
hosts: {class: 3, base_rtt: 100us, cc: none, params: {window: none}}
workload: [{kind: incast, from: [h1, h2], to: [h3], size: 200KB}]
duration: 5ms
until: done
variants:
  - {name: incast}
  - {name: crossbar, set: {switch.crossbar.enabled: true, switch.crossbar.ingress: 16KB}}
  - {name: circle, set: {` + circle + `}}
  - {name: escape, set: {` + circle + `, switch.escape.enabled: true}}
  - {name: gfc, set: {` + circle + `, switch.gfc.enabled: true}}
expect: [drops_total == 0]
faults:
`)
	for i, n := range []string{"s1", "s2", "s3", "h1", "h2", "h3"} {
		for at := 20 + 7*i; at < 280; at += 41 + 3*i {
			fmt.Fprintf(&b, "  - {kind: pause, node: %s, start: %dus, stop: %dus}\n", n, at, at+12)
		}
	}
	return b.String()
}

// A run that is divided into processes loses no frame of a lossless class: not if it kept
// its time, nor if no node was ever late by more than the headroom counts in, whatever
// else it says of itself; and one that lost some is invalid. What did not keep its time is
// run again, slower. Exact nodes that stand still as often and as long do lose frames, in
// virtual time, so that it is the headroom which keeps them.
func TestLosslessProcesses(t *testing.T) {
	file := aScenario(t, "lossless", congestedRing())
	lost := 0.0
	for _, r := range losslessRun(t, file).Runs {
		lost += r.Values["drops_headroom_full"]
	}
	if lost == 0 {
		t.Error("in virtual time exact nodes lose nothing: no headroom is needed")
	}
	for _, processes := range []string{"one", "hosts", "each"} {
		for _, scale := range []int{400, 1000} {
			t.Run(fmt.Sprintf("%s/%d", processes, scale), func(t *testing.T) { losesNothing(t, file, processes, scale) })
		}
	}
}

// losslessRun runs variants of a scenario, all if none is named.
func losslessRun(t *testing.T, file string, args ...string) *results.File {
	t.Helper()
	c, out := fabricCommand(file, append([]string{"run", file, "--fresh", "--out", "out"}, args...)...)
	c.Run()
	f, err := results.Load(filepath.Join(c.Dir, "out"))
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return f
}

// losesNothing runs all variants until each has kept its time, each time slower.
func losesNothing(t *testing.T, file, processes string, scale int) {
	var only []string
	for most := 27 * scale; ; scale *= 3 {
		f := losslessRun(t, file, append([]string{"--on", "netns", "--processes", processes, "--scale", fmt.Sprint(scale)}, only...)...)
		only = nil
		for i := range f.Runs {
			if r := &f.Runs[i]; !checkLossless(t, r) {
				only = append(only, "--only", r.Name)
			}
		}
		switch {
		case only == nil || t.Failed():
			return
		case scale == most:
			t.Fatalf("%v did not keep time at scale %d", only, scale)
		}
		t.Logf("%v did not keep time at scale %d, again slower", only, scale)
	}
}

// checkLossless holds a run against what it may be late by, and reports whether it kept
// its time.
func checkLossless(t *testing.T, r *results.Run) bool {
	t.Helper()
	v, g := r.Values, r.Timing
	lost := v["drops_headroom_full"]
	t.Logf("%s: %v pauses, %v lost, nodes late by up to %.0f us, frames by %.0f us, of %.0f us", r.Name, v["pauses_total"], lost, g.LateMax*1e6, g.TransitMax*1e6, g.Bound*1e6)
	if lost > 0 && g.LateMax <= g.Bound && g.TransitMax <= g.Bound {
		t.Errorf("%s lost %v lossless frames, and no node was late by more than the headroom counts in", r.Name, lost)
	}
	if !g.Valid {
		return false
	}
	switch {
	case lost > 0:
		t.Errorf("%s lost %v lossless frames and calls itself valid", r.Name, lost)
	case v["drops_total"] != 0 || v["retransmissions_total"] != 0 || v["late_frames_total"] != 0 || g.RingDrops != 0:
		t.Errorf("%s: %v frames dropped, %v sent again, %v late, %d lost in rings", r.Name, v["drops_total"], v["retransmissions_total"], v["late_frames_total"], g.RingDrops)
	case v["flows_unfinished_total"] != 0 && len(r.Flows) > 0:
		t.Errorf("%s: %v flows did not end", r.Name, v["flows_unfinished_total"])
	case v["pauses_total"] == 0 || v["pause_frames_total"] == 0:
		t.Errorf("%s: nothing was paused, so that nothing was tried", r.Name)
	}
	return true
}
