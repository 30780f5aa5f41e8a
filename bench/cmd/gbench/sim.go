package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"
)

// simCase is a run in virtual time.
type simCase struct {
	name   string
	args   []string
	copies int // that run at the same time, each on a core: what the machine has for several, 0 and 1 for one
}

// simSample is what one execution of a case came to.
type simSample struct {
	hops      uint64
	wall, cpu time.Duration // of the run; of the whole process
	rss       int64         // bytes
	digest    string
}

// simReport is what gfabric ns3 and gfabric run say as JSON.
type simReport struct {
	Hops   uint64  `json:"frame_hops"`
	Wall   float64 `json:"wall_s"`
	Digest string  `json:"digest"`
	Runs   []struct {
		Hops   uint64  `json:"frame_hops"`
		Wall   float64 `json:"wall_seconds"`
		Digest string  `json:"digest"`
	} `json:"runs"`
}

// simCases are the published inputs of HPCC's simulator with each congestion
// control, and the network of HPCC's evaluation.
func simCases(root string, ccs, cores []string, span time.Duration, beside bool) (v []simCase) {
	for _, w := range []string{"FbHdp", "WebSearch"} {
		base := filepath.Join(root, "fabric/ns3/testdata", "ls16_"+w+"_30")
		for _, cc := range ccs {
			v = append(v, simCase{name: "ls16 " + w + " " + cc, args: []string{"ns3", "--topology", base + ".topo", "--flows", base + ".flow", "--cc", cc, "--json"}})
		}
	}
	for _, n := range cores {
		name := "320 hosts FB_Hadoop hpcc"
		if n != "1" {
			name += " on " + n + " cores"
		}
		args := func(n string) []string {
			return []string{"run", filepath.Join(root, "scenarios/hpcc/fig2.11cd-load.yaml"), "--only", "hpcc", "--jobs", "1", "--cores", n,
				"--set", "workload.background.stop=" + span.String(), "--set", "duration=8ms", "--fresh", "--json", "--quiet"}
		}
		v = append(v, simCase{name: name, args: args(n)})
		if k, err := strconv.Atoi(n); beside && err == nil && k > 1 {
			v = append(v, simCase{name: n + " runs of it side by side, one core each", args: args("1"), copies: k})
		}
	}
	return v
}

// simCmd runs virtual networks in turn, several times, and prints medians.
func simCmd(args []string) error {
	f := flag.NewFlagSet("gbench sim", flag.ExitOnError)
	rounds := f.Int("rounds", 5, "executions of each case, in turn")
	ccs := f.String("cc", "hpcc,dcqcn,timely,dctcp", "congestion controls of the small networks")
	cores := f.String("cores", "1,2", "cores for the network of 320 hosts; its digest is the same on each number of them")
	span := f.Duration("span", 300*time.Microsecond, "virtual time in which flows begin on the network of 320 hosts")
	beside := f.Bool("beside", false, "and as many runs of the network of 320 hosts at once as there are cores, each on one: what several cores of the machine have for virtual time")
	root := f.String("C", filepath.Dir(binDir()), "the repository")
	if err := f.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "gbench-sim")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cases := simCases(*root, strings.Fields(strings.ReplaceAll(*ccs, ",", " ")), strings.Split(*cores, ","), *span, *beside)
	samples := make([][]simSample, len(cases))
	for round := range *rounds {
		for i, c := range cases {
			s, err := c.executeAll(filepath.Join(*root, "bin/gfabric"), dir)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			if round > 0 && s.digest != samples[i][0].digest {
				return fmt.Errorf("%s: digest %s, before %s: the run does not repeat", c.name, s.digest, samples[i][0].digest)
			}
			samples[i] = append(samples[i], s)
		}
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "case\tmillion hops\tM/s of CPU, median\tbest\tM/s of wall time, median\tbest\tMB\tdigest")
	for i, c := range cases {
		v := samples[i]
		cpu, wall := rates(v, func(s simSample) time.Duration { return s.cpu }), rates(v, func(s simSample) time.Duration { return s.wall })
		fmt.Fprintf(t, "%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%d\t%s\n", c.name, float64(v[0].hops)/1e6,
			cpu[len(cpu)/2], cpu[len(cpu)-1], wall[len(wall)/2], wall[len(wall)-1], v[0].rss>>20, v[0].digest)
	}
	return t.Flush()
}

// rates returns the million hops per second of the samples, ascending.
func rates(v []simSample, of func(simSample) time.Duration) (r []float64) {
	for _, s := range v {
		r = append(r, float64(s.hops)/1e6/of(s).Seconds())
	}
	slices.Sort(r)
	return r
}

// executeAll runs all copies of a case at once and returns what they did together, in
// the time of the one that took longest.
func (c *simCase) executeAll(program, dir string) (simSample, error) {
	samples, errs := make([]simSample, max(1, c.copies)), make([]error, max(1, c.copies))
	var all sync.WaitGroup
	for i := range samples {
		all.Go(func() { samples[i], errs[i] = c.execute(program, filepath.Join(dir, strconv.Itoa(i))) })
	}
	all.Wait()
	s := samples[0]
	for _, o := range samples[1:] {
		s.hops, s.wall, s.cpu, s.rss = s.hops+o.hops, max(s.wall, o.wall), s.cpu+o.cpu, s.rss+o.rss
	}
	return s, errors.Join(errs...)
}

// execute runs a case once. What it writes goes to the directory.
func (c *simCase) execute(program, dir string) (s simSample, err error) {
	args := c.args
	if args[0] == "run" {
		args = append(slices.Clone(args), "--out", dir)
	}
	cmd := exec.Command(program, args...)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	// Code 1 says that expectations do not hold, as those of a full run need
	// not in a shorter one.
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) {
		return s, fmt.Errorf("%w: %s", err, complaint.String())
	}
	var r simReport
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return s, fmt.Errorf("%w: %s", err, complaint.String())
	}
	if len(r.Runs) > 0 {
		r.Hops, r.Wall, r.Digest = r.Runs[0].Hops, r.Runs[0].Wall, r.Runs[0].Digest
	}
	if r.Hops == 0 {
		return s, fmt.Errorf("nothing was sent: %s", complaint.String())
	}
	state := cmd.ProcessState
	s = simSample{hops: r.Hops, wall: time.Duration(r.Wall * 1e9), cpu: state.UserTime() + state.SystemTime(), digest: r.Digest}
	if u, ok := state.SysUsage().(*syscall.Rusage); ok {
		s.rss = u.Maxrss << 10 // getrusage(2): KiB
	}
	return s, nil
}
