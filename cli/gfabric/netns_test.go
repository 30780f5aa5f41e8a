package gfabric

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gswitch/fabric"
	"gswitch/fabric/agree"
	"gswitch/fabric/results"
	"gswitch/fabric/scenario"
)

// Whatever a scenario is called, its wires have a name that the lab takes.
func TestWiresName(t *testing.T) {
	for name, want := range map[string]string{
		"incast2":           "run-incast2",
		"fig2.9ab-recovery": "run-fig2-9ab-recovery",
		"A name, and_one that is much longer than the lab takes": "run-a-name-and-one-that-is-much-l",
		"..": "run",
	} {
		got := wiresName(name)
		if err := fabric.CheckName("fabric", got); err != nil || !strings.HasPrefix(want, got) {
			t.Errorf("%q: %q, want %q; %v", name, got, want, err)
		}
	}
}

// A piece has each variant once, and lasts as long as its budget.
func TestFirstPiece(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.yaml")
	text := strings.Replace(tinyScenario, "expect: [flows_total == 2]", "seeds: [1, 2]\nmeasure: {warmup: 100us}\nvariants: [{name: a}, {name: b, set: {hosts.cc: dctcp}}]\nsweep: {workload.burst.size: [10KB, 20KB]}", 1)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Load(path, scenario.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for scale, want := range map[int]time.Duration{1: time.Millisecond, 4000: 500 * time.Microsecond, 40_000: 50 * time.Microsecond} {
		p := firstPiece(s, scale, 2*time.Second)
		if len(p.Runs) != 2 || p.Runs[0].Variant != "a" || p.Runs[1].Variant != "b" {
			t.Fatalf("runs %+v", p.Runs)
		}
		for _, r := range p.Runs {
			if d := time.Duration(r.Doc.Duration); d != want || r.Doc.Measure.Warmup >= r.Doc.Duration {
				t.Errorf("at scale %d a piece of %v after %v, want %v", scale, d, r.Doc.Measure.Warmup, want)
			}
		}
	}
	if d := s.Runs[0].Doc.Duration; time.Duration(d) != time.Millisecond || len(s.Runs) != 8 {
		t.Errorf("the scenario itself was changed: %d runs of %v", len(s.Runs), d)
	}
	// Three hosts of 10 Gb/s send 3.75 million frames of 1000 bytes.
	if k := startScale(s); k != 1 {
		t.Errorf("the search begins at %d, want 1", k)
	}
}

// What counts more decides the exit code.
func TestDisagreement(t *testing.T) {
	var invalid invalidError
	for _, c := range []struct {
		c    agree.Comparison
		want string // part of the error, "" none
		code int
	}{
		{agree.Comparison{Judged: 4}, "", 0},
		{agree.Comparison{Judged: 4, Beyond: 1, Invalid: 1}, "1 of 4 values and orders are beyond", 1},
		{agree.Comparison{Judged: 4, Invalid: 2}, "2 runs did not keep time", exitInvalid},
		{agree.Comparison{Missing: []string{"a"}, Invalid: 1}, "1 runs have no results", 1},
	} {
		err := disagreement([]*agree.Comparison{{Judged: 0}, &c.c})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || errors.As(err, &invalid) != (c.code == exitInvalid) {
			t.Errorf("%+v: %v, want %q", c.c, err, c.want)
		}
	}
}

func TestKept(t *testing.T) {
	f := &results.File{Runs: []results.Run{{Name: "sim"}, {Name: "on time", Timing: &results.Timing{Valid: true}}}}
	if err := kept(f); err != nil {
		t.Error(err)
	}
	f.Runs = append(f.Runs, results.Run{Name: "late", Timing: &results.Timing{}})
	var invalid invalidError
	if err := kept(f); !errors.As(err, &invalid) || !strings.Contains(err.Error(), "1 of 3 runs are INVALID, they did not keep time: late") {
		t.Error(err)
	}
}
