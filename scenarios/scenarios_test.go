// Package scenarios_test runs the short form of every scenario and holds it to
// what it expects.
package scenarios_test

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"gswitch/fabric/results"
	"gswitch/fabric/run"
	"gswitch/fabric/scenario"
)

func files(t *testing.T) []string {
	t.Helper()
	var v []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".yaml" {
			v = append(v, path)
		}
		return err
	})
	if err != nil || len(v) == 0 {
		t.Fatalf("no scenarios found: %v", err)
	}
	return v
}

// The short form of each scenario runs and what it expects holds.
func TestShort(t *testing.T) {
	for _, file := range files(t) {
		t.Run(strings.TrimSuffix(file, ".yaml"), func(t *testing.T) {
			if testing.Short() && file != "quickstart.yaml" {
				t.Skip("only the quick start runs with -short")
			}
			s, err := scenario.Load(file, scenario.Options{Short: true})
			if err != nil {
				t.Fatal(err)
			}
			f, err := run.Scenario(t.Context(), s, run.Options{Version: "test", Jobs: run.DefaultJobs()})
			if err != nil {
				t.Fatal(err)
			}
			n := report(t, "", f.Checks)
			for i := range f.Runs {
				n += report(t, f.Runs[i].Name+": ", f.Runs[i].Checks)
			}
			if n == 0 {
				t.Error("the scenario expects nothing, so it cannot fail")
			}
		})
	}
}

func report(t *testing.T, who string, checks []results.Check) int {
	t.Helper()
	for _, c := range checks {
		if !c.OK {
			t.Errorf("%s%s: measured %g %s", who, c.Text, c.Got, c.Why)
		}
	}
	return len(checks)
}

// The full form of each scenario is well formed, too.
func TestFullLoads(t *testing.T) {
	for _, file := range files(t) {
		if _, err := scenario.Load(file, scenario.Options{}); err != nil {
			t.Error(err)
		}
	}
}
