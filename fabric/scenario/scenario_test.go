package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gswitch/fabric"
	"gswitch/fabric/results"
)

const head = `version: 1
topology:
  generate: star(4)
  classes: {host: {rate: 100Gbps, delay: 1us}}
duration: 1ms
`

const small = head + `
workload:
  - {group: burst, kind: incast, from: [h1..h3], to: [h4], size: 500KB}
`

func parse(t *testing.T, text string, o Options) *Scenario {
	t.Helper()
	s, err := Parse("s.yaml", []byte(text), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func names(s *Scenario) []string {
	var v []string
	for i := range s.Runs {
		v = append(v, s.Runs[i].Name)
	}
	return v
}

func TestDefaultsAndName(t *testing.T) {
	s := parse(t, small, Options{})
	d := s.Runs[0].Doc
	if d.Name != "s" || d.Hosts.Payload != 1000 || d.Hosts.Transport.Mode != "go-back-n" || s.Runs[0].Seed != 1 || s.Runs[0].Name != "s" {
		t.Errorf("%+v", d)
	}
	if got := len(s.Runs[0].Topology.Hosts()); got != 4 {
		t.Errorf("%d hosts", got)
	}
}

func TestVariantsSweepSeeds(t *testing.T) {
	s := parse(t, small+`
variants:
  - {name: hpcc, set: {hosts.cc: hpcc, hosts.params.eta: 0.9}}
  - {name: none}
sweep:
  workload.burst.size: [100KB, 200KB]
  duration: [1ms, 2ms]
seeds: [3, 4]
`, Options{})
	want := []string{
		"hpcc, size=100KB, duration=1ms", "hpcc, size=100KB, duration=1ms", "hpcc, size=100KB, duration=2ms", "hpcc, size=100KB, duration=2ms",
		"hpcc, size=200KB, duration=1ms", "hpcc, size=200KB, duration=1ms", "hpcc, size=200KB, duration=2ms", "hpcc, size=200KB, duration=2ms",
		"none, size=100KB, duration=1ms", "none, size=100KB, duration=1ms", "none, size=100KB, duration=2ms", "none, size=100KB, duration=2ms",
		"none, size=200KB, duration=1ms", "none, size=200KB, duration=1ms", "none, size=200KB, duration=2ms", "none, size=200KB, duration=2ms",
	}
	if diff := cmp.Diff(want, names(s)); diff != "" {
		t.Error(diff)
	}
	r := s.Runs[7]
	if r.Doc.Hosts.CC != "hpcc" || r.Doc.Hosts.Params["eta"] != "0.9" || r.Doc.Workload[0].Size != 200_000 || r.Doc.Duration != 2e6 || r.Seed != 4 {
		t.Errorf("%+v", r.Doc)
	}
	if s.Runs[8].Doc.Hosts.CC != "none" {
		t.Error("a variant left its mark on the next")
	}
	s = parse(t, small+"seeds: [1, 2, 9]\n", Options{First: 40})
	if len(s.Runs) != 3 || s.Runs[0].Seed != 40 || s.Runs[2].Seed != 42 {
		t.Errorf("from seed 40 on: %+v", s.Doc.Seeds)
	}
	s = parse(t, small+"variants: [{name: a}, {name: b}]\n", Options{Only: []string{"b"}})
	if diff := cmp.Diff([]string{"b"}, names(s)); diff != "" {
		t.Error(diff)
	}
}

func TestShortAndSet(t *testing.T) {
	text := small + "short: {duration: 10us, 'workload[0].size': 1KB}\n"
	if d := parse(t, text, Options{}).Runs[0].Doc; d.Duration != 1e6 {
		t.Error("short counted although it was not asked for")
	}
	d := parse(t, text, Options{Short: true, Set: []string{"workload.burst.size=2KB", "hosts.params={}", "hosts.cc=none"}}).Runs[0].Doc
	if d.Duration != 10_000 || d.Workload[0].Size != 2000 {
		t.Errorf("%v %v", d.Duration, d.Workload[0].Size)
	}
}

// A list of the command line is read like one of the file, with the keys that
// its entries need.
func TestSetList(t *testing.T) {
	d := parse(t, small, Options{Set: []string{"workload=[{group: a, kind: retrievals, size: 10B, responses: [2KB], phases: [{rate: 2500, for: 80ms}, {rate: 100}], period: 100ms}]"}}).Runs[0].Doc
	if w := d.Workload; len(w) != 1 || w[0].Kind != "retrievals" || len(w[0].Phases) != 2 || w[0].Phases[1].Rate != 100 {
		t.Errorf("%+v", w)
	}
	if _, err := Parse("s.yaml", []byte(small), Options{Set: []string{"workload=[{group: a}]"}}); err == nil || !strings.Contains(err.Error(), "workload[0].kind: is missing") {
		t.Errorf("an entry without a kind: %v", err)
	}
}

// What the command line sets counts more than what a variant sets, and need
// suit no run that was not asked for.
func TestSetOverVariants(t *testing.T) {
	text := small + "variants: [{name: a, set: {hosts.cc: hpcc, hosts.params: {n: 8}}}, {name: b, set: {hosts.cc: dcqcn}}]\n"
	s := parse(t, text, Options{Set: []string{"hosts.params.eta=0.9", "hosts.params.n=4"}, Only: []string{"a"}})
	if p := s.Runs[0].Doc.Hosts.Params; len(s.Runs) != 1 || p["eta"] != "0.9" || p["n"] != "4" {
		t.Errorf("%d runs, %v", len(s.Runs), p)
	}
	for _, c := range []struct {
		set  string
		want string
	}{
		{"hosts.params.eta=0.9", `hosts.params: dcqcn: unknown option "eta"`},
		{"hosts.params.etta=0.9", `hosts.params: hpcc: unknown option "etta"`},
		{"hosts.parms=1", `hosts.parms: unknown key; did you mean "params"?`},
	} {
		if _, err := Parse("s.yaml", []byte(text), Options{Set: []string{c.set}}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("--set %s: %v", c.set, err)
		}
	}
}

// A variant that only the command line completes hinders no other one, whether it is chosen or not.
func TestSetCompletesVariants(t *testing.T) {
	text := small + "variants: [{name: a}, {name: b, set: {hosts.params: {eta: 0.9}}}]\n"
	if _, err := Parse("s.yaml", []byte(text), Options{Only: []string{"a"}}); err == nil || !strings.Contains(err.Error(), `run "b"`) {
		t.Errorf("b as it is written: %v", err)
	}
	if _, err := Parse("s.yaml", []byte(text), Options{Set: []string{"hosts.cc=dcqcn", "hosts.params.eta=0.5"}, Only: []string{"a"}}); err == nil || !strings.Contains(err.Error(), `run "a"`) {
		t.Errorf("what does not suit the chosen one: %v", err)
	}
	for _, only := range []string{"a", "b"} {
		s := parse(t, text, Options{Set: []string{"hosts.cc=hpcc", "hosts.params.n=4"}, Only: []string{only}})
		if r := s.Runs[0]; len(s.Runs) != 1 || r.Name != only || r.Doc.Hosts.CC != "hpcc" || r.Doc.Hosts.Params["n"] != "4" {
			t.Errorf("%d runs, %s: %s with %v", len(s.Runs), r.Name, r.Doc.Hosts.CC, r.Doc.Hosts.Params)
		}
	}
}

// Another congestion control on the command line gets no options of the one of the document, and
// those that the command line gives it.
func TestSetAnotherControl(t *testing.T) {
	text := small + "hosts: {cc: hpcc, params: {wai: 80B, maxStage: 5}}\n"
	for _, c := range []struct {
		set  []string
		want string
	}{
		{nil, "map[maxStage:5 wai:80B]"},
		{[]string{"hosts.cc=hpcc"}, "map[maxStage:5 wai:80B]"},
		{[]string{"hosts.cc=dcqcn"}, "map[]"},
		{[]string{`hosts.cc="timely"`}, "map[]"},
		{[]string{"hosts.params.g=0.01", "hosts.cc=dcqcn"}, "map[g:0.01]"},
		{[]string{"hosts.cc=hpcc", "hosts.params.maxStage=0"}, "map[maxStage:0 wai:80B]"},
	} {
		if p := parse(t, text, Options{Set: c.set}).Runs[0].Doc.Hosts.Params; fmt.Sprint(map[string]Scalar(p)) != c.want {
			t.Errorf("%v: %v", c.set, p)
		}
	}
	_, err := Parse("s.yaml", []byte(text), Options{Set: []string{"hosts.cc=dcqcn", "hosts.params.maxStage=5"}})
	if err == nil || !strings.Contains(err.Error(), `hosts.params: dcqcn: unknown option "maxStage"`) {
		t.Errorf("an option of another algorithm: %v", err)
	}
	variants := text + "variants: [{name: a, set: {hosts.params.wai: 20B}}, {name: b, set: {hosts.cc: hpcc, hosts.params: {maxStage: 1}}}]\n"
	for _, r := range parse(t, variants, Options{Set: []string{"hosts.cc=dctcp"}}).Runs[1:] {
		if h := r.Doc.Hosts; h.CC != "dctcp" || len(h.Params) != 0 {
			t.Errorf("%s: %s with %v", r.Name, h.CC, h.Params)
		}
	}
}

// Every mistake is refused with its place and what to do.
func TestRefusals(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "s.yaml: the document is empty"},
		{small + "pfc: {enabled: true}\nswitch: {escape: {enabled: true}, paths: {choose: adaptive}}\n", `switch.paths.choose: cannot stand beside escape, which keeps places for a flow at one port; choose by flow (hash, weighted), or take escape out`},
		{small + "pfc: {enabled: true}\nswitch: {escape: {enabled: true}, crossbar: {enabled: true}}\n", `s.yaml:10:45: switch.crossbar: cannot stand beside escape, whose places are those of the shared buffer; take one of the two out`},
		{small + "clock: {root: s1}\n", "clock.root: means nothing without a scheme"},
		{small + "clock: {root: s1}\nvariants: [{name: a, set: {duration: 2ms}}]\n", "clock.root: means nothing without a scheme"},
		{small + "duratoin: 1ms\n", `s.yaml:9:1: duratoin: unknown key; did you mean "duration"?`},
		{strings.Replace(small, "size: 500KB", "size: 500", 1), "the unit is missing"},
		{strings.Replace(small, "size: 500KB", "size: 0B", 1), "s.yaml:8:66: workload[0].size: a flow of no bytes never ends; write 1B or more"},
		{head + "workload: [{kind: saturate, from: [h1], to: [h4], size: 0B}]\n", "workload[0].size: a flow of no bytes"},
		{head + "workload: [{kind: poisson, load: 0.5, size: 0B}]\n", "workload[0].size: a flow of no bytes"},
		{head + "workload: [{kind: poisson, load: 0.5, sizes: WebSearch, size: 0B}]\n", "workload[0].size: a flow of no bytes"},
		{head + "workload: [{kind: incast, from: [h1, h2], to: [h4], total: 0B}]\n", "workload[0].total: a flow of no bytes"},
		{strings.Replace(small, "size: 500KB", "size: 500KB, load_on: hosts", 1), "load_on: means nothing for kind incast, which takes from, to"},
		{strings.Replace(small, "h1..h3", "h1..h9", 1), `s.yaml:8:40: workload[0].from: there is no host "h5"; hosts are h1 to h4`},
		{strings.Replace(small, "to: [h4]", "to: [h4], fanin: 5", 1), "the fan-in is 5, but only 3 hosts"},
		{strings.Replace(small, "rate: 100Gbps, ", "", 1), "has no rate"},
		{small + "variants: [{name: a-b}]\n", `s.yaml:9:19: variants[0].name: "a-b" is not a name`},
		{small + "variants: [{name: a}, {name: a}]\n", `the name "a" is used twice`},
		{small + "variants: [{name: a, set: {hosts.kk: 1}}]\n", `s.yaml:9:28: hosts.kk: unknown key`},
		{small + "variants: [{name: a, set: {'workload[3].size': 1KB}}]\n", "the list has 1 elements"},
		{small + "variants: [{name: a, set: {workload.mice.size: 1KB}}]\n", `no element of the list is called "mice"; there are burst`},
		{small + "sweep: {duration: []}\n", "s.yaml:9:9: sweep.duration: has no values"},
		{small + "hosts: {cc: hpc}\n", `hosts.cc: congestion control "hpc" is not known`},
		{small + "hosts: {cc: hpcc, params: {etta: 1}}\n", `hosts.params: hpcc: unknown option "etta"`},
		{small + "hosts: {base_rtt: soon}\n", `"soon" is not a duration`},
		{small + "hosts: {transport: {cap: -3}}\n", `"-3" is not a number of frames`},
		{small + "measure: {queues: [s1:h9]}\n", `s.yaml:9:20: measure.queues[0]: "s1:h9": there is no node "h9"`},
		{small + "measure: {queues: [h1:s1]}\n", "h1 is not a switch"},
		{small + "measure: {sizes: [{name: small, from: 2KB, to: 1KB}]}\n", "measure.sizes[0].to: 1kB is not above from, 2kB"},
		{small + "measure: {sizes: [{name: burst}]}\n", `measure.sizes[0].name: "burst" is a group of the workload already`},
		{small + "measure: {warmup: 1ms}\n", "1ms is not shorter than the run, 1ms"},
		{small + "measure: {events: [{name: e, ends: mice}]}\n", `no entry of the workload has the group "mice"; there are burst`},
		{small + "measure: {events: [{name: e, reaches: 1Gbps}]}\n", `measure.events[0].reaches: needs a group`},
		{small + "faults: [{kind: loss, link: s1:h4}]\n", "faults[0].share: is missing"},
		{small + "hosts: {overrides: [{hosts: [h1], transport: {cap: auto}}]}\n", "stand only under hosts.transport"},
		{small + "faults: [{kind: pause, node: h9}]\n", `faults[0].node: there is no node "h9"`},
		{small + "faults: [{kind: pause, node: h1, share: 0.5}]\n", "faults[0].share: means nothing for kind pause, which takes start, stop, node"},
		{small + "faults: [{kind: loss, link: s1:h1, share: 0.5, to: s1}]\n", `faults[0].to: there is no host "s1"`},
		{small + "faults: [{kind: loss, link: s1:h1, share: 0.5, from: h1, burst: 3}]\n", "faults[0].burst: means nothing with from or to"},
		{small + "faults: [{kind: jitter, link: s1:h1, delay: 1us}, {kind: jitter, link: all, delay: 2us, start: 1ms}]\n", "s.yaml:9:72: faults[1].link: faults[0] is a jitter at the same place and time"},
		{small + "faults: [{kind: loss, link: s1:h1, share: 0.1, burst: 3}, {kind: loss, link: h1:s1, both: true, share: 0.1, burst: 5}]\n", "faults[1].burst: faults[0] is a loss at the same place"},
		{small + "faults: [{kind: reorder, link: s1:h1, share: 0.1, delay: 1us, start: 1us, stop: 3us}, {kind: reorder, link: s1:h1, share: 0.1, delay: 2us, stop: 2us}]\n", "faults[1].delay: faults[0] is a reorder"},
		{small + "faults: [{kind: pause, node: h1, stop: 5us}, {kind: pause, node: h1, start: 4us, stop: 6us}]\n", "faults[1].node: faults[0] is a pause"},
		{small + "expect: [slowdown_p99]\n", "compares nothing"},
		{small + "expect: [slowdown_p98 < 3]\n", `s.yaml:9:10: expect[0]: "slowdown_p98 < 3": slowdown_p98: "slowdown_p98" is no value of a run; did you mean "slowdown_p95"?`},
		{small + "expect: [colour < 3]\n", `"colour" is no value of a run; gfabric schema values explains all`},
		{"version: 1\ntopology: {generate: dumbbell(2, 2)}\n", "inside { } a value with a comma wants quotes"},
		{small + "expect: [slowdown_p99 < 3k]\n", `unknown unit "k"`},
		{small + "expect: [(slowdown_p99 < 3]\n", "a closing parenthesis is missing"},
		{small + "expect: ['a{x=1}.slowdown_p99 < 3']\n", `there is no variant "a"`},
		{small + "sweep: {hosts.payload: [500B]}\nexpect: ['{payload=1000B}.slowdown_p99 < 3']\n", "this pins a point, and the sweep does not set payload to \"1000B\"; it has 500B; to run other points and judge nothing, --set 'expect=[]' --set 'deviates=[]'"},
		{small + "sweep: {hosts.payload: [500B]}\nexpect: ['{size=1KB}.slowdown_p99 < 3']\n", "this pins size to \"1KB\", and the sweep has no key \"size\"; it has payload; to run other points and judge nothing, --set 'expect=[]' --set 'deviates=[]'"},
		{small + "sweep: {}\nexpect: ['{size=1KB}.slowdown_p99 < 3']\n", "this pins size to \"1KB\", and the sweep has no key \"size\"; nothing is swept; to run other points and judge nothing, --set 'expect=[]' --set 'deviates=[]'"},
		{small + "hosts: {payload: 0B}\n", "hosts.payload: 0B is not between 1B and 9kB"},
		{small + "hosts: {payload: 9001B}\n", "hosts.payload: 9001B is not between 1B and 9kB"},
		{head + "workload: []\n", "workload: is empty"},
		{head + "workload: [{kind: poisson, load: 0.5}]\n", "one of sizes, bins and size"},
		{head + "workload: [{kind: poisson, sizes: WebSearch}]\n", "wants either load or rate"},
		{head + "workload: [{kind: poisson, sizes: nosuch, load: 0.5}]\n", `"nosuch" is neither a distribution`},
		{head + "workload: [{kind: poisson, sizes: WebSearch, load: 0.5, load_on: s1:h9}]\n", `there is no node "h9"`},
		{small + "a: &a [x]\nshort: {x: *a}\n", "unknown key"},
	} {
		_, err := Parse("s.yaml", []byte(c.text), Options{Short: true})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q\n gave %v\n want %s", strings.TrimPrefix(c.text, head), err, c.want)
		}
	}
	for _, set := range []string{"nothing", "hosts.cc", "a..b=1", "workload[x].size=1", "duration[0]=1"} {
		if _, err := Parse("s.yaml", []byte(small), Options{Set: []string{set}}); err == nil || !strings.Contains(err.Error(), "--set") {
			t.Errorf("--set %s: %v", set, err)
		}
	}
	if _, err := Parse("s.yaml", []byte(small), Options{Set: []string{"sweep="}}); err == nil || !strings.Contains(err.Error(), `to sweep nothing, --set 'sweep={}'; where expectations pin points of the sweep, to run other points and judge nothing, --set 'expect=[]'`) {
		t.Errorf("--set sweep=: %v", err)
	}
	_, err := Parse("s.yaml", []byte(head+"workload: [{kind: poisson, load: 0.5, size: 0B}]\n"), Options{})
	if err == nil || strings.Contains(err.Error(), "one of sizes, bins and size") {
		t.Errorf("a size of 0 B is taken for none: %v", err)
	}
	if _, err := Parse("s.yaml", []byte(small), Options{Only: []string{"x"}}); err == nil || !strings.Contains(err.Error(), `no run is called "x"`) {
		t.Error(err)
	}
}

