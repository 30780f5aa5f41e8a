package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gswitch/fabric/results"
	"gswitch/fabric/scenario"
)

const incast = `version: 1
topology:
  generate: leaf-spine(2, 2, 4)
  classes: {host: {rate: 25Gbps, delay: 1us}, fabric: {rate: 100Gbps, delay: 1us}}
pfc: {enabled: true}
switch: {buffer: {size: 4MB}}
workload:
  - {group: burst, kind: incast, from: [h1..h7], to: [h8], size: 50KB}
  - {group: back, kind: poisson, sizes: FB_Hadoop, load: 0.3}
measure: {sample: 1us, bin: 10us, queues: [leaf2:h8, all], cc: true}
duration: 300us
variants:
  - {name: hpcc, set: {hosts.cc: hpcc}}
  - {name: dcqcn, set: {hosts.cc: dcqcn, switch.ecn: {kmin: 100KB, kmax: 400KB, pmax: 0.2}}}
seeds: [1, 2]
expect:
  - drops_total == 0
`

func load(t *testing.T, text string, o scenario.Options) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("t.yaml", []byte(text), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func execute(t *testing.T, text string, o Options) *results.File {
	t.Helper()
	f, err := Scenario(context.Background(), load(t, text, scenario.Options{}), o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

var sameButTime = cmp.Options{cmpopts.IgnoreFields(results.Run{}, "WallTime"), cmpopts.EquateNaNs()}

// What runs side by side gives what it gives alone, to the bit, and a second
// time the same.
func TestSideBySideIsSerial(t *testing.T) {
	serial, beside := execute(t, incast, Options{Jobs: 1}), execute(t, incast, Options{Jobs: 4})
	if diff := cmp.Diff(serial, beside, sameButTime); diff != "" {
		t.Error(diff)
	}
	digests := map[string]bool{}
	for i := range serial.Runs {
		r := &serial.Runs[i]
		digests[r.Digest] = true
		if r.Values["flows_total"] < 20 || r.Events == 0 || r.FrameHops == 0 {
			t.Errorf("%s, seed %d: %v flows, %d events", r.Name, r.Seed, r.Values["flows_total"], r.Events)
		}
	}
	// Of the mean of a variant's seeds once.
	if c := serial.Checks; len(c) != 2 || c[0].Run != "hpcc" || c[1].Run != "dcqcn" || !c[0].OK || !c[1].OK {
		t.Errorf("checks %+v", c)
	}
	if len(digests) != 4 {
		t.Errorf("four different runs have %d digests", len(digests))
	}
	// The same flows start whatever the congestion control.
	for seed := range 2 {
		a, b := serial.Runs[seed].Flows, serial.Runs[2+seed].Flows
		for i := range min(len(a), len(b)) {
			if a[i].Start != b[i].Start || a[i].Src != b[i].Src || a[i].Dst != b[i].Dst || a[i].Bytes != b[i].Bytes {
				t.Fatalf("flow %d: %+v and %+v", i, a[i], b[i])
			}
		}
	}
}

func TestResume(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	first := execute(t, incast, Options{Jobs: 2, Out: dir, Program: "p"})
	var log strings.Builder
	again := execute(t, incast, Options{Jobs: 2, Out: dir, Program: "p", Progress: &log})
	if !strings.Contains(log.String(), "4 of 4 runs are in") {
		t.Errorf("nothing was taken over: %q", log.String())
	}
	for i := range first.Runs {
		// Wall time is that of the first time.
		if first.Runs[i].WallTime != again.Runs[i].WallTime || first.Runs[i].Digest != again.Runs[i].Digest || len(again.Runs[i].Flows) != len(first.Runs[i].Flows) {
			t.Errorf("run %d came back changed", i)
		}
	}
	if diff := cmp.Diff(first.Checks, again.Checks); diff != "" || len(first.Checks) != 2 {
		t.Error(diff)
	}
	log.Reset()
	execute(t, strings.Replace(incast, "50KB", "40KB", 1), Options{Jobs: 2, Out: dir, Program: "p", Progress: &log})
	if strings.Contains(log.String(), "are in") {
		t.Errorf("runs with other settings were taken over: %q", log.String())
	}
	log.Reset()
	execute(t, strings.Replace(incast, "50KB", "40KB", 1)+"# and another expectation\n", Options{Jobs: 2, Out: dir, Program: "q", Progress: &log})
	if strings.Contains(log.String(), "are in") {
		t.Errorf("runs of another program were taken over: %q", log.String())
	}
	log.Reset()
	execute(t, strings.Replace(incast, "50KB", "40KB", 1)+"# only words\ntitle: x\n", Options{Jobs: 2, Out: dir, Program: "q", Progress: &log})
	if !strings.Contains(log.String(), "4 of 4 runs are in") {
		t.Errorf("another title made the runs anew: %q", log.String())
	}
}

func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dir := filepath.Join(t.TempDir(), "out")
	_, err := Scenario(ctx, load(t, incast, scenario.Options{}), Options{Jobs: 2, Out: dir})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	// The directory is made before hours of runs, to know that it can be; it is empty.
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("an interrupted run left %v (%v)", left, err)
	}
}

// A run that ends with its flows does not take the whole duration.
func TestUntilDone(t *testing.T) {
	text := strings.Replace(incast, "duration: 300us", "duration: 100ms\nuntil: done", 1)
	text = strings.Replace(text, "load: 0.3", "load: 0.3, stop: 100us", 1)
	f := execute(t, text, Options{Jobs: 2})
	for i := range f.Runs {
		r := &f.Runs[i]
		last := 0.0
		for _, w := range r.Flows {
			last = max(last, w.Start+w.FCT)
		}
		if r.Values["flows_unfinished_total"] != 0 || r.VirtualTime < last || r.VirtualTime > last+2e-6 {
			t.Errorf("%s: ended at %v, the last flow at %v, %v unfinished", r.Name, r.VirtualTime, last, r.Values["flows_unfinished_total"])
		}
	}
}

// Alone in the network a flow has a slowdown of 1, whichever way completion is defined.
func TestAloneIsIdeal(t *testing.T) {
	const alone = `version: 1
topology:
  generate: leaf-spine(2, 2, 2)
  classes: {host: {rate: 25Gbps, delay: 1us}, fabric: {rate: 100Gbps, delay: 1us}}
hosts: {cc: none, params: {window: none}}
switch: {buffer: {size: 2MB}}
workload:
  - {kind: flows, flows: [{at: 0us, from: h1, to: h4, size: 64B}, {at: 100us, from: h1, to: h2, size: 1500B}, {at: 200us, from: h3, to: h1, size: 300KB}]}
sweep: {measure.fct: [ack, arrival]}
duration: 1ms
until: done
expect: [slowdown_max <= 1.0001, flows_total == 3, fct_max_seconds > 0]
`
	f := execute(t, alone, Options{Jobs: 2})
	for i := range f.Runs {
		unmet(t, f.Runs[i].Name, f.Runs[i].Checks)
	}
	if a, b := f.Runs[0].Values["fct_max_seconds"], f.Runs[1].Values["fct_max_seconds"]; a <= b {
		t.Errorf("the acknowledgement came after %v, the last byte after %v", a, b)
	}
}

// Every kind of traffic ends, and closed loops go round.
func TestKinds(t *testing.T) {
	const kinds = `version: 1
topology:
  generate: star(6)
  classes: {host: {rate: 100Gbps, delay: 500ns}}
hosts: {cc: hpcc}
switch: {buffer: {size: 2MB}}
pfc: {enabled: true}
workload:
  - {kind: permutation, size: 10KB, count: 3}
  - {kind: all-to-all, size: 2KB, count: 2}
  - {kind: requests, from: [h1], to: [h2], size: 100B, response: 8KB, outstanding: 2, count: 6, persistent: true}
  - {kind: partition-aggregate, from: [h3], size: 100B, response: 2KB, count: 4}
  - {kind: periodic, from: [h4], to: [h5], size: 64B, every: 10us, count: 5, persistent: true}
  - {kind: incast, to: [h6], size: 5KB, count: 2}
  - {kind: saturate, from: [h1], to: [h6], size: 10KB, stop: 50us}
measure: {bin: 5us}
duration: 10ms
until: done
expect:
  - permutation.flows_total == 18
  - all_to_all.flows_total == 60
  - requests.flows_total == 12
  - partition_aggregate.flows_total == 40
  - periodic.flows_total == 5
  - incast.flows_total == 10
  - flows_unfinished_total == 0
  - drops_total == 0
  - saturate.goodput_bps > 0
  - partition_aggregate.completion_max_seconds > partition_aggregate.fct_max_seconds
`
	f := execute(t, kinds, Options{})
	unmet(t, "kinds", f.Runs[0].Checks)
}

func TestFaultsAndOverrides(t *testing.T) {
	const faults = `version: 1
topology:
  generate: star(3)
  classes: {host: {rate: 10Gbps, delay: 1us}}
switch: {buffer: {size: 2MB}}
hosts:
  transport: {mode: irn, cap: auto, auto_rto: true}
  overrides: [{hosts: [h2], cc: none, params: {rate: 1Gbps, window: none}}]
workload:
  - {group: a, kind: flows, flows: [{from: h1, to: h3, size: 1MB}]}
  - {group: b, kind: flows, flows: [{from: h2, to: h3, size: 100KB}]}
duration: 100ms
until: done
variants:
  - {name: clean}
  - {name: loss, set: {faults: [{kind: loss, link: "h1:s1", share: 0.01}]}}
  - {name: burst, set: {faults: [{kind: loss, link: "h1:s1", share: 0.05, burst: 5}]}}
  - {name: flow, set: {faults: [{kind: loss, link: "s1:h3", share: 0.01, from: h1, stop: 50ms}, {kind: loss, link: all, share: 1, from: h3, to: h2, start: 50ms}]}}
  - {name: corrupt, set: {faults: [{kind: corrupt, link: "h1:s1", share: 0.01, both: true}]}}
  - {name: duplicate, set: {faults: [{kind: duplicate, link: "h1:s1", share: 0.01}]}}
  - {name: reorder, set: {faults: [{kind: reorder, link: "h1:s1", share: 0.01, delay: 5us}]}}
  - {name: jitter, set: {faults: [{kind: jitter, link: "h1:s1", delay: 20us}]}}
  - {name: down, set: {faults: [{kind: down, link: "s1:h3", start: 100us, stop: 400us}]}}
  - {name: downs, set: {faults: [{kind: down, link: "s1:h3", start: 100us, stop: 400us}, {kind: down, link: "h3:s1", start: 200us, stop: 300us}]}}
  - {name: losses, set: {faults: [{kind: loss, link: "s1:h3", share: 1, start: 100us, stop: 400us}, {kind: loss, link: "s1:h3", share: 0.01, start: 50us, stop: 200us}]}}
  - {name: slow, set: {faults: [{kind: slow, link: "h1:s1", rate: 1Gbps}]}}
  - {name: slows, set: {faults: [{kind: slow, link: "h1:s1", rate: 1Gbps}, {kind: slow, link: all, rate: 5Gbps, start: 1us, stop: 3us}]}}
  - {name: storm, set: {faults: [{kind: storm, link: "s1:h1", start: 50us, stop: 500us}], pfc.enabled: true}}
  - {name: pause, set: {faults: [{kind: pause, node: h3, start: 100us, stop: 600us}]}}
  - {name: slowhost, set: {faults: [{kind: slow-node, node: h3, gap: 5us}]}}
  - {name: reboot, set: {faults: [{kind: reboot, node: s1, start: 100us, stop: 300us}]}}
  - {name: clock, set: {faults: [{kind: clock, node: h2, drift: 100000000, step: 1us}]}}
expect:
  - flows_unfinished_total == 0
  - storm.a.fct_max_seconds > clean.a.fct_max_seconds + 400us
  - storm.host_pause_share > 0.1
  - pause.a.fct_max_seconds > clean.a.fct_max_seconds + 400us
  - slowhost.a.fct_max_seconds > 5ms
  - reboot.faults_total > 0 and reboot.a.fct_max_seconds > clean.a.fct_max_seconds + 150us
  # h2 paces by a clock that is a tenth too fast.
  - between(clock.b.fct_max_seconds / clean.b.fct_max_seconds, 0.9, 0.92)
  - clean.faults_total == 0 and clean.retransmissions_total == 0
  # What ends while another goes on does not end it.
  - downs.a.fct_max_seconds == down.a.fct_max_seconds
  - losses.a.fct_max_seconds > clean.a.fct_max_seconds + 290us
  - slows.a.fct_max_seconds > 8ms
  - loss.faults_total > 0 and loss.a.retransmissions_total > 0
  - burst.faults_total > 0 and burst.a.retransmissions_total > 0
  # Both cross the link; only what h1 sent is lost on it. The second begins when all is over.
  - flow.a.retransmissions_total > 0 and flow.b.retransmissions_total == 0 and flow.faults_total > 0
  - flow.b.fct_max_seconds <= clean.b.fct_max_seconds + 50us
  - corrupt.faults_total > 0 and corrupt.a.retransmissions_total > 0
  # What arrives twice is delivered once, and no hole is seen.
  - duplicate.data_frames_total == clean.data_frames_total and duplicate.a.retransmissions_total == 0
  # A frame that is overtaken looks lost to selective retransmission; one that only takes longer does not.
  - reorder.faults_total == 0 and reorder.a.retransmissions_total > 0
  - jitter.a.retransmissions_total == 0 and jitter.a.fct_max_seconds > clean.a.fct_max_seconds + 2us
  - down.a.fct_max_seconds > clean.a.fct_max_seconds + 200us
  - between(slow.a.fct_max_seconds, 8ms, 10ms)
  # 100 KB at 1 Gb/s with headers.
  - between(clean.b.fct_max_seconds, 0.8ms, 0.95ms)
`
	f := execute(t, faults, Options{Jobs: 2})
	unmet(t, "faults", f.Checks)
	for i := range f.Runs {
		unmet(t, f.Runs[i].Name, f.Runs[i].Checks)
	}
}

func unmet(t *testing.T, what string, v []results.Check) {
	t.Helper()
	for _, c := range v {
		if !c.OK {
			t.Errorf("%s: %s: %s", what, c.Text, c.Why)
		}
	}
}
