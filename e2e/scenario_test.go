package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gswitch/dataplane/xsk"
	"gswitch/fabric/agree"
	"gswitch/fabric/fit"
	"gswitch/fabric/results"
)

// Scenarios on real frames, through the built gfabric. A machine that is busy
// with something else keeps time at a larger scale only, which is the run's
// length: what is asserted does not depend on it.

// twoHosts sends ten messages over one switch. T is 9 us.
const twoHosts = `version: 1
topology: {generate: star(2), classes: {host: {rate: 25Gbps, delay: 1150ns}}}
switch: {buffer: {size: 4MB}}
pfc: {enabled: true}
hosts: {cc: hpcc, base_rtt: 9us}
workload: [{group: messages, kind: periodic, from: [h1], to: [h2], size: 50KB, every: 50us, count: 10}]
measure: {sample: 2us, bin: 50us, queues: [s1:h2]}
duration: 1ms
until: done
expect: [flows_total == 10, flows_unfinished_total == 0, drops_total == 0, slowdown_p50 < 1.5]
`

// incast has eight hosts send to a ninth.
const incast = `version: 1
topology: {generate: star(9), classes: {host: {rate: 25Gbps, delay: 1150ns}}}
switch: {buffer: {size: 4MB}}
pfc: {enabled: true}
hosts: {cc: hpcc, params: {wai: 80B, maxStage: 5}, base_rtt: 9us}
workload: [{group: incast, kind: incast, from: [h1..h8], to: [h9], size: 50KB, count: 2}]
measure: {sample: 2us, bin: 50us, queues: [s1:h9]}
duration: 2ms
until: done
expect: [flows_total == 16, flows_unfinished_total == 0, drops_total == 0]
`

// endless is long enough to be interrupted.
const endless = `version: 1
topology: {generate: star(3), classes: {host: {rate: 25Gbps, delay: 1150ns}}}
switch: {buffer: {size: 4MB}}
hosts: {cc: hpcc, base_rtt: 9us}
workload: [{kind: saturate, from: [h1..h2], to: [h3], size: 1MB}]
duration: 1s
expect: [drops_total == 0]
`

// aScenario writes a scenario to a folder of its own, under a name that is no
// other test's, and returns the file. Its wires are gone after the test.
func aScenario(t *testing.T, what, text string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root for network namespaces and AF_XDP")
	}
	name := fmt.Sprintf("%s%d-%s", prefix, os.Getpid(), what)
	file := filepath.Join(t.TempDir(), name+".yaml")
	write(t, file, text)
	t.Cleanup(func() {
		exec.Command(gfabric, "down", "run-"+name).Run()
		if left := wiresLeft(name); left != nil {
			t.Errorf("left behind: %v", left)
		}
	})
	return file
}

// wiresLeft lists what is on the machine of the wires of a scenario.
func wiresLeft(name string) []string {
	spaces, _ := filepath.Glob("/run/netns/gf.run-" + name + ".*")
	state, _ := filepath.Glob("/run/gfabric/run-" + name + "*")
	return append(spaces, state...)
}

func nameOf(file string) string { return strings.TrimSuffix(filepath.Base(file), ".yaml") }

// fabricCommand is gfabric in the folder of a scenario.
func fabricCommand(file string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	c := exec.Command(gfabric, args...)
	c.Dir = filepath.Dir(file)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	return c, &out
}

// runLive runs a scenario on real frames and returns what came out and was
// printed. A run that did not keep time (exit code 3) is repeated at a larger
// scale: the test fails if it cannot keep time while the machine can.
func runLive(t *testing.T, file string, more ...string) (*results.File, string) {
	t.Helper()
	return runLiveFrom(t, file, 1000, more...)
}

// runLiveFrom does so from a scale on, up to 64 times that.
func runLiveFrom(t *testing.T, file string, least int, more ...string) (*results.File, string) {
	t.Helper()
	for scale := least; ; scale *= 4 {
		args := append([]string{"run", file, "--on", "netns", "--scale", fmt.Sprint(scale), "--out", fmt.Sprintf("out-%d", scale)}, more...)
		began := time.Now()
		c, out := fabricCommand(file, args...)
		err := c.Run()
		late := machineLate()
		f, wrong := results.Load(filepath.Join(c.Dir, fmt.Sprintf("out-%d", scale)))
		switch code := c.ProcessState.ExitCode(); {
		case code == 3 && wrong == nil:
			checkInvalid(t, f, out.String())
			if scale < 64*least {
				t.Logf("did not keep time at scale %d, again slower", scale)
				continue
			}
			g := f.Runs[0].Timing
			if limit := time.Duration(g.Bound * g.Scale * 1e9); late < limit {
				t.Fatalf("this machine wakes up within %v, and yet the run was not valid with a bound of %v:\n%s", late, limit, out)
			}
			t.Skipf("this machine is late by %v: nothing can be known in real time", late)
		case err != nil || wrong != nil:
			t.Fatalf("gfabric %s: %v, %v\n%s", strings.Join(args, " "), err, wrong, out)
		}
		t.Logf("scale %d, %v", scale, time.Since(began).Round(time.Millisecond))
		return f, out.String()
	}
}

