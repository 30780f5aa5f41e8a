package run

import (
	"fmt"
	"testing"

	"gswitch/frame"
)

// every is a document in which frames meet all that decides about them: each
// recovery, each kind of feedback, pauses, marks, faults and random arrivals.
const every = `version: 1
topology:
  generate: leaf-spine(2, 2, 4)
  classes: {host: {rate: 25Gbps, delay: 1us}, fabric: {rate: 40Gbps, delay: 1500ns}}
switch: {buffer: {size: 2MB}, ecn: {kmin: 40KB, kmax: 160KB, pmax: 0.2}}
hosts: {transport: {rto_high: 200us}}
workload:
  - {group: burst, kind: incast, from: [h1..h7], to: [h8], size: 60KB, every: 100us}
  - {group: back, kind: poisson, sizes: WebSearch, load: 0.5}
duration: 300us
variants:
  - {name: hpcc, set: {hosts.cc: hpcc, pfc.enabled: true}}
  - {name: md, set: {hosts.cc: hpcc, switch.int.mode: int-md}}
  - {name: timely, set: {hosts.cc: timely, pfc.enabled: true, hosts.ack_class: 1}}
  - {name: dcqcn, set: {hosts.cc: dcqcn, hosts.cnp.frames: true, hosts.transport: {mode: irn, cap: auto, auto_rto: true}}}
  - {name: dctcp, set: {hosts.cc: dctcp, faults: [{kind: loss, link: all, share: 0.002}, {kind: reorder, link: "leaf1:spine1", share: 0.01, delay: 3us}]}}
  - {name: tcp, set: {hosts.cc: aimd, hosts.transport: {mode: tcp, rto_high: 200us}, faults: [{kind: jitter, link: "leaf1:spine2", delay: 1us}]}}
seeds: [1, 2]
`

// The histories of these runs, on every machine and whatever runs beside them.
// They change with whatever changes what frames do, and then say so.
var histories = map[string]string{
	"hpcc 1": "fc7c3db36eb7db91", "hpcc 2": "633acd26dc65db82",
	"md 1": "4d6b6fb15e68ee42", "md 2": "9117163d5c2cf491",
	"timely 1": "1d41225825b70708", "timely 2": "603266d68beef13e",
	"dcqcn 1": "b7e2dfef94d14ebe", "dcqcn 2": "fb4a535825f8a63c",
	"dctcp 1": "da054616ae805ca2", "dctcp 2": "d4a0f762e698b4b4",
	"tcp 1": "54c817148ea674ce", "tcp 2": "0a4ac274d37f18ac",
}

func TestHistoriesAreKept(t *testing.T) {
	for i, jobs := range []int{1, 2, 5, 1, 2, 1, 1} {
		o := Options{Jobs: jobs, Cores: 1 + i%4}
		if i > 0 { // nodes are drawn
			o.Part = func(node int) int { rng := frame.NewRand(uint64(100*i + node)); return int(rng.Uint32n(4)) }
		}
		f := execute(t, every, o)
		if len(f.Runs) != len(histories) {
			t.Errorf("%d runs, %d are known", len(f.Runs), len(histories))
		}
		for k := range f.Runs {
			r := &f.Runs[k]
			name := fmt.Sprintf("%s %d", r.Name, r.Seed)
			if want := histories[name]; r.Digest != want {
				t.Errorf("with %d side by side on %d cores each the digest of %q is %q, it was %q", jobs, o.Cores, name, r.Digest, want)
			}
			if r.FrameHops < 5000 {
				t.Errorf("%s: only %d frame-hops", name, r.FrameHops)
			}
		}
	}
}
