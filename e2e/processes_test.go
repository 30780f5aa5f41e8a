package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gswitch/fabric/pauses"
	"gswitch/fabric/results"
)

// Nodes of a scenario in several processes, through the built gfabric. On a busy
// machine such runs are late, and say so (exit code 3): what is asserted is that
// all is done, counted and put together, and that nothing is left.

// several has an open loop, a closed one and a stream between two switches.
const several = `version: 1
topology: {generate: "leaf-spine(1,2,2)", classes: {host: {rate: 25Gbps, delay: 1150ns}, fabric: {rate: 100Gbps, delay: 1150ns}}}
switch: {buffer: {size: 4MB}}
pfc: {enabled: true}
hosts: {cc: hpcc, base_rtt: 15us, transport: {rto_high: 20ms, rto_low: 20ms}}
workload:
  - {group: messages, kind: periodic, from: [h1], to: [h4], size: 20KB, every: 100us, count: 4}
  - {group: burst, kind: incast, from: [h1..h3], to: [h4], size: 20KB, count: 3}
  - {group: stream, kind: saturate, from: [h3], to: [h2], size: 50KB, stop: 300us}
measure: {sample: 10us, bin: 50us, queues: [leaf2:h4], links: [hosts], rtt: true}
duration: 5ms
until: done
expect: [flows_total == 13, flows_unfinished_total == 0, drops_total == 0]
`

// withoutStream ends with its flows; the other one, whose stream has no end but
// its last piece, with its time.
var (
	withoutStream = strings.Replace(several, "  - {group: stream, kind: saturate, from: [h3], to: [h2], size: 50KB, stop: 300us}\n", "", 1)
	withStream    = strings.NewReplacer("until: done\n", "", "duration: 5ms", "duration: 2ms").Replace(several)
)

// divisions are the ways to divide it, with the processes that each makes.
var divisions = []struct {
	name, text string
	processes  []string
}{
	{"hosts", withoutStream, []string{"switches", "h1", "h2", "h3", "h4"}},
	{"each", withStream, []string{"leaf1", "leaf2", "spine1", "h1", "h2", "h3", "h4"}},
}

