package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// Copies of a case run at once and count together: what they sent and used adds up,
// the slowest says how long it took, and each writes to a folder of its own.
func TestCopiesOfACase(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "gfabric")
	script := `#!/bin/sh
while [ "$1" != --out ]; do shift; done
mkdir "$2" || exit 2
echo '{"runs": [{"frame_hops": 1500000, "wall_seconds": 0.5, "digest": "d"}]}'
`
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	c := simCase{args: []string{"run"}, copies: 3}
	s, err := c.executeAll(program, dir)
	if err != nil {
		t.Fatal(err)
	}
	if s.hops != 4_500_000 || s.wall != 500*time.Millisecond || s.digest != "d" {
		t.Errorf("three copies: %d hops in %v, digest %s", s.hops, s.wall, s.digest)
	}
	if s, err := c.executeAll(program, dir); err == nil {
		t.Errorf("the same folders again: %+v, without the error of mkdir", s)
	}
}

// With -beside, a network on several cores is followed by as many copies on one each.
func TestBeside(t *testing.T) {
	for _, beside := range []bool{false, true} {
		var copies []int
		for _, c := range simCases("", nil, []string{"1", "2", "4"}, time.Millisecond, beside) {
			copies = append(copies, c.copies)
			if at := slices.Index(c.args, "--cores"); c.copies > 0 && c.args[at+1] != "1" {
				t.Errorf("%s: each copy on %s cores", c.name, c.args[at+1])
			}
		}
		want := []int{0, 0, 0}
		if beside {
			want = []int{0, 0, 2, 0, 4}
		}
		if !slices.Equal(copies, want) {
			t.Errorf("beside %v: copies %v, want %v", beside, copies, want)
		}
	}
}