func TestExpectations(t *testing.T) {
	s := parse(t, small+`
variants: [{name: a}, {name: b}]
sweep: {workload.burst.size: [1KB, 2KB]}
seeds: [1, 2]
expect:
  - slowdown_p99 < 3
  - ratio(a.queue_max_bytes, b.queue_max_bytes) > 10 and 1 < 2
  - a{size=2KB}.queue_max_bytes <= 50KB
  - between(burst.slowdown_p99.9, 1, 1 + 2*2)
  - abs(-b{size=1KB}.slowdown_p99) == max(1, 2)
  - drops_queue_tail == 0
  - a{size=1KB}.queue_max_bytes > b{size=2KB}.queue_max_bytes
`, Options{})
	var measured []*results.Run
	for i := range s.Runs {
		r := &results.Run{Values: map[string]float64{"slowdown_p99": 2, "queue_max_bytes": 1000, "burst.slowdown_p99.9": 5}}
		if s.Runs[i].Variant == "a" {
			r.Values["queue_max_bytes"] = []float64{20_000, 5000, 40_000, 60_000}[i]
		}
		measured = append(measured, r)
	}
	var got []string
	of := map[string][]string{} // of the mean of a run's seeds
	for _, c := range s.Evaluate(measured) {
		for _, e := range c.Values {
			if want := strings.Contains(c.Text, e.Name) && e.Seeds == 2 && e.Low == nil; !want {
				t.Errorf("%q: %+v is not over two seeds", c.Text, e)
			}
		}
		if len(c.Values) == 0 {
			t.Errorf("%q names no values over seeds", c.Text)
		}
		if c.Run != "" {
			if of[c.Run] = append(of[c.Run], c.Text); !c.OK {
				t.Errorf("%s: %q failed: %s", c.Run, c.Text, c.Why)
			}
			continue
		}
		got = append(got, map[bool]string{true: "ok ", false: "no "}[c.OK]+c.Why)
	}
	want := []string{
		"ok size=1KB: 12.5, from a.queue_max_bytes = 12.5kB, b.queue_max_bytes = 1kB",
		"ok size=2KB: 50, from a.queue_max_bytes = 50kB, b.queue_max_bytes = 1kB",
		"ok a{size=1KB}.queue_max_bytes = 12.5kB, b{size=2KB}.queue_max_bytes = 1kB",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// Once, not once for each seed.
	if diff := cmp.Diff([]string{s.Doc.Expect[0], s.Doc.Expect[2], s.Doc.Expect[3], s.Doc.Expect[5]}, of[s.Runs[2].Name]); diff != "" {
		t.Error("checks of run a, 2KB:", diff)
	}
	if diff := cmp.Diff([]string{s.Doc.Expect[0], s.Doc.Expect[3], s.Doc.Expect[4], s.Doc.Expect[5]}, of[s.Runs[5].Name]); diff != "" {
		t.Error("checks of run b, 1KB:", diff)
	}
	for i, r := range measured {
		if len(r.Checks) != 0 {
			t.Errorf("run %d, one of two seeds, has checks of its own: %+v", i, r.Checks)
		}
	}
	delete(measured[0].Values, "slowdown_p99")
	measured[1] = nil
	for _, c := range s.Evaluate(measured) {
		if c.Text == "slowdown_p99 < 3" && c.Run == s.Runs[0].Name {
			t.Error("an expectation over two seeds was evaluated with one of them missing")
		}
	}
}

// Expectations that name a run that was not asked for are left out.
func TestExpectationsOfOnlySomeRuns(t *testing.T) {
	s := parse(t, small+"variants: [{name: a}, {name: b}]\nexpect: [slowdown_p99 < 3, a.slowdown_p99 < b.slowdown_p99]\n", Options{Only: []string{"a"}})
	r := &results.Run{Values: map[string]float64{"slowdown_p99": 2}}
	between := s.Evaluate([]*results.Run{r})
	if len(between) != 0 || len(r.Checks) != 1 || r.Checks[0].Text != "slowdown_p99 < 3" || !r.Checks[0].OK {
		t.Errorf("%+v %+v", between, r.Checks)
	}
}

func TestQuantity(t *testing.T) {
	for _, c := range []struct {
		key  string
		x    float64
		want string
	}{
		{"a.goodput_bps", 27_098_305_085, "27.1Gbps"},
		{"start.drain_seconds", 4.6e-5, "46us"},
		{"queue_p99.9_bytes", 1_500_000, "1.5MB"},
		{"queue_p95_bytes", 0, "0"},
		{"pause_share", 0.035, "3.5%"},
		{"rtt_max_seconds", 4e-10, "0.4ns"},
		{"flows_total", 123_456, "123456"},
		{"slowdown_p99", 2.34567, "2.346"},
	} {
		if got := quantity(c.key, c.x); got != c.want {
			t.Errorf("%s %v: %s, want %s", c.key, c.x, got, c.want)
		}
	}
}

func TestMissingValueFails(t *testing.T) {
	s := parse(t, small+"expect: [slowdown_p99 < 3]\n", Options{})
	r := &results.Run{Values: map[string]float64{}}
	s.Evaluate([]*results.Run{r})
	if len(r.Checks) != 1 || r.Checks[0].OK || r.Checks[0].Why != "slowdown_p99 was not measured" {
		t.Errorf("%+v", r.Checks)
	}
}

func TestFindPort(t *testing.T) {
	top, err := fabric.Spec{Generate: "leaf-spine(2, 2, 2)"}.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"leaf1:spine2", "leaf2:h3", "h1:leaf1"} {
		p, err := FindPort(top, name)
		if err != nil {
			t.Fatal(err)
		}
		if got := PortName(top, p.Node, p.Port); got != name {
			t.Errorf("%s came back as %s", name, got)
		}
	}
	for _, name := range []string{"leaf1", "leaf1:leaf2", "leaf1:spine1[1]", "leaf1:spine1[x]"} {
		if _, err := FindPort(top, name); err == nil {
			t.Errorf("%s was found", name)
		}
	}
	// Half of what leaves leaf1 takes each spine, and of what a host sends to
	// the three others two thirds leave the leaf.
	p, _ := FindPort(top, "leaf1:spine1")
	if got := linkShare(top, []int32{0, 1}, []int32{0, 1, 2, 3}, p, false); got < 0.333 || got > 0.334 {
		t.Errorf("share of leaf1:spine1 is %v, want 1/3", got)
	}
	if got := linkShare(top, []int32{0, 1}, []int32{0, 1, 2, 3}, p, true); got != 0.5 {
		t.Errorf("share of leaf1:spine1 of traffic to the other rack is %v, want 1/2", got)
	}
}

