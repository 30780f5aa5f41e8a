package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// ceilingCmd runs BenchmarkCeiling of dataplane and its counterpart in C in
// turn. The quickest of many short runs counts: whatever else is on the machine
// only ever makes one slower.
func ceilingCmd(args []string) error {
	f := flag.NewFlagSet("gbench ceiling", flag.ExitOnError)
	rounds := f.Int("rounds", 6, "rounds of 15 short runs each")
	root := f.String("C", filepath.Dir(binDir()), "the repository")
	if err := f.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "gbench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	test := filepath.Join(dir, "dataplane.test")
	build := exec.Command("go", "test", "-c", "-o", test, "./dataplane")
	build.Dir, build.Stderr = *root, os.Stderr
	if err := build.Run(); err != nil {
		return err
	}
	best := map[string]float64{}
	var names []string
	note := func(name, text string) error {
		ns, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if old, known := best[name]; !known {
			names = append(names, name)
		} else if old < ns {
			return nil
		}
		best[name] = ns
		return nil
	}
	for range *rounds {
		bench := exec.Command(test, "-test.run", "^$", "-test.bench", "^BenchmarkCeiling$", "-test.benchtime", "100x", "-test.count", "15", "-test.cpu", "1")
		bench.Dir = dir
		out, err := bench.Output()
		if err != nil {
			return fmt.Errorf("%s: %w: %s", test, err, out)
		}
		for line := range strings.Lines(string(out)) {
			if name, value, ok := parseBenchmark(strings.TrimSpace(line)); ok {
				if err := note("gswitch: "+strings.ReplaceAll(strings.TrimPrefix(name, "Ceiling/"), "_", " "), value["ns/frame"]); err != nil {
					return err
				}
			}
		}
		const c = "peer-cl2fwd"
		if out, err = exec.Command(filepath.Join(binDir(), c), "--memory").Output(); err != nil {
			return fmt.Errorf("%s: %w (make bench-tool builds it)", c, err)
		}
		ns, _, _ := strings.Cut(string(out), " ")
		if err := note("C: parses nothing", ns); err != nil {
			return err
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(best[a], best[b]) })
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "forwarder\tns/frame\tMpps")
	for _, name := range names {
		fmt.Fprintf(t, "%s\t%.1f\t%.1f\n", name, best[name], 1e3/best[name])
	}
	return t.Flush()
}
