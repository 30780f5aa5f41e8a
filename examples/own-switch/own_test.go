package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The programs are gfabric and gswitch, and know the order and the feature: a
// scenario gains by the one and counts by the other, a document may have both.
func TestPrograms(t *testing.T) {
	dir := t.TempDir()
	gfabric, gswitch := filepath.Join(dir, "gfabric"), filepath.Join(dir, "gswitch")
	if out, err := exec.Command("go", "build", "-o", gfabric, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Symlink(gfabric, gswitch); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(gfabric, "run", "mice.yaml", "--out", filepath.Join(dir, "results")).CombinedOutput(); err != nil {
		t.Errorf("run: %v\n%s", err, out)
	}
	values, err := os.ReadFile(filepath.Join(dir, "results", "values.csv"))
	if err != nil || !strings.Contains(string(values), "sizes_frames_large,total,400") {
		t.Errorf("the feature does not count the 400 large frames: %v\n%s", err, values)
	}
	if out, err := exec.Command(gswitch, "validate", "switch.yaml").CombinedOutput(); err != nil {
		t.Errorf("validate: %v\n%s", err, out)
	}
	if out, err := exec.Command(gswitch, "show", "sizes", "--help").CombinedOutput(); err != nil || !strings.Contains(string(out), "gswitch show sizes") {
		t.Errorf("show sizes: %v\n%s", err, out)
	}
	// A name that is not registered is refused, with those that are.
	text, err := os.ReadFile("switch.yaml")
	if err != nil {
		t.Fatal(err)
	}
	wrong := filepath.Join(dir, "wrong.yaml")
	if err := os.WriteFile(wrong, []byte(strings.Replace(string(text), "small-first", "small", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(gswitch, "validate", wrong).CombinedOutput()
	if err == nil || !strings.Contains(string(out), `"small" is not the name of an order; registered are small-first`) {
		t.Errorf("validate: %v\n%s", err, out)
	}
}