// The published schema is that of the types.
func TestSchemaIsUpToDate(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "schema", "scenario.json")
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != string(Schema()) {
		t.Errorf("%s is old; write it anew: go run ./cmd/gfabric schema scenario > docs/schema/scenario.json", path)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(small + "variants: [{name: a}]\nsweep: {duration: [1ms]}\nexpect: ['a.slowdown_p99 < 3']\n"))
	f.Add([]byte(small + "measure: {queues: [s1:h4], events: [{name: e, at: 1us, below: 1KB}]}\n"))
	f.Add([]byte("version: 1\ntopology: {generate: 'star(1)'}\nworkload: [{kind: flows}]\nduration: 1s"))
	f.Add([]byte("a: &a {b: *a}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("f.yaml", data, Options{Short: true})
		if err == nil && len(s.Runs) == 0 {
			t.Fatal("accepted without a run")
		}
	})
}

func FuzzExpr(f *testing.F) {
	f.Add("1 < 2")
	f.Add("ratio(a{b=c}.x_p99.9, 3KB) >= -(4 + 5%) / 2 or between(a, 1, 2)")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := parseExpr(text)
		if err != nil {
			return
		}
		if _, err := n.eval(func(*ref) (float64, error) { return 1, nil }); err != nil {
			t.Fatal(err)
		}
	})
}