// machineLate is how late a process that sleeps wakes up here, the 99th
// percentile.
func machineLate() time.Duration {
	var v []time.Duration
	for range 300 {
		due := time.Now().Add(time.Millisecond)
		time.Sleep(time.Millisecond)
		v = append(v, time.Since(due))
	}
	slices.Sort(v)
	return v[len(v)*99/100]
}

// checkInvalid holds that a run which did not keep time says so, and what to do.
func checkInvalid(t *testing.T, f *results.File, out string) {
	t.Helper()
	bad := 0
	for i := range f.Runs {
		if g := f.Runs[i].Timing; g != nil && !g.Valid {
			bad++
			if len(g.Why) == 0 || len(g.Remedies) == 0 {
				t.Errorf("%s does not say why it is not valid, or what helps: %+v", f.Runs[i].Name, g)
			}
		}
	}
	if bad == 0 || !strings.Contains(out, "is INVALID") {
		t.Errorf("exit code 3 with %d runs that are not valid:\n%s", bad, out)
	}
}

// checkTiming holds what every run on real frames reports of itself.
func checkTiming(t *testing.T, f *results.File, nodes int, T float64) {
	t.Helper()
	for i := range f.Runs {
		r := &f.Runs[i]
		g := r.Timing
		if r.Engine != "netns" || r.Digest != "" || g == nil {
			t.Fatalf("%s: engine %q, digest %q, timing %v", r.Name, r.Engine, r.Digest, g)
		}
		sum := 0
		for _, w := range g.Workers {
			sum += w.Nodes
		}
		switch {
		case !g.Valid || len(g.Why) > 0:
			t.Errorf("valid %v, why %q", g.Valid, g.Why)
		case math.Abs(g.BaseRTT-T) > 1e-12 || math.Abs(g.Bound-T/4) > 1e-9:
			t.Errorf("T is %v, the bound %v; want %v and a quarter", g.BaseRTT, g.Bound, T)
		case !(g.LateP50 <= g.LateP99 && g.LateP99 <= g.LateMax && g.LateP99 <= g.Bound):
			t.Errorf("lateness p50 %v, p99 %v, max %v, bound %v", g.LateP50, g.LateP99, g.LateMax, g.Bound)
		case g.OverRTT > g.OverFrame || g.OverFrame > 1 || g.OverRTT > 0.01:
			t.Errorf("shares of lateness: %v over a frame, %v over T", g.OverFrame, g.OverRTT)
		case g.ClockRead <= 0 || g.RingDrops != 0 || g.Frame <= 0 || sum != nodes:
			t.Errorf("%+v", g)
		}
	}
}

