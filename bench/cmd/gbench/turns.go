package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// turnsCmd compares benchmarks of packages, also of several checkouts, on a machine on which
// others work: each runs for a few milliseconds in turn, many times, and the quickest
// tenth counts, which is what the machine could do when it was not disturbed.
func turnsCmd(args []string) error {
	f := flag.NewFlagSet("gbench turns", flag.ExitOnError)
	f.Usage = func() {
		fmt.Fprint(f.Output(), "usage: gbench turns [flags] PACKAGE[@CHECKOUT]...\n"+
			"such as: gbench turns -bench 'Bridge|Full' ./vswitch@/tmp/before ./vswitch\n")
		f.PrintDefaults()
	}
	pattern := f.String("bench", ".", "benchmarks, a regular expression")
	benchtime := f.String("benchtime", "3ms", "time, or count such as 300x, of each benchmark in a round")
	rounds := f.Int("rounds", 100, "rounds; in each every benchmark runs once")
	out := f.String("out", "", "write the quickest tenth of each checkout to PREFIX1.txt, PREFIX2.txt, ... for benchstat")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() == 0 || *rounds < 1 {
		f.Usage()
		return errors.New("name packages, and one round at least")
	}
	dir, err := os.MkdirTemp("", "gbench-turns-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var all []*contender
	for i, arg := range f.Args() {
		pkg, checkout, ok := strings.Cut(arg, "@")
		if !ok {
			checkout = filepath.Dir(binDir())
		}
		c := &contender{label: arg, dir: filepath.Join(checkout, pkg), program: filepath.Join(dir, strconv.Itoa(i)+".test"), ns: map[string][]float64{}}
		cmd := exec.Command("go", "test", "-c", "-o", c.program, ".")
		cmd.Dir, cmd.Stderr = c.dir, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", arg, err)
		}
		all = append(all, c)
	}
	for range *rounds {
		for _, c := range all {
			if err := c.round(*pattern, *benchtime); err != nil {
				return err
			}
		}
	}
	if *out != "" {
		for i, c := range all {
			var b bytes.Buffer
			for _, name := range c.names {
				for _, ns := range c.quickest(name) {
					fmt.Fprintf(&b, "Benchmark%s 1 %g ns/op\n", name, ns)
				}
			}
			if err := os.WriteFile(fmt.Sprintf("%s%d.txt", *out, i+1), b.Bytes(), 0o644); err != nil {
				return err
			}
		}
	}
	return report(os.Stdout, all)
}

// contender is a package of a checkout, whose benchmarks run in turn with others'.
type contender struct {
	label, dir, program string
	names               []string // in the order of the first round
	ns                  map[string][]float64
}

// round runs each benchmark once.
func (c *contender) round(pattern, benchtime string) error {
	cmd := exec.Command(c.program, "-test.run", "^$", "-test.bench", pattern, "-test.benchtime", benchtime, "-test.cpu", "1")
	cmd.Dir = c.dir
	text, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", c.label, err, text)
	}
	for in := bufio.NewScanner(bytes.NewReader(text)); in.Scan(); {
		name, value, ok := parseBenchmark(in.Text())
		if !ok {
			continue
		}
		ns, err := strconv.ParseFloat(value["ns/op"], 64)
		if err != nil {
			return fmt.Errorf("%s: %s took %q ns", c.label, name, value["ns/op"])
		}
		if c.ns[name] == nil {
			c.names = append(c.names, name)
		}
		c.ns[name] = append(c.ns[name], ns)
	}
	if len(c.names) == 0 {
		return fmt.Errorf("%s: no benchmark is like %q", c.label, pattern)
	}
	return nil
}

// quickest returns the quickest tenth of a benchmark's runs, one at least, in order.
func (c *contender) quickest(name string) []float64 {
	v := slices.Sorted(slices.Values(c.ns[name]))
	return v[:(len(v)+9)/10]
}

// report writes, for each benchmark, what each contender needs, beside the first one.
func report(w io.Writer, all []*contender) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "benchmark\tof\truns\tns/op, quickest\tmedian of the quickest tenth\tbeside the first")
	for _, name := range all[0].names {
		first := 0.0
		for i, c := range all {
			if len(c.ns[name]) == 0 {
				continue
			}
			v := c.quickest(name)
			median := v[len(v)/2]
			if i == 0 {
				first = median
			}
			fmt.Fprintf(t, "%s\t%s\t%d\t%.1f\t%.1f\t%.3f\n", name, c.label, len(c.ns[name]), v[0], median, median/first)
		}
	}
	return t.Flush()
}
