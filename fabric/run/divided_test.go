package run

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gswitch/fabric/live"
	"gswitch/fabric/pauses"
	"gswitch/fabric/results"
	"gswitch/fabric/scenario"
	"gswitch/frame"
)

// locked is three switches in a ring whose routes all go the same way.
const locked = `version: 1
topology: {generate: "ring(3, 1)", classes: {host: {rate: 40Gbps, delay: 1us}, fabric: {rate: 40Gbps, delay: 1us}}}
pfc: {enabled: true}
switch:
  buffer: {size: 16MB, xoff: 100KB, xon_offset: 10KB}
  detours: [{at: s1, to: s3, via: s2}, {at: s2, to: s1, via: s3}, {at: s3, to: s2, via: s1}]
hosts: {class: 3, ack_class: 7, base_rtt: 100us, params: {window: none}}
workload:
  - {group: f1, kind: saturate, from: [h1], to: [h3], size: 1MB}
  - {group: f2, kind: saturate, from: [h2], to: [h1], size: 1MB}
  - {group: f3, kind: saturate, from: [h3], to: [h2], size: 1MB}
duration: 4ms
`

// What processes report the pauses and the waiting queues of their own switches
// makes the same tree and the same deadlock as one process that has all.
func TestPausesOfSeveralProcesses(t *testing.T) {
	s := load(t, locked, scenario.Options{})
	n, err := build(&s.Runs[0], nil, extras{pauses: 1000})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := newTraffic(t.Context(), n, here{n}, &ledger{}, &s.Runs[0], "")
	if err != nil {
		t.Fatal(err)
	}
	rec, _ := recorder(n, &s.Runs[0])
	tr.listen(rec)
	tr.begin()
	if err := n.Engine.Run(frame.Time(s.Runs[0].Doc.Duration)); err != nil {
		t.Fatal(err)
	}
	now := n.Engine.Now()
	want := n.PauseTrace(now)
	var whole results.Run
	whole.Values = map[string]float64{}
	counters(n, &whole)
	if len(want.Pauses) < 6 || whole.Values["deadlocks_total"] != 1 {
		t.Fatalf("%s, %v deadlocks", want.Size(), whole.Values["deadlocks_total"])
	}

	v, forgotten := n.PauseLog(now)
	waits := n.Waits(now)
	g := &group{}
	for i, name := range []string{"s3", "s1", "s2", "h1"} {
		// A host's pauses are got by its switch; those of a switch by itself.
		of := func(e pauses.End) bool { return e.Node == name }
		h := &process{summary: &summary{Timing: &live.ProcessTiming{End: now + frame.Time(i)}}}
		for _, p := range v {
			if of(p.By) {
				h.pauses = append(h.pauses, p)
				if err := checkPause(n.Topology, &p); err != nil {
					t.Error(err)
				}
			}
		}
		for _, w := range waits {
			if of(w.At) {
				h.summary.Waits = append(h.summary.Waits, w)
			}
		}
		if name == "h1" {
			h.summary.Timing.End = 0 // it has nothing to report
		}
		if err := h.summary.check(n.Topology, 0, 0); err != nil {
			t.Error(err)
		}
		g.processes = append(g.processes, h)
	}
	g.processes[0].summary.Forgotten = forgotten
	got := g.trace(now, 0)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(pauses.Branch{}), cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".up" }, cmp.Ignore())); diff != "" {
		t.Error(diff)
	}
	joined, until := heldBack(g.summaries())
	var out results.Run
	out.Values = map[string]float64{}
	deadlocks(n, joined, until, &out)
	if len(joined) != len(waits) || until != now || out.Values["deadlocks_total"] != 1 {
		t.Errorf("%d of %d queues wait at %d, which is %d, in %v deadlocks", len(joined), len(waits), until, now, out.Values["deadlocks_total"])
	}
	// A part of the ring is no circle.
	deadlocks(n, slices.DeleteFunc(joined, func(w pauses.Wait) bool { return w.At.Node == "s2" }), until, &out)
	if out.Values["deadlocks_total"] != 0 {
		t.Error("two switches of three make a circle")
	}
}

// What processes counted adds up, whatever it is.
func TestTallies(t *testing.T) {
	var a, b, sum tally
	a.Pauses.Requests, b.Pauses.Requests = 5, 50
	a.Features = map[string]float64{"qcn_samples_total": 6, "qcn_set_point_bytes": 700, "escaped_total": 1}
	b.Features = map[string]float64{"qcn_samples_total": 60, "qcn_set_point_bytes": 70, "qcn_messages_unsent_total": 8, "escaped_total": 10}
	a.Systems = map[string]float64{"low_frames_total": 2, "policy_sent_total": 0}
	b.Systems = map[string]float64{"low_frames_total": 30}
	sum.add(&a)
	sum.add(&b)
	if want := map[string]float64{"qcn_samples_total": 66, "qcn_set_point_bytes": 700, "qcn_messages_unsent_total": 8, "escaped_total": 11}; !maps.Equal(sum.Features, want) {
		t.Errorf("features counted %v, want %v", sum.Features, want)
	}
	if want := map[string]float64{"low_frames_total": 32, "policy_sent_total": 0}; !maps.Equal(sum.Systems, want) {
		t.Errorf("systems counted %v, want %v", sum.Systems, want)
	}
	if sum.Pauses.Requests != 55 {
		t.Errorf("%+v", sum)
	}
}
