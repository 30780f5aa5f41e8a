package show

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gswitch/fabric/goldentest"
	"gswitch/fabric/results"
	"gswitch/fabric/run"
	"gswitch/fabric/scenario"
)

// load reads the scenario of the demo under a name that does not depend on
// where the test runs.
func load(t *testing.T) *scenario.Scenario {
	t.Helper()
	data, err := os.ReadFile("../../scenarios/demo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Parse("scenarios/demo.yaml", data, scenario.Options{Short: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// file makes results of the demo's two runs.
func file(engine string, timing [2]*results.Timing, k float64) *results.File {
	f := &results.File{Scenario: "demo"}
	for i, name := range []string{"dcqcn", "hpcc"} {
		q := float64(100_000*(1-i) + 1000)
		f.Runs = append(f.Runs, results.Run{Name: name, Engine: engine, Seed: 1, Timing: timing[i], Values: map[string]float64{
			"fct_p50_seconds": k * 1.5e-3, "fct_p95_seconds": k * 1.6e-3, "fct_max_seconds": k * 1.61e-3,
			"queue_p50_bytes": k * q, "queue_p95_bytes": k * 2 * q, "queue_max_bytes": k * 3 * q, "pauses_total": float64(290 * (1 - i)),
			"goodput_bps": 20.2e9, "jain_index": 0.987, "drops_total": 0,
		}, Checks: []results.Check{{Text: "drops_total == 0", OK: true}}})
	}
	f.Checks = []results.Check{{Text: "hpcc.queue_p95_bytes < dcqcn.queue_p95_bytes / 3", OK: true}}
	return f
}

func timing(valid bool) *results.Timing {
	t := &results.Timing{Scale: 1000, Valid: valid, BaseRTT: 9e-6, LateP99: 80e-9, Bound: 2.25e-6}
	if !valid {
		t.LateP99, t.Why, t.Remedies = 3e-6, []string{"the 99th percentile of lateness is 3µs"}, []string{"a larger scale", "nothing else on the machine"}
	}
	return t
}

func text(t *testing.T, v *Table) string {
	t.Helper()
	var b strings.Builder
	if err := v.Text(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The table of runs that went well, of one that did not keep time, and of
// virtual time alone; and what scripts get.
func TestTable(t *testing.T) {
	s := load(t)
	sim := file("sim", [2]*results.Timing{}, 1)
	good := newTable(s, sim, file("netns", [2]*results.Timing{timing(true), timing(true)}, 1.01))
	goldentest.Compare(t, "both.txt", text(t, good))
	if err := good.Err(); err != nil || good.Held != 6 || len(good.Runs) != 2 {
		t.Errorf("%d expectations held, %v", good.Held, err)
	}
	data, err := json.MarshalIndent(good, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	goldentest.Compare(t, "both.json", string(data)+"\n")
	goldentest.Compare(t, "sim.txt", text(t, newTable(s, sim, nil)))

	// Nothing is expected of a run that did not keep time.
	live := file("netns", [2]*results.Timing{timing(false), timing(true)}, 1.01)
	live.Runs[0].Checks[0].OK, live.Checks[0].OK = false, false
	bad := newTable(s, sim, live)
	goldentest.Compare(t, "invalid.txt", text(t, bad))
	if err := bad.Err(); err == nil || !strings.Contains(err.Error(), "INVALID") || !strings.Contains(err.Error(), "DCQCN") || len(bad.Failed) != 0 || bad.Held != 4 {
		t.Errorf("%v, %d held, failed %q", err, bad.Held, bad.Failed)
	}

	live = file("netns", [2]*results.Timing{timing(true), timing(true)}, 2)
	live.Runs[1].Checks[0] = results.Check{Text: "drops_total == 0", Got: 7}
	broken := newTable(s, sim, live)
	goldentest.Compare(t, "failed.txt", text(t, broken))
	if err := broken.Err(); err == nil || err.Error() != "1 of 6 expectations do not hold" {
		t.Errorf("%v", err)
	}
	for _, v := range []*Table{good, bad, broken} {
		table, _, _ := strings.Cut(text(t, v), "\n\n")
		for line := range strings.Lines(table) {
			if len(line) > textWidth+1 {
				t.Errorf("%d columns: %q", len(line), line)
			}
		}
	}
}

// The virtual half of the demo, as fast as it goes: what is printed meanwhile, the
// table, and the page.
func TestSim(t *testing.T) {
	s := load(t)
	var to strings.Builder
	out := t.TempDir()
	v, err := Scenario(t.Context(), s, Options{Run: run.Options{Version: "test", On: run.Sim, Pace: 1}, Out: out, To: &to})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Err(); err != nil || v.Agrees != nil || v.Held == 0 {
		t.Errorf("%v, %d held\n%s", err, v.Held, text(t, v))
	}
	for i, want := range []string{"dcqcn", "hpcc"} {
		if v.Runs[i].Name != want || v.Runs[i].Predicted["fct_p95_seconds"] <= 0 || v.Runs[i].Measured != nil {
			t.Errorf("%+v", v.Runs[i])
		}
	}
	printed := to.String()
	a, b := strings.Index(printed, "== DCQCN in virtual time\n"), strings.Index(printed, "== HPCC in virtual time\n")
	if a < 0 || b < a || !strings.Contains(printed[a:b], " ended") || !strings.Contains(printed[b:], " ended") || strings.Contains(printed, "\x1b") {
		t.Errorf("printed meanwhile:\n%s", printed)
	}
	page, err := os.ReadFile(filepath.Join(out, "report.html"))
	if err != nil || !strings.Contains(string(page), "Eight hosts send to a ninth") {
		t.Errorf("the page: %v", err)
	}
	if f, err := results.Load(filepath.Join(out, "sim")); err != nil || len(f.Runs) != 2 {
		t.Errorf("results: %v", err)
	}
}
