package scenarios_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"gswitch/fabric/run"
	"gswitch/fabric/scenario"
)

// small has all parts of DeTail: crossbars, pauses by classes, paths by what
// waits, hosts that mark, NewReno without fast retransmit, two classes.
const small = `version: 1
topology:
  generate: pods(2, 2, 2, 2, 4)
  classes: {host: {rate: 1Gbps, delay: 5476ns}, fabric: {rate: 1Gbps, delay: 5476ns}}
switch: {crossbar: {enabled: true, latency: 4224ns, pause: 8KiB, unpause: 4557B}, paths: {choose: adaptive}}
pfc: {enabled: true, classes: [0, 7]}
hosts:
  payload: 1460B
  class: 7
  cc: newreno
  params: {initial: 1460B, abc_limit: 1, ecn: true}
  mark_above: 64KiB
  transport: {mode: newreno, fast_retransmit: false, rto_low: 200ms, rto_high: 200ms}
workload:
  - {group: web, kind: retrievals, size: 10B, responses: [2KB, 8KB, 32KB], rate: 3000, handshake: true}
  - {group: background, kind: requests, size: 1MB, class: 0}
duration: 8ms
variants:
  - {name: detail}
  - {name: lps, set: {switch.paths.choose: scatter}}
  - {name: least, set: {switch.paths.choose: least}}
seeds: [1, 2]
`

// histories are the digests of every frame of the runs, the same on every
// machine. They change with whatever changes what frames do.
var histories = map[string]string{
	"detail 1": "95d2dc41ceeb3d43", "detail 2": "4f8aa13765e8a9ca",
	"lps 1": "41e3defa454e170f", "lps 2": "7846cf3f03a18095",
	"least 1": "a2867307bae7f87b", "least 2": "b98dbfbc34d14bcb",
}

// The same seed gives the same completion times, byte for byte, however many
// runs go side by side, and the same frames everywhere; another seed does not.
func TestDeTailIsDeterministic(t *testing.T) {
	var files [2][]byte
	for i, jobs := range []int{1, 3} {
		s, err := scenario.Parse("small.yaml", []byte(small), scenario.Options{})
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		f, err := run.Scenario(t.Context(), s, run.Options{Version: "test", Jobs: jobs, Out: dir})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for k := range f.Runs {
			r := &f.Runs[k]
			name := r.Name + map[uint64]string{1: " 1", 2: " 2"}[r.Seed]
			if want := histories[name]; r.Digest != want {
				t.Errorf("the digest of %q is %q, it was %q", name, r.Digest, want)
			}
			if seen[r.Digest] || r.Values["pauses_total"] == 0 && r.Name == "detail" {
				t.Errorf("%s: %v pauses; is it the same as another run?", name, r.Values["pauses_total"])
			}
			seen[r.Digest] = true
		}
		if files[i], err = os.ReadFile(filepath.Join(dir, "flows.csv")); err != nil {
			t.Fatal(err)
		}
	}
	if len(files[0]) < 10_000 || !bytes.Equal(files[0], files[1]) {
		t.Errorf("flows.csv of %d and %d bytes differ", len(files[0]), len(files[1]))
	}
}
