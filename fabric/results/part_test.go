package results

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

type tide struct {
	High float64 `json:"high"`
}

var (
	tides  = NewPart[[]tide]("tides")
	depths = NewFilePart[[]string]("depths.txt", func(w io.Writer, runs []Run) error {
		for i := range runs {
			if _, err := fmt.Fprintln(w, strings.Join(depthsOf(&runs[i]), " ")); err != nil {
				return err
			}
		}
		return nil
	}, func(r io.Reader, runs []Run) error {
		b, err := io.ReadAll(r)
		for i, line := range strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") {
			if line != "" {
				setDepths(&runs[i], strings.Fields(line))
			}
		}
		return err
	})
)

func depthsOf(r *Run) []string     { v, _ := r.Parts["depths.txt"].([]string); return v }
func setDepths(r *Run, v []string) { Part[[]string]{"depths.txt"}.Set(r, v) }

// What systems add to runs is written and read with them, each part by its type, before the
// values; a run without it has none, and one with nothing in it does not show it.
func TestParts(t *testing.T) {
	want := example()
	tides.Set(&want.Runs[1], []tide{{4.5}, {3}})
	depths.Set(&want.Runs[1], []string{"7", "9"})
	if depths.Of(&want.Runs[0]) != nil || tides.Of(&want.Runs[0]) != nil || len(tides.Of(&want.Runs[1])) != 2 {
		t.Fatal("a run has the part of another")
	}
	dir := t.TempDir()
	if err := Save(dir, want); err != nil {
		t.Fatal(err)
	}
	got, err := LoadAll(dir)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
	text, err := os.ReadFile(filepath.Join(dir, jsonName))
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(text), `"tides"`)
	if first, last := strings.Index(string(text), `"values"`), strings.LastIndex(string(text), `"values"`); at < first || at > last || strings.Count(string(text), `"tides"`) != 1 || strings.Contains(string(text), "depths") {
		t.Errorf("the part is at %d, values are at %d and %d", at, first, last)
	}
	if !Saves("depths.txt") || Saves("tides") {
		t.Error("files of parts are not known")
	}

	if got, err = Load(dir); err != nil || depths.Of(&got.Runs[1]) != nil || len(tides.Of(&got.Runs[1])) != 2 {
		t.Errorf("without files of parts: %+v, %v", got.Runs[1].Parts, err)
	}
	// The file of an earlier run goes when no run has the part any more.
	delete(want.Runs[1].Parts, "depths.txt")
	if err := Save(dir, want); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "depths.txt")); !os.IsNotExist(err) {
		t.Error(err)
	}
}

// A part that does not read says where, as the rest of the file does.
func TestBadPart(t *testing.T) {
	_, err := Decode([]byte("{\"format\": 1,\n\"runs\": [{\n\"tides\": [{\"high\": true}]}]}"))
	if err == nil || !strings.Contains(err.Error(), "line 3: runs.tides.high: a bool does not fit here") {
		t.Error(err)
	}
}

// Keys of runs and files of results are taken once.
func TestPartIsTaken(t *testing.T) {
	for _, key := range []string{"tides", "values", "digest", "depths.txt", "flows.csv"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is registered twice", key)
				}
			}()
			NewPart[int](key)
		}()
	}
}