// A claim about the mean of several seeds has each of its values with the interval that
// summary.csv has, and one about a single seed none.
func TestValuesOfClaims(t *testing.T) {
	const text = small + "variants: [{name: a}, {name: b}]\nexpect: [a.slowdown_p99 < b.slowdown_p99 or a.slowdown_p99 < 1]\n"
	s := parse(t, text+"seeds: [1, 2, 3]\n", Options{})
	var runs []*results.Run
	for _, v := range []float64{1, 2, 6, 4, 4, 4} {
		runs = append(runs, &results.Run{Values: map[string]float64{"slowdown_p99": v}})
	}
	c := s.Evaluate(runs)
	if len(c) != 1 || len(c[0].Values) != 2 {
		t.Fatalf("%+v", c)
	}
	a, b := c[0].Values[0], c[0].Values[1]
	half := results.Confidence([]float64{1, 2, 6})
	if a.Name != "a.slowdown_p99" || a.Seeds != 3 || a.Mean != 3 || a.Low == nil || *a.Low != 3-half || *a.High != 3+half || b.Mean != 4 || *b.Low != 4 || *b.High != 4 {
		t.Errorf("%+v, %+v", a, b)
	}
	if c = parse(t, text, Options{}).Evaluate([]*results.Run{runs[0], runs[3]}); len(c) != 1 || c[0].Values != nil {
		t.Errorf("one seed: %+v", c)
	}
}