// All flows come to their end, every byte is counted, and what the processes saw
// is put together.
func TestProcesses(t *testing.T) {
	for _, k := range divisions {
		t.Run(k.name, func(t *testing.T) {
			file := aScenario(t, "parts-"+k.name, k.text)
			c, out := fabricCommand(file, "run", file, "--on", "netns", "--scale", "2000", "--processes", k.name, "--out", "out")
			r := lateOrNot(t, c, out, filepath.Join(filepath.Dir(file), "out"))
			var names []string
			for _, w := range r.Timing.Workers {
				names = append(names, w.Name)
				if w.Nodes == 0 || w.Busy <= 0 {
					t.Errorf("%+v", w)
				}
			}
			if k.name == "hosts" { // as many threads as the machine suggests have the switches
				names = slices.CompactFunc(names, func(a, b string) bool { return strings.HasPrefix(a, "switches") && strings.HasPrefix(b, "switches") })
				names[0], _, _ = strings.Cut(names[0], "-")
			}
			if !slices.Equal(names, k.processes) || r.Timing.Processes != len(k.processes) {
				t.Errorf("%d processes with workers %v, want %v", r.Timing.Processes, names, k.processes)
			}
			if left := wiresLeft(nameOf(file)); left != nil {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// congestedTwice has a port to which more comes than it can send, behind two
// switches.
const congestedTwice = `version: 1
topology: {generate: "dumbbell(2, 1)", classes: {host: {rate: 10Gbps, delay: 1us}, fabric: {rate: 10Gbps, delay: 1us}}}
pfc: {enabled: true}
switch: {buffer: {size: 1MB, xoff: 20KB, xon_offset: 2KB}}
hosts: {params: {window: none}, transport: {rto_high: 20ms, rto_low: 20ms}}
workload: [{kind: incast, from: [h1, h2], to: [h3], size: 200KB}]
duration: 5ms
until: done
expect: [flows_unfinished_total == 0, drops_total == 0, deadlocks_total == 0]
`

// Each process reports what its own switches logged of pauses and what waits in
// them; together they show where congestion began, and that nothing is locked.
func TestProcessesPauses(t *testing.T) {
	for _, division := range []string{"hosts", "each"} {
		t.Run(division, func(t *testing.T) {
			file := aScenario(t, "pauses-"+division, congestedTwice)
			c, out := fabricCommand(file, "run", file, "--on", "netns", "--scale", "2000", "--processes", division, "--pauses", "--out", "out")
			c.Run()
			f, err := results.Load(filepath.Join(filepath.Dir(file), "out"))
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			r := &f.Runs[0]
			if k, ok := r.Values["deadlocks_total"]; !ok || k != 0 {
				t.Errorf("deadlocks: %v, %v", k, ok)
			}
			p := r.Pauses
			if p == nil || len(p.Roots) == 0 {
				t.Fatalf("no port paused another: %+v\n%s", p, out)
			}
			count, paused := 0, map[string]bool{}
			for _, e := range p.Edges {
				count += e.Count
				paused[e.By.Node+" "+e.Of.Node] = true
			}
			if float64(count) != r.Values["pauses_total"] || !paused["s1 h1"] || !paused["s1 h2"] {
				t.Errorf("%d pauses, the switches counted %v: %v", count, r.Values["pauses_total"], paused)
			}
			if root := p.Roots[0]; root.Why != pauses.Congestion || root.At.Node != "s1" || root.At.To != "s2" {
				t.Errorf("it began at %+v", root)
			}
		})
	}
}

// lateOrNot executes a command that runs a scenario and returns its run. A run that came
// late is late, and its numbers count all the same.
func lateOrNot(t *testing.T, c *exec.Cmd, out *bytes.Buffer, dir string) *results.Run {
	t.Helper()
	c.Run()
	f, err := results.Load(dir)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r := &f.Runs[0]
	want := 0
	if !r.Timing.Valid {
		want = 3
		checkInvalid(t, f, out.String())
	}
	if code := c.ProcessState.ExitCode(); code != want {
		t.Fatalf("exit code %d, want %d\n%s", code, want, out)
	}
	checkCounted(t, r)
	return r
}

// checkCounted holds what came out of several against what was sent.
func checkCounted(t *testing.T, r *results.Run) {
	t.Helper()
	v := r.Values
	if len(r.Flows) != 13 || v["drops_total"] != 0 || v["late_frames_total"] != 0 || r.Timing.RingDrops != 0 {
		t.Errorf("%d flows, %v drops, %v late frames, %d lost in rings", len(r.Flows), v["drops_total"], v["late_frames_total"], r.Timing.RingDrops)
	}
	bytes := map[string]uint64{}
	for _, f := range r.Flows {
		if f.FCT <= 0 || f.Slowdown < 1 {
			t.Errorf("%+v", f)
		}
		bytes[f.Group] += f.Bytes
	}
	if bytes["messages"] != 80_000 || bytes["burst"] != 180_000 {
		t.Errorf("flows of %v bytes", bytes)
	}
	// Of a stream it is known that its pieces are whole: 50 frames of 1000 bytes.
	again := v["retransmissions_total"]
	pieces := (v["data_frames_total"] - again - 260) / 50
	if _, stream := v["stream.goodput_bps"]; pieces != math.Trunc(pieces) || stream != (pieces > 1) {
		t.Errorf("%v data frames, %v of them again, are 260 of flows and %v messages of a stream", v["data_frames_total"], again, pieces)
	}
	// Every frame has its acknowledgement. Those to h4 pass four links, or two.
	if again == 0 && v["pause_frames_total"] == 0 {
		far, near := 80.0+2*60, 60.0 // h1 and h2 are at the other leaf, h3 is beside h4
		if want := 2 * (4*far + 2*near + 4*50*pieces); float64(r.FrameHops) != want {
			t.Errorf("%d frames arrived at nodes, want %v", r.FrameHops, want)
		}
	}
	if v["ack_rtt_p50_seconds"] <= 0 || v["queue_max_bytes"] <= 0 || v["utilisation_share"] <= 0 || v["burst.completion_p50_seconds"] <= 0 {
		t.Errorf("round trips %v, queue %v, utilisation %v, completion %v", v["ack_rtt_p50_seconds"], v["queue_max_bytes"], v["utilisation_share"], v["burst.completion_p50_seconds"])
	}
	if g := r.Timing; g.Reaction <= 0 || g.PostP50 > g.PostMax || g.TransitMax <= 0 || g.LateMax <= 0 || g.StoppedShare != 0 {
		t.Errorf("%+v", g)
	}
}

// children are the processes that a process has started.
func children(pid int) (v []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, f := range files {
		text, _ := os.ReadFile(f)
		for _, word := range strings.Fields(string(text)) {
			if k, err := strconv.Atoi(word); err == nil {
				v = append(v, k)
			}
		}
	}
	return v
}

// running returns those that have not ended, and are processes of a run.
func running(pids []int) (v []int) {
	for _, pid := range pids {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if bytes.Contains(line, []byte("gfabric\x00node\x00")) {
			v = append(v, pid)
		}
	}
	return v
}

// underWay is a run in several processes whose frames move.
type underWay struct {
	*exec.Cmd
	out   *bytes.Buffer
	nodes []int // its processes
}

func startDivided(t *testing.T, file string) *underWay {
	t.Helper()
	c, out := fabricCommand(file, "run", file, "--on", "netns", "--scale", "1000", "--processes", "hosts", "--fresh")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	u := &underWay{Cmd: c, out: out}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	eventually(t, "programs on the wires", func() error {
		if u.nodes = running(children(c.Process.Pid)); len(u.nodes) != 4 {
			return fmt.Errorf("processes %v", u.nodes)
		}
		return onTheWires(nameOf(file), "h1", "h2", "h3")
	})
	return u
}

// ended waits until all processes of a run are no more.
func (u *underWay) ended(t *testing.T) {
	t.Helper()
	eventually(t, "the end of all processes", func() error {
		if left := running(u.nodes); left != nil {
			return fmt.Errorf("%v go on", left)
		}
		return nil
	})
}

// Whichever process is killed, the processes of a run do not outlive it, and what is left
// of their wires the next run removes; interrupted, it leaves nothing.
func TestProcessesEnd(t *testing.T) {
	file := aScenario(t, "ends", endless)

	// The one that runs the scenario is killed.
	u := startDivided(t, file)
	u.Process.Kill()
	u.Wait()
	u.ended(t)

	// A process is lost, over what the killed one left.
	u = startDivided(t, file)
	unix.Kill(u.nodes[2], unix.SIGKILL)
	u.Wait()
	if code := u.ProcessState.ExitCode(); code != 1 || !strings.Contains(u.out.String(), fmt.Sprintf("(%d): signal: killed", u.nodes[2])) {
		t.Errorf("a process was killed: exit code %d\n%s", code, u.out)
	}
	u.ended(t)
	if left := wiresLeft(nameOf(file)); left != nil {
		t.Errorf("a process was killed: left behind: %v", left)
	}

	// It is interrupted.
	u = startDivided(t, file)
	u.Process.Signal(syscall.SIGINT)
	u.Wait()
	if code := u.ProcessState.ExitCode(); code != 1 || !strings.Contains(u.out.String(), "interrupted") {
		t.Errorf("interrupted: exit code %d\n%s", code, u.out)
	}
	u.ended(t)
	if left := wiresLeft(nameOf(file)); left != nil {
		t.Errorf("interrupted: left behind: %v", left)
	}
}

// A process that cannot end by itself is ended when the wires are removed.
func TestProcessesStopped(t *testing.T) {
	file := aScenario(t, "stopped", endless)
	u := startDivided(t, file)
	unix.Kill(u.nodes[1], unix.SIGSTOP)
	u.Process.Kill()
	u.Wait()
	eventually(t, "the end of the processes that can", func() error {
		if left := running(u.nodes); len(left) != 1 {
			return fmt.Errorf("%v go on", left)
		}
		return nil
	})
	down, printed := fabricCommand(file, "down", "run-"+nameOf(file))
	if err := down.Run(); err != nil {
		t.Errorf("%v\n%s", err, printed)
	}
	u.ended(t)
	if left := wiresLeft(nameOf(file)); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

// What cannot be in several processes is refused before anything is made.
func TestProcessesRefused(t *testing.T) {
	requests := strings.Replace(twoHosts, "kind: periodic, from: [h1], to: [h2], size: 50KB, every: 50us, count: 10", "kind: requests, from: [h1], to: [h2], size: 1KB, response: 50KB, count: 10", 1)
	inside := strings.Replace(twoHosts, "measure: {", "measure: {cc: true, ", 1)
	metered := strings.Replace(twoHosts, "switch: {", "switch: {lossradar: {enabled: true}, ", 1)
	counted := strings.Replace(twoHosts, "switch: {", "switch: {flowradar: {enabled: true}, ", 1)
	for name, k := range map[string]struct {
		text, want string
		args       []string
	}{
		"flows":    {counted, "what switches count of flows", []string{"--on", "netns", "--processes", "each"}},
		"losses":   {metered, "digests of both ends", []string{"--on", "netns", "--processes", "each"}},
		"requests": {requests, "workload[0] (messages): an answer is sent when", []string{"--on", "netns", "--processes", "hosts"}},
		"cc":       {inside, "measure.cc records", []string{"--on", "netns", "--processes", "each"}},
		"view":     {twoHosts, "cannot be looked at", []string{"--on", "netns", "--processes", "each", "--serve", "127.0.0.1:0"}},
		"sim":      {twoHosts, "add --on netns", []string{"--processes", "hosts"}},
		"some":     {twoHosts, `"some" does not say which nodes`, []string{"--on", "netns", "--processes", "some"}},
	} {
		file := aScenario(t, "no-"+name, k.text)
		c, out := fabricCommand(file, append([]string{"run", file, "--scale", "1000"}, k.args...)...)
		var exit *exec.ExitError
		if err := c.Run(); !errors.As(err, &exit) || !strings.Contains(out.String(), k.want) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
