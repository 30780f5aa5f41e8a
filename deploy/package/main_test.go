package main

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"gswitch/cli/gcollect"
	"gswitch/cli/gfabric"
	"gswitch/cli/ghost"
	"gswitch/cli/gswitch"
)

// Every verb that --help shows has a manual page that names its flags, and
// every shell its completion.
func TestManualsAndCompletions(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "0")
	out := t.TempDir()
	if err := write(out, "v1.2.3", nil); err != nil {
		t.Fatal(err)
	}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Hidden || !c.IsAvailableCommand() && c.HasParent() {
			return
		}
		page := filepath.Join(out, "man1", strings.ReplaceAll(c.CommandPath(), " ", "-")+".1.gz")
		text := unpacked(t, page)
		for _, want := range []string{"Jan 1970", "v1.2.3", "SYNOPSIS"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s has no %q", page, want)
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	for _, root := range []*cobra.Command{gswitch.Command("v1.2.3"), ghost.Command("v1.2.3"), gfabric.Command("v1.2.3"), gcollect.Command("v1.2.3")} {
		walk(root)
		for _, shell := range []string{".bash", ".zsh", ".fish"} {
			text, err := os.ReadFile(filepath.Join(out, "completions", root.Name()+shell))
			if err != nil || !strings.Contains(string(text), root.Name()) {
				t.Errorf("%s%s: %v", root.Name(), shell, err)
			}
		}
	}
}

func unpacked(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What the packages hold is there: in the tree, or made by make package.
func TestContentsExist(t *testing.T) {
	text, err := os.ReadFile("nfpm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Contents []struct{ Src, Dst string }
	}
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, c := range doc.Contents {
		if c.Src == "" || strings.HasPrefix(c.Src, "bin/") {
			continue
		}
		seen++
		if found, err := filepath.Glob(filepath.Join("../..", c.Src)); err != nil || len(found) == 0 {
			t.Errorf("%s, which becomes %s, is not there", c.Src, c.Dst)
		}
	}
	if seen < 8 {
		t.Errorf("only %d contents: this test reads nfpm.yaml wrongly", seen)
	}
}
