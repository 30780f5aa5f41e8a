package gfabric

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	runner "gswitch/fabric/run"
	"gswitch/fabric/scenario"
)

// A run records its connections, which diagnose replays from its directory and says
// what went wrong; a file that was changed, or none, is an error that names it.
func TestDiagnose(t *testing.T) {
	s, err := scenario.Load("../../scenarios/deter/x1-delayed-ack.yaml", scenario.Options{Only: []string{"paper"}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := runner.Scenario(t.Context(), s, runner.Options{Version: version, Jobs: 1, Out: dir}); err != nil {
		t.Fatal(err)
	}
	usual := diagnoseFlags{held: 20 * time.Millisecond, window: 0.5, to: 1 << 62}
	path := filepath.Join(dir, "connections")
	tell := func(f diagnoseFlags) string {
		var out strings.Builder
		if err := f.run(&out, path); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	text := tell(usual)
	for _, want := range []string{"tail-drop", "its receiver held an acknowledgement back for 32ms", "5 connections replayed, all packets identical"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	steps := usual
	steps.trace, steps.only, steps.from = true, "h4", 40*time.Millisecond
	if lines := strings.Split(tell(steps), "\n"); len(lines) < 5 || len(lines) > 40 || !strings.Contains(lines[2], "timer") {
		t.Errorf("the end of the connection has %d lines: %q", len(lines), lines)
	}
	files, err := filepath.Glob(filepath.Join(path, "*.gtcp"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(files[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := usual.run(&strings.Builder{}, path); err == nil || !strings.Contains(err.Error(), files[0]) {
		t.Errorf("a record that was changed: %v", err)
	}
	if err := usual.run(&strings.Builder{}, t.TempDir()); err == nil || !strings.Contains(err.Error(), "measure.connections") {
		t.Errorf("no records: %v", err)
	}
}
