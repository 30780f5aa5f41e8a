package run

import (
	"os"
	"path/filepath"
	"testing"

	"gswitch/fabric/scenario"
)

// Load is that of the link it is defined on, whatever other hosts send.
func TestLoadOnALink(t *testing.T) {
	const text = `version: 1
topology:
  generate: leaf-spine(1, 2, 4)
  classes: {host: {rate: 100Gbps, delay: 1us}, fabric: {rate: 40Gbps, delay: 1us}}
switch: {buffer: {size: 16MB}}
workload: [{group: w, kind: poisson, size: 10KB, load: 0.4, load_on: "leaf1:spine1"}]
measure: {links: ["leaf1:spine1"], warmup: 500us}
duration: 5ms
variants:
  - {name: across, set: {workload.w.from: [h1..h4], workload.w.to: [h5..h8]}}
  - {name: all}
expect:
  # Frames of 1058 bytes and more carry 1000.
  - between(utilisation_share, 0.4, 0.46)
  # Of all pairs four in seven stay behind their leaf, and half of the others go the other way.
  - between(ratio(all.flows_total, across.flows_total), 3.2, 3.8)
`
	f := execute(t, text, Options{Jobs: 2})
	unmet(t, "all", f.Checks)
	for i := range f.Runs {
		unmet(t, f.Runs[i].Name, f.Runs[i].Checks)
	}
}

// A file of sizes lies beside the scenario.
func TestSizesFromAFile(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"mine.cdf": "# bytes percent\n2000 0\n3000 100\n",
		"s.yaml": `version: 1
topology: {generate: star(4), classes: {host: {rate: 100Gbps, delay: 1us}}}
workload: [{kind: poisson, sizes: mine.cdf, load: 0.3}]
duration: 200us
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, err := scenario.Load(filepath.Join(dir, "s.yaml"), scenario.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := Scenario(t.Context(), s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Runs[0].Flows) < 100 {
		t.Errorf("only %d flows", len(f.Runs[0].Flows))
	}
	for _, w := range f.Runs[0].Flows {
		if w.Bytes < 2000 || w.Bytes > 3000 {
			t.Fatalf("a flow has %v bytes", w.Bytes)
		}
	}
}

// Classes share a host's link by their weights, and a strict one goes first.
func TestWeights(t *testing.T) {
	const text = `version: 1
topology: {generate: star(3), classes: {host: {rate: 10Gbps, delay: 1us}}}
switch: {buffer: {size: 4MB}}
workload:
  - {group: a, kind: saturate, from: [h1], to: [h2], size: 100KB, class: 1}
  - {group: b, kind: saturate, from: [h1], to: [h3], size: 100KB, class: 2}
measure: {warmup: 200us}
duration: 2ms
variants:
  - {name: weighted, set: {hosts.weights: [0, 3, 1, 0, 0, 0, 0, 0]}}
  - {name: strict}
expect:
  - between(ratio(weighted.a.goodput_bps, weighted.b.goodput_bps), 2.95, 3.05)
  - strict.a.goodput_bps < strict.b.goodput_bps / 20
`
	f := execute(t, text, Options{Jobs: 2})
	unmet(t, "all", f.Checks)
}

// Acknowledgements that stand for several frames are fewer, and what no window
// holds back ends all the same.
func TestCoalescedAcknowledgements(t *testing.T) {
	const text = `version: 1
topology: {generate: star(2), classes: {host: {rate: 10Gbps, delay: 1us}}}
hosts: {cc: none, params: {window: none}}
workload: [{kind: flows, flows: [{from: h1, to: h2, size: 1MB}]}]
duration: 10ms
until: done
sweep: {hosts.transport.ack_every: [1, 10]}
expect: [flows_unfinished_total == 0, retransmissions_total == 0]
`
	f := execute(t, text, Options{Jobs: 2})
	for i := range f.Runs {
		unmet(t, f.Runs[i].Name, f.Runs[i].Checks)
	}
	// A thousand frames cross two links, and so does each acknowledgement.
	if each, tenth := f.Runs[0].FrameHops, f.Runs[1].FrameHops; each != 4000 || tenth != 2200 {
		t.Errorf("%d and %d frame-hops, want 4000 and 2200", each, tenth)
	}
}

// A window or a cap of fewer frames than an acknowledgement is put off for
// does not stop a flow: the last frame that they admit asks for one.
func TestCoalescingGivesWay(t *testing.T) {
	const text = `version: 1
topology: {generate: star(2), classes: {host: {rate: 10Gbps, delay: 1us}}}
hosts: {cc: none, transport: {ack_every: 64}}
workload: [{kind: flows, flows: [{from: h1, to: h2, size: 1MB}]}]
duration: 10ms
until: done
variants:
  - {name: window}
  - {name: hpcc, set: {hosts.cc: hpcc}}
  - {name: cap, set: {hosts.params: {window: none}, hosts.transport.mode: irn, hosts.transport.cap: "5"}}
expect: [flows_unfinished_total == 0, retransmissions_total == 0]
`
	f := execute(t, text, Options{Jobs: 2})
	for i := range f.Runs {
		unmet(t, f.Runs[i].Name, f.Runs[i].Checks)
	}
}
