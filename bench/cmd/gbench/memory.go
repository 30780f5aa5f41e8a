package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// memoryCmd runs go test -bench over the packages and prints one line a benchmark.
func memoryCmd(args []string) error {
	f := flag.NewFlagSet("gbench memory", flag.ExitOnError)
	pattern := f.String("bench", ".", "benchmarks, a regular expression")
	benchtime := f.String("benchtime", "100ms", "time of each benchmark")
	root := f.String("C", filepath.Dir(binDir()), "the repository")
	if err := f.Parse(args); err != nil {
		return err
	}
	packages := f.Args()
	if len(packages) == 0 {
		packages = []string{"./..."}
	}
	// One package at a time: two would measure each other.
	cmd := exec.Command("go", append([]string{"test", "-run", "^$", "-p", "1", "-bench", *pattern, "-benchtime", *benchtime, "-benchmem"}, packages...)...)
	cmd.Dir = *root
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "package\tbenchmark\tns/frame\tns/op\tB/op\tallocs/op\tother")
	pkg := ""
	for in := bufio.NewScanner(out); in.Scan(); {
		line := in.Text()
		if p, is := strings.CutPrefix(line, "pkg: "); is {
			pkg = strings.TrimPrefix(p, "gswitch/")
			continue
		}
		if strings.HasPrefix(line, "--- FAIL") || strings.HasPrefix(line, "FAIL") || strings.HasPrefix(line, "panic:") {
			fmt.Fprintln(os.Stderr, line)
		}
		if name, value, ok := parseBenchmark(line); ok {
			var other []string
			for unit, v := range value {
				switch unit {
				case "ns/frame", "ns/op", "B/op", "allocs/op":
				default:
					other = append(other, v+" "+unit)
				}
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", pkg, name, value["ns/frame"], value["ns/op"], value["B/op"], value["allocs/op"], strings.Join(other, ", "))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return cmd.Wait()
}

// parseBenchmark reads a result line of go test -bench: a name, a count, and
// pairs of a value and its unit.
func parseBenchmark(line string) (name string, value map[string]string, ok bool) {
	f := strings.Fields(line)
	if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") || len(f)%2 != 0 {
		return "", nil, false
	}
	value = map[string]string{}
	for i := 2; i < len(f); i += 2 {
		value[f[i+1]] = f[i]
	}
	return strings.TrimPrefix(f[0], "Benchmark"), value, true
}
