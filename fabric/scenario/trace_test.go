package scenario

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gswitch/fabric/workload"
	"gswitch/frame"
)

const traced = `version: 1
topology: {generate: star(3), classes: {host: {rate: 10Gbps}}}
workload:
  - {kind: trace, start: 1us, stop: 1ms, file: flows.csv, ENTRY}
duration: 2ms
`

// A trace beside the scenario gives its flows, and is a part of what names a run.
func TestTraceOfFlows(t *testing.T) {
	dir := t.TempDir()
	flows, file := filepath.Join(dir, "flows.csv"), filepath.Join(dir, "s.yaml")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	load := func(entry string) (*Scenario, error) {
		write(file, strings.Replace(traced, "ENTRY", entry, 1))
		return Load(file, Options{})
	}
	write(flows, "start_s,src,dst,bytes,group\n2e-6,h1,h3,1500,x\n1e-6,2,0,9,x\n1,h1,h2,5,late\n")
	s, err := load("persistent: true")
	if err != nil {
		t.Fatal(err)
	}
	r := s.Runs[0]
	src, err := r.Doc.Workload[0].Source(r.Doc, r.Topology, dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	var got []workload.Flow
	for src.Peek() != frame.Never {
		got = append(got, src.Pop())
	}
	if len(got) != 2 || got[0] != (workload.Flow{At: 2000, Src: 2, Dst: 0, Bytes: 9, Event: 1}) || got[1] != (workload.Flow{At: 3000, Src: 0, Dst: 2, Bytes: 1500}) {
		t.Errorf("%+v", got)
	}
	before, err := r.Fingerprint("v", file)
	if err != nil {
		t.Fatal(err)
	}
	write(flows, "start_s,src,dst,bytes,run,name,seed\n2e-6,h1,h2,10,0,a,1\n2e-6,h1,h2,20,1,a,2\n2e-6,h1,h2,30,2,b,1\n2e-6,h1,h2,31,2,b,1\n")
	for entry, want := range map[string][]uint64{"run: 0": {10}, "run: b": {30, 31}} {
		s, err := load(entry)
		if err != nil {
			t.Fatal(err)
		}
		src, err := s.Runs[0].Doc.Workload[0].Source(s.Runs[0].Doc, s.Runs[0].Topology, dir, 1)
		if err != nil {
			t.Fatal(err)
		}
		var sizes []uint64
		for src.Peek() != frame.Never {
			sizes = append(sizes, src.Pop().Bytes)
		}
		if !slices.Equal(sizes, want) {
			t.Errorf("%s: flows of %d bytes, want %d", entry, sizes, want)
		}
	}
	if _, err := load("persistent: true"); err == nil || !strings.Contains(err.Error(), "has the flows of 3 runs, 0 (a, seed 1), 1 (a, seed 2), 2 (b, seed 1); write which are sent, such as run: 0") {
		t.Errorf("three runs at once: %v", err)
	}
	write(flows, "start_s,src,dst,bytes\n2e-6,h1,h4,1500\n")
	if after, err := r.Fingerprint("v", file); err != nil || after == before {
		t.Errorf("another trace is the same run: %v", err)
	}
	for entry, want := range map[string]string{
		"persistent: false": `flows.csv:2: dst: there is no host "h4"`,
		"file: missing.csv": "missing.csv: no such file",
		"file: /dev/zero":   "/dev/zero is no plain file",
		"size: 5B":          "means nothing for kind trace, which takes stop, file, run, persistent",
	} {
		text := strings.Replace(traced, "ENTRY", entry, 1)
		if strings.HasPrefix(entry, "file") {
			text = strings.Replace(text, "file: flows.csv, ", "", 1)
		}
		write(file, text)
		if _, err := Load(file, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", entry, err, want)
		}
	}
}

// What cannot be done is refused at its entry.
func TestCollectiveEntries(t *testing.T) {
	const text = "version: 1\ntopology: {generate: star(4), classes: {host: {rate: 10Gbps}}}\nduration: 1ms\nworkload:\n  - {kind: collective, ENTRY}\n"
	for entry, want := range map[string]string{
		"size: 1MB, operation: all-reduce, algorithm: trees, pieces: 4, count: 3, think: 1us": "",
		"size: 1MB": "",
		"size: 3B":  "workload[0]: 3 bytes cannot be sent as 4 parts",
		"operation: all-gather, algorithm: trees, size: 1MB": "only all-reduce goes by trees",
		"operation: gather, size: 1MB":                       "gather",
		"size: 1MB, load: 1":                                 "means nothing for kind collective",
		"size: 1MB, from: [h1]":                              "1 hosts take part",
	} {
		_, err := Parse("x.yaml", []byte(strings.Replace(text, "ENTRY", entry, 1)), Options{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", entry, err, want)
		}
	}
}
