package gswitch_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What fuzzing finds goes into the tree: small inputs of targets that there are, a few of
// each a night, until there are many.
func TestFuzzKeep(t *testing.T) {
	tool, err := exec.LookPath("make")
	if err != nil {
		t.Skip("no make here")
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	tree, cache := t.TempDir(), t.TempDir()
	file := func(name, text string) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	file(filepath.Join(tree, "a/b/x_test.go"), "package b\n\nfunc FuzzX(f *testing.F) {}\n")
	file(filepath.Join(tree, "a/b/testdata/fuzz/FuzzX/1"), "old")
	for _, name := range []string{"1", "2", "3", "4"} {
		file(filepath.Join(cache, "a/b/FuzzX", name), "new")
		file(filepath.Join(cache, "a/b/FuzzGone", name), "new")
		file(filepath.Join(cache, "a/gone/FuzzX", name), "new")
	}
	file(filepath.Join(cache, "a/b/FuzzX/0large"), strings.Repeat("x", 4097))
	file(filepath.Join(cache, "a/b/FuzzX/22"), strings.Repeat("x", 4096))
	keep := func() (kept []string) {
		if out, err := exec.Command(tool, "-f", filepath.Join(here, "Makefile"), "-C", tree, "--no-print-directory", "fuzz-keep", "FUZZKEEP=2", "FUZZCORPUS="+cache).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		files, _ := filepath.Glob(filepath.Join(tree, "*/*/testdata/fuzz/*/*"))
		for _, f := range files {
			kept = append(kept, strings.TrimPrefix(f, tree+"/a/b/testdata/fuzz/FuzzX/"))
		}
		return kept
	}
	for night, want := range [][]string{{"1", "2", "22"}, {"1", "2", "22", "3", "4"}, {"1", "2", "22", "3", "4"}} {
		if kept := keep(); !slices.Equal(kept, want) {
			t.Errorf("after night %d the tree has %v, want %v", night+1, kept, want)
		}
	}
	if text, _ := os.ReadFile(filepath.Join(tree, "a/b/testdata/fuzz/FuzzX/1")); string(text) != "old" {
		t.Errorf("an input that was there is %q now", text)
	}
	for i := range 195 {
		file(filepath.Join(tree, "a/b/testdata/fuzz/FuzzX", "seed"+strings.Repeat("x", i)), "s")
	}
	file(filepath.Join(cache, "a/b/FuzzX/5"), "new")
	if kept := keep(); slices.Contains(kept, "5") || len(kept) != 200 {
		t.Errorf("%d inputs, the bound is 200", len(kept))
	}
}
