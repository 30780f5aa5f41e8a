// Package goldentest compares what tests make with files of their testdata.
package goldentest

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gswitch/wholefile"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Compare compares a text with a file of testdata. With -update the file becomes the text.
func Compare(t testing.TB, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := wholefile.WriteBytes(path, 0o644, []byte(got)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := wholefile.Read(path, 64<<20)
	if err != nil {
		t.Fatalf("%v; go test -update writes it", err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got; go test -update rewrites it):\n%s", path, d)
	}
}
