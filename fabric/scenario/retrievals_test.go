package scenario

import (
	"strings"
	"testing"

	"gswitch/fabric/workload"
	"gswitch/frame"
)

const retrievals = `version: 1
topology: {generate: "star(4)", classes: {host: {rate: 1Gbps}}}
hosts: {transport: TRANSPORT}
workload:
  - {kind: retrievals, size: 10B, responses: [2KB, 8KB], ENTRY}
duration: 1s
`

func TestRetrievalKeys(t *testing.T) {
	for _, c := range []struct{ entry, transport, want string }{
		{"rate: 5", "{}", ""},
		{"phases: [{rate: 5, for: 20ms}, {rate: 1}], period: 100ms", "{mode: newreno, fast_retransmit: false, rto_high: 10ms}", ""},
		{"rate: 5, phases: [{rate: 5, for: 20ms}]", "{}", "either rate or phases"},
		{"fanouts: [2]", "{}", "either rate or phases"},
		{"phases: [{rate: 5}, {rate: 1, for: 20ms}], period: 100ms", "{}", "phases[0].for"},
		{"phases: [{rate: 5, for: 20ms}, {rate: 1}]", "{}", "phases[1].for"},
		{"phases: [{rate: 5, for: 20ms}, {rate: 1}], period: 20ms", "{}", "phases[1].for"},
		{"rate: 5, fanouts: [4]", "{}", "fan-out is 4"},
		{"rate: 5, think: 1ms", "{}", "means nothing for kind retrievals"},
		{"rate: 5", "{mode: tcp, fast_retransmit: false, rto_high: 10ms}", "is for mode newreno"},
		{"rate: 5", "{mode: newreno, fast_retransmit: false}", "without a timeout"},
	} {
		text := strings.Replace(strings.Replace(retrievals, "ENTRY", c.entry, 1), "TRANSPORT", c.transport, 1)
		_, err := Parse("x.yaml", []byte(text), Options{})
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.entry, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s, %s: %v, want %q", c.entry, c.transport, err, c.want)
		}
	}
	e := Entry{Period: 100e6, Phases: []Phase{{2500, 20e6}, {100, 0}}}
	if v := e.phases(); v[1] != (workload.Phase{Rate: 100, For: 80 * frame.Millisecond}) {
		t.Errorf("%+v", v)
	}
}

// The load that the answers put on a link between aggregation and core of
// DeTail's network: answers of 2, 8 and 32 KB at 1000 a second of each of 128
// servers, of which 96 in 127 leave their pod, on 32 links.
func TestRetrievalLoadOfALink(t *testing.T) {
	s, err := Parse("x.yaml", []byte(`version: 1
topology: {generate: "pods(4, 4, 4, 8, 8)", classes: {host: {rate: 1Gbps}, fabric: {rate: 1Gbps}}}
workload:
  - {kind: retrievals, size: 10B, responses: [2KB, 8KB, 32KB], rate: 1000}
duration: 1s
`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	g := s.Runs[0].Topology
	p, err := FindPort(g, "agg1:core1")
	if err != nil {
		t.Fatal(err)
	}
	all, err := FindHosts(g, nil)
	if err != nil {
		t.Fatal(err)
	}
	load := linkShare(g, all, all, p, false) * 128 * 1000 * 14000 * 8 / 1e9
	if want := 0.336 * (96.0 / 127) / 0.75; load < want-0.0005 || load > want+0.0005 {
		t.Errorf("load %.4f, want %.4f", load, want)
	}
}