// Two hosts and a switch on real frames: all arrives, at the speed of the
// emulated link, and the report says how well time was kept. Finished results
// are not run again, and virtual time and real frames can be compared.
func TestScenarioTwoHosts(t *testing.T) {
	file := aScenario(t, "two", twoHosts)
	f, out := runLive(t, file)
	checkTiming(t, f, 3, 9e-6)
	if n := len(f.Runs[0].Flows); n != 10 {
		t.Errorf("%d flows", n)
	}
	for _, want := range []string{"time on real frames", "not scaled back (raw)", "late p50", "clock read", "ring drops", "flows_unfinished_total == 0"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	page, err := os.ReadFile(filepath.Join(filepath.Dir(file), fmt.Sprintf("out-%.0f", f.Runs[0].Timing.Scale), "report.html"))
	if err != nil || !bytes.Contains(page, []byte("Time on real frames")) {
		t.Errorf("the page says nothing about time: %v", err)
	}
	if left := wiresLeft(nameOf(file)); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

// Eight hosts send to a ninth on real frames.
func TestScenarioIncast(t *testing.T) {
	file := aScenario(t, "incast", incast)
	f, _ := runLive(t, file)
	checkTiming(t, f, 10, 9e-6)
	if left := wiresLeft(nameOf(file)); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

// Virtual time and real frames give the same, and the comparison says so. Where
// a machine is in the way it takes more time.
func TestScenarioCompare(t *testing.T) {
	file := aScenario(t, "compare", twoHosts)
	for scale := 1000; ; scale *= 4 {
		c := exec.Command(gfabric, "compare", "--sim", "--netns", file, "--scale", fmt.Sprint(scale), "--json", "--quiet", "--html", "both.html")
		c.Dir = filepath.Dir(file)
		out, err := c.Output()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		var all []agree.Comparison
		if err := json.Unmarshal(out, &all); err != nil || len(all) != 1 || len(all[0].Runs) != 1 {
			t.Fatalf("exit code %d, %v in\n%s", c.ProcessState.ExitCode(), err, out)
		}
		got := &all[0]
		want := 0
		switch {
		case got.Beyond > 0:
			want = 1
		case got.Invalid > 0:
			want = 3
		}
		if code := c.ProcessState.ExitCode(); code != want || got.Agrees != (want == 0) {
			t.Fatalf("exit code %d for %+v", code, got)
		}
		if !got.Agrees && scale < 64_000 {
			t.Logf("scale %d: %s; again slower", scale, got.Verdict())
			continue
		}
		// T is 9 us at 25 Gb/s: three percentiles of slowdown, two of the queue.
		if r := got.Runs[0]; !got.Agrees || got.Judged != 5 || math.Abs(r.BDP-28125) > 1 || len(r.Values) != 5 {
			t.Errorf("%+v", got)
		}
		if page, err := os.ReadFile(filepath.Join(c.Dir, "both.html")); err != nil || !bytes.Contains(page, []byte(", netns")) || !bytes.Contains(page, []byte(", sim")) {
			t.Errorf("the page of both: %v", err)
		}
		return
	}
}

// A scale that this machine keeps time at is found, and the smallest of those
// that were tried is printed.
func TestScenarioFit(t *testing.T) {
	file := aScenario(t, "fit", twoHosts)
	c := exec.Command(gfabric, "fit", file, "--piece", "200ms", "--json", "--quiet")
	c.Dir = filepath.Dir(file)
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var r fit.Result
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatal(err)
	}
	least := 0
	for _, try := range r.Tries {
		if try.Valid && (least == 0 || try.Scale < least) {
			least = try.Scale
		}
		if try.Valid != (len(try.Why) == 0) || try.Bound <= 0 {
			t.Errorf("%+v", try)
		}
	}
	if r.Scale == 0 || r.Scale != least || r.Use < r.Scale || !strings.Contains(r.Command, fmt.Sprintf("--on netns --scale %d", r.Use)) {
		t.Errorf("%+v", r)
	}
	t.Logf("smallest scale %d after %d tries", r.Scale, len(r.Tries))
}

// onTheWires reports which of a run's hosts has no XDP program yet. Their
// namespaces may be those of a killed run, about to go.
func onTheWires(name string, hosts ...string) error {
	for _, host := range hosts {
		var names []string
		if err := xsk.InNetNS("gf.run-"+name+"."+host, attached(&names)); err != nil || len(wiresLeft(name)) < 4 || names == nil {
			return fmt.Errorf("none in %s: %v", host, err)
		}
	}
	return nil
}

// A run that is killed leaves what the next run of the scenario removes; one
// that is interrupted leaves nothing.
func TestScenarioKilled(t *testing.T) {
	file := aScenario(t, "killed", endless)
	name := nameOf(file)
	start := func() (*exec.Cmd, *bytes.Buffer) {
		c, out := fabricCommand(file, "run", file, "--on", "netns", "--scale", "1000", "--fresh")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Process.Kill(); c.Wait() })
		eventually(t, "programs on the wires", func() error {
			if c.ProcessState != nil {
				return errors.New("it has ended")
			}
			return onTheWires(name, "h1", "h2", "h3")
		})
		return c, out
	}

	c, _ := start()
	c.Process.Kill()
	c.Wait()
	status, printed := fabricCommand(file, "status", "--name", "run-"+name)
	if err := status.Run(); err == nil || status.ProcessState.ExitCode() != 1 || !strings.Contains(printed.String(), "was killed; gfabric down --name run-"+name) {
		t.Errorf("status after a kill: %v\n%s", err, printed)
	}

	c, out := start() // over what the killed one left
	c.Process.Signal(syscall.SIGINT)
	c.Wait()
	if code := c.ProcessState.ExitCode(); code != 1 || !strings.Contains(out.String(), "interrupted") {
		t.Errorf("interrupted: exit code %d\n%s", code, out)
	}
	if left := wiresLeft(name); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

// Without root it says what it needs.
func TestScenarioNeedsRoot(t *testing.T) {
	_, run := withoutRoot(t, map[string][]byte{"two.yaml": []byte(twoHosts)})
	for _, verb := range [][]string{{"run", "two.yaml", "--on", "netns"}, {"fit", "two.yaml"}} {
		if out, code := run(verb...); code != 1 || !strings.Contains(out, "need root") {
			t.Errorf("gfabric %s without root: exit code %d\n%s", strings.Join(verb, " "), code, out)
		}
	}
}
