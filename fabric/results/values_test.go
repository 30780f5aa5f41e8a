package results

import (
	"encoding/csv"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func sweptRuns() []Run {
	var runs []Run
	for _, v := range []string{"hpcc", "dcqcn"} {
		for _, load := range []string{"0.3", "0.7"} {
			for seed := range uint64(3) {
				runs = append(runs, Run{Name: v + ", load=" + load, Params: map[string]string{"load": load}, Engine: "sim", Seed: seed + 1,
					Values: map[string]float64{"slowdown_p99": 2.5 + float64(seed), "queue_max_bytes": 1000, "jain_index": 0.99}})
			}
		}
	}
	return runs
}

// One value a line, with everything that tells which run it is of.
func TestEncodeValues(t *testing.T) {
	var b strings.Builder
	if err := EncodeValues(&b, sweptRuns()); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(strings.NewReader(b.String())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"run", "name", "variant", "engine", "seed", "load", "measure", "unit", "value"}; !slices.Equal(lines[0], want) {
		t.Errorf("columns %v, want %v", lines[0], want)
	}
	if want := []string{"11", "dcqcn, load=0.7", "dcqcn", "sim", "3", "0.7", "queue_max", "bytes", "1000"}; len(lines) != 1+12*3 || !slices.Equal(lines[len(lines)-2], want) {
		t.Errorf("%d lines, the last but one %v, want %v", len(lines), lines[len(lines)-2], want)
	}
}

// The scripts of examples/notebook use columns that are there, and run where
// their interpreter and its libraries are.
func TestNotebooks(t *testing.T) {
	dir := t.TempDir()
	if err := Save(dir, &File{Format: Format, Scenario: "swept", Runs: sweptRuns()}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "values.csv"))
	if err != nil {
		t.Fatal(err)
	}
	header := strings.Split(strings.SplitN(string(text), "\n", 2)[0], ",")
	column := regexp.MustCompile(`"([a-z]+)"  *# a column|\bcol\("([a-z]+)"\)`)
	for script, run := range map[string]struct{ program, probe string }{
		"figure.py": {"python3", "import pandas, matplotlib"}, "figure.R": {"Rscript", "library(ggplot2)"},
	} {
		path := filepath.Join("../../examples/notebook", script)
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		used := 0
		for _, m := range column.FindAllStringSubmatch(string(source), -1) {
			used++
			if name := m[1] + m[2]; !slices.Contains(header, name) {
				t.Errorf("%s uses the column %s; there are %v", path, name, header)
			}
		}
		if used < 4 {
			t.Errorf("%s uses %d columns: this test reads it wrongly", path, used)
		}
		eval := map[string]string{"python3": "-c", "Rscript": "-e"}[run.program]
		if exec.Command(run.program, eval, run.probe).Run() != nil {
			continue // without the interpreter the columns are what can be checked
		}
		picture := filepath.Join(dir, script+".svg")
		if out, err := exec.Command(run.program, path, dir, "load", "slowdown_p99", picture).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", path, err, out)
		}
		if info, err := os.Stat(picture); err != nil || info.Size() == 0 {
			t.Errorf("%s draws nothing: %v", path, err)
		}
	}
}
