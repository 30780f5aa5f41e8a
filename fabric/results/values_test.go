package results

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
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

// One value a line, with everything that says which run it is of.
func TestValues(t *testing.T) {
	var b strings.Builder
	if err := values(sweptRuns()).csv(&b); err != nil {
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

// Seeds are put together: means, their intervals by Student's t, extremes.
func TestSummary(t *testing.T) {
	var b strings.Builder
	if err := summary(sweptRuns()).csv(&b); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(strings.NewReader(b.String())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"variant", "engine", "load", "measure", "unit", "seeds", "mean", "low", "high", "min", "max"}; !slices.Equal(lines[0], want) {
		t.Errorf("columns %v, want %v", lines[0], want)
	}
	// 2.5, 3.5, 4.5: a standard deviation of 1, and 4.303 of its third root to each side.
	last := lines[len(lines)-1]
	if want := []string{"dcqcn", "sim", "0.7", "slowdown_p99", "", "3", "3.5"}; len(lines) != 1+4*3 || !slices.Equal(last[:7], want) || last[9] != "2.5" || last[10] != "4.5" {
		t.Errorf("%d lines, the last one %v", len(lines), last)
	}
	low, _ := strconv.ParseFloat(last[7], 64)
	high, _ := strconv.ParseFloat(last[8], 64)
	if half := 4.303 / math.Sqrt(3); math.Abs(low-(3.5-half)) > 1e-9 || math.Abs(high-(3.5+half)) > 1e-9 {
		t.Errorf("from %v to %v", low, high)
	}
	b.Reset()
	if err := summary(sweptRuns()[:2]).csv(&b); err != nil || !strings.Contains(b.String(), "slowdown_p99,,2,3,,,2.5,3.5\n") {
		t.Errorf("of two seeds there is an interval, or no line: %v\n%s", err, b.String())
	}
}

// The files of Parquet hold what those of CSV do, with types, and the same
// results give the same bytes.
func TestParquet(t *testing.T) {
	for name, table := range map[string]*tidy{"values": values(sweptRuns()), "summary": summary(sweptRuns()), "two": summary(sweptRuns()[:2]), "none": values(nil)} {
		var file, again bytes.Buffer
		if err := errors.Join(table.parquet(&file, name), table.parquet(&again, name)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(file.Bytes(), again.Bytes()) {
			t.Errorf("%s: twice the same is not the same bytes", name)
		}
		f, err := parquet.OpenFile(bytes.NewReader(file.Bytes()), int64(file.Len()))
		if err != nil {
			t.Fatal(err)
		}
		r := parquet.NewGenericReader[map[string]any](f, f.Schema())
		rows := make([]map[string]any, len(table.rows)+1)
		for i := range rows {
			rows[i] = map[string]any{}
		}
		if n, err := r.Read(rows); n != len(table.rows) || err != nil && err != io.EOF {
			t.Fatalf("%s: %d rows of %d, %v", name, n, len(table.rows), err)
		}
		for i, want := range table.rows {
			for k, c := range table.columns {
				if got := rows[i][c.name]; got != want[k] {
					t.Fatalf("%s: row %d, %s is %v (%T), want %v (%T)", name, i, c.name, got, got, want[k], want[k])
				}
			}
		}
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
