package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gswitch/bench/compare"
	"gswitch/bench/dut"
	"gswitch/bench/testbed"
)

func compareCmd(args []string) error {
	o := compare.Options{Mode: compare.Throughput}
	f := flag.NewFlagSet("gbench compare", flag.ExitOnError)
	f.IntVar(&o.Rounds, "rounds", 3, "rounds; in each, every forwarder runs once at every size")
	sizes := f.String("sizes", "64", "frame sizes in bytes with FCS, separated by commas")
	f.Float64Var(&o.Seconds, "seconds", 2, "length of a measurement, after a warm-up")
	f.Float64Var(&o.Rate, "rate", 0, "frames/s offered; 0 = as many as the generator can")
	f.IntVar(&o.Flows, "flows", 1, "UDP flows")
	f.IntVar(&o.Queues, "queues", 1, "queues of the veth pairs")
	latency := f.Bool("L", false, "measure round trips of single probes instead of throughput")
	idle := f.Bool("idle", false, "measure what a forwarder costs when nothing arrives")
	f.IntVar(&o.Probes, "probes", 1000, "probes of a latency run")
	f.DurationVar(&o.Gap, "gap", 500*time.Microsecond, "time between probes")
	f.IntVar(&o.Env.CPU, "cpu", 1, "core of the forwarder")
	f.IntVar(&o.Env.GenCPU, "gencpu", 0, "core of the generator, or of the pinger")
	f.StringVar(&o.Env.Bin, "bin", binDir(), "folder of the project's binaries")
	f.StringVar(&o.Perf, "perf", "", "write a profile of the forwarder's core (perf record) to this file")
	out := f.String("json", "", "write every run to this file")
	strict := f.Bool("check", false, "fail where a bar of the project is missed")
	f.Usage = func() {
		fmt.Fprintln(f.Output(), "usage: gbench compare [flags] [forwarder...]   (gbench list names them; without names all that can run)\n"+
			"NAME@FOLDER takes the project's binaries from another folder: two builds in one comparison")
		f.PrintDefaults()
	}
	var names []string // flags may stand between and behind them
	for rest := args; ; rest = f.Args()[1:] {
		if err := f.Parse(rest); err != nil {
			return err
		}
		if f.NArg() == 0 {
			break
		}
		names = append(names, f.Arg(0))
	}
	for s := range strings.SplitSeq(*sizes, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil {
			return fmt.Errorf("-sizes %s: %q is not a number", *sizes, s)
		}
		o.Sizes = append(o.Sizes, n)
	}
	switch {
	case *latency && *idle, (*latency || *idle) && o.Rate > 0:
		return errors.New("-L, -idle and -rate exclude each other")
	case *latency:
		o.Mode = compare.Latency
	case *idle:
		o.Mode = compare.Idle
	case o.Rate > 0:
		o.Mode = compare.Paced
	}
	if o.Env.CPU >= runtime.NumCPU() || o.Env.GenCPU >= runtime.NumCPU() || o.Env.CPU == o.Env.GenCPU {
		return fmt.Errorf("-cpu %d -gencpu %d: want two different cores of the %d that are here", o.Env.CPU, o.Env.GenCPU, runtime.NumCPU())
	}
	duts, err := choose(o, names)
	if err != nil {
		return err
	}
	if err := testbed.Lock(); err != nil {
		return err
	}
	sig := make(chan os.Signal, 1)
	signal.Notify(sig, syscall.SIGINT, syscall.SIGTERM)

	names = names[:0]
	for _, d := range duts {
		names = append(names, d.Name)
	}
	var results []compare.Result
	for round := 1; round <= o.Rounds; round++ {
		for _, size := range o.Sizes {
			for _, d := range duts {
				r := compare.Run(o, d, size, round)
				results = append(results, r)
				fmt.Println(r.Line(o.Mode))
				select {
				case s := <-sig: // between two runs: the bed of the last one is gone
					return fmt.Errorf("ended by %v after %d runs", s, len(results))
				default:
				}
			}
		}
	}
	compare.Table(os.Stdout, o, names, results)
	held := compare.Bars(os.Stdout, o, results)
	if *out != "" {
		b, err := json.MarshalIndent(map[string]any{"options": o, "runs": results}, "", " ")
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(*out), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(*out, append(b, '\n'), 0o644); err != nil {
			return err
		}
	}
	if *strict && !held {
		return errors.New("a bar is missed")
	}
	return nil
}

// choose returns the named forwarders in the order of the names, or all that
// can run in the mode. A name may say which build is meant: name@folder.
func choose(o compare.Options, names []string) ([]dut.DUT, error) {
	var chosen []dut.DUT
	fits := func(d dut.DUT) bool { return d.Start != nil || d.Name == dut.Direct && o.Mode == compare.Latency }
	if len(names) == 0 {
		for _, d := range dut.All() {
			if missing := d.Missing(o.Env); missing != "" {
				fmt.Printf("left out: %s (%s)\n", d.Name, missing)
			} else if fits(d) {
				chosen = append(chosen, d)
			}
		}
	}
	for _, arg := range names {
		name, folder, other := strings.Cut(arg, "@")
		i := slices.IndexFunc(dut.All(), func(d dut.DUT) bool { return d.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no forwarder is called %s; gbench list names them", name)
		}
		d := dut.All()[i]
		if !fits(d) {
			return nil, fmt.Errorf("%s cannot be measured in this mode", name)
		}
		if other {
			d = d.Of(arg, folder)
		}
		if missing := d.Missing(o.Env); missing != "" {
			return nil, fmt.Errorf("%s: %s", arg, missing)
		}
		chosen = append(chosen, d)
	}
	if len(chosen) == 0 {
		return nil, errors.New("none of the forwarders can run here")
	}
	return chosen, nil
}

func listCmd([]string) error {
	for _, d := range dut.All() {
		state := "here"
		if m := d.Missing(dut.Env{Bin: binDir()}); m != "" {
			state = m
		}
		fmt.Printf("%-17s %s\n%-17s (%s)\n", d.Name, d.About, "", state)
	}
	return nil
}

func cleanCmd([]string) error {
	if err := testbed.Lock(); err != nil {
		return err
	}
	return testbed.Clean()
}

// binDir is where this program lies, beside the others.
func binDir() string {
	exe, err := os.Executable()
	if err != nil {
		return "bin"
	}
	return filepath.Dir(exe)
}
