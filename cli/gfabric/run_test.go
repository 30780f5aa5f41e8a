package gfabric

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gswitch/fabric/results"
)

const tinyScenario = `version: 1
topology: {generate: star(3), classes: {host: {rate: 10Gbps, delay: 1us}}}
switch: {buffer: {size: 2MB}}
workload: [{group: burst, kind: incast, from: [h1..h2], to: [h3], size: 10KB}]
duration: 1ms
until: done
expect: [flows_total == 2]
`

// runIn runs the built command in a folder, without root.
func runIn(t *testing.T, dir string, args ...string) (out, errs string, code int) {
	t.Helper()
	if err := build(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(binDir, "gfabric"), args...)
	cmd.Dir = dir
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

func TestRunScenario(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("good.yaml", tinyScenario)
	write("unmet.yaml", strings.Replace(tinyScenario, "== 2", "== 3", 1))
	write("lost.yaml", tinyScenario+"faults: [{kind: loss, link: h1:s1, share: 1}, {kind: loss, link: h2:s1, share: 1}]\n")
	write("bad.yaml", strings.Replace(tinyScenario, "h1..h2", "h1..h7", 1))
	for _, c := range []struct {
		args string
		code int
		want string // on standard output or error
	}{
		{"run good.yaml", 0, "flows_total == 2"},
		{"run good.yaml", 0, "1 of 1 runs are in results/good already"},
		{"run good.yaml --json --quiet --fresh", 0, `"scenario": "good"`},
		{"run good.yaml --set workload.burst.size=20KB --out other --seed 7", 0, "results are in other"},
		{"run unmet.yaml", 1, "1 of 1 expectations do not hold"},
		{"run bad.yaml", 2, `bad.yaml:4:47: workload[0].from: there is no host "h4"`},
		{"run nosuch.yaml", 2, "cannot read the scenario"},
		{"run", 2, "name a scenario, such as scenarios/quickstart.yaml"},
		{"run good.yaml unmet.yaml", 2, `"unmet.yaml" is one argument too many`},
		{"run good.yaml --out good.yaml/x", 1, "results cannot be written: mkdir good.yaml"},
		{"run lost.yaml", 0, "flows that did not end: 2; frames were lost, and hosts have no retransmission timer: set hosts.transport.rto_high"},
		{"report nosuch", 2, "nosuch: there are no results; gfabric run writes them"},
		{"report results", 2, "results: there are no results"},
		{"compare other", 2, "name two directories of results"},
		{"compare results/good other", 0, "values are the same"},
		{"compare results/good other --all", 0, "+0.0 %"},
		{"schema", 2, "name what to print: scenario or values"},
		{"run good.yaml --on fpga", 2, `"fpga" is not an engine; there are sim (virtual time) and netns (real frames)`},
		{"run good.yaml --on netns --poll lazy", 2, "--poll: "},
		{"run good.yaml --on netns --scale -1", 2, "--scale: -1 is not from 1 to 1000000"},
		{"run good.yaml --on netns --workers 65", 2, "--workers: 65 is not from 1 to 64"},
		{"fit", 2, "name a scenario"},
		{"fit good.yaml --piece 0s", 2, "--piece: 0s is not above zero"},
		{"compare --sim good.yaml", 2, "--sim and --netns go together"},
		{"compare --sim --netns", 2, "name a scenario"},
		{"compare --sim --netns --finished good.yaml", 2, "results/good-netns: there are no results"},
		{"run good.yaml --seed x", 2, "is not a number"},
		{"run good.yaml --seed 2 --first-seed 3", 2, "nothing for --first-seed to choose"},
		{"run good.yaml --first-seed 3 --out third", 0, "results are in third"},
		{"run good.yaml --only hpcc", 2, `no run is called "hpcc"`},
		{"run good.yaml --set x", 2, "write path=value"},
		{"run good.yaml --set sweep=", 2, "to sweep nothing"},
		{"check good.yaml", 0, "good (seed 1)"},
		{"check good.yaml --values", 0, "burst.slowdown_p99"},
		{"check bad.yaml", 2, "bad.yaml:4:47"},
		{"schema values", 0, "queue_{mean,p50,p95,p99,p99.9,max}_bytes"},
		{"schema nothing", 2, "neither scenario nor values"},
	} {
		out, errs, code := runIn(t, dir, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(out+errs, c.want) {
			t.Errorf("gfabric %s: exit code %d, want %d and %q\n%s%s", c.args, code, c.code, c.want, out, errs)
		}
	}
	for _, name := range []string{"results.json", "flows.csv", "report.html"} {
		if fi, err := os.Stat(filepath.Join(dir, "results", "good", name)); err != nil || fi.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	f, err := results.Load(filepath.Join(dir, "other"))
	if err != nil {
		t.Fatal(err)
	}
	if r := f.Runs[0]; r.Seed != 7 || len(r.Flows) != 2 || r.Flows[0].Bytes != 20_000 {
		t.Errorf("%+v", f.Runs[0])
	}
	schema, _, _ := runIn(t, dir, "schema", "scenario")
	if !json.Valid([]byte(schema)) {
		t.Error("the schema is no JSON")
	}
}

// A run whose losses are the program's own says so.
func TestLostForWantOfMemory(t *testing.T) {
	f := &results.File{Runs: []results.Run{{Name: "fine", Values: map[string]float64{"drops_total": 3, "arena_exhausted_total": 0}}}}
	if got := outOfMemory(f); got != "" {
		t.Errorf("a warning without a reason: %q", got)
	}
	f.Runs = append(f.Runs, results.Run{Name: "huge", Values: map[string]float64{"arena_exhausted_total": 12}})
	if got := outOfMemory(f); !strings.Contains(got, "WARNING: huge: 12 frames were lost") {
		t.Errorf("%q", got)
	}
}
