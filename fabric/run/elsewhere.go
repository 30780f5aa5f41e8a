package run

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"gswitch/fabric/results"
	"gswitch/fabric/scenario"
	"gswitch/wholefile"
)

// Order is a run that another process has to execute.
type Order struct {
	Run   *scenario.Run
	Print string // of the run
	Began func() // to be called when the run starts
}

// Elsewhere executes a run in another process. It returns a new directory with the
// results of that run alone, as Scenario writes them. The caller removes the directory
// once it has read it.
type Elsewhere func(ctx context.Context, o Order) (dir string, err error)

// elsewhere executes the i-th run in another process and adopts its results.
func (st *store) elsewhere(ctx context.Context, i int, p *progress) (*results.Run, error) {
	r := &st.s.Runs[i]
	dir, err := st.o.Elsewhere(ctx, Order{Run: r, Print: st.prints[i], Began: func() { p.state.Store(running) }})
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out, err := st.take(dir, st.prints[i])
	if err != nil {
		return nil, err
	}
	out.Name = r.Name
	p.set(p.end, out.Events)
	return out, nil
}

// take reads the single run of a directory, and moves the files that only its execution
// could write to the results.
func (st *store) take(dir, print string) (*results.Run, error) {
	f, err := results.LoadAll(dir)
	if err != nil {
		return nil, err
	}
	data, err := wholefile.ReadPlain(filepath.Join(dir, printsName), maxPrints)
	if err != nil {
		return nil, err
	}
	var have []string
	if err := json.Unmarshal(data, &have); err != nil {
		return nil, err
	}
	if len(f.Runs) != 1 || !slices.Equal(have, []string{print}) {
		return nil, fmt.Errorf("the results are of %v, not of the run %s: the program or the settings differ", have, print)
	}
	out := &f.Runs[0]
	if st.o.Out == "" {
		return out, nil
	}
	return out, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || d.IsDir() || results.Saves(rel) || rel == printsName || rel == "report.html" {
			return err
		}
		to := filepath.Join(st.o.Out, rel)
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return err
		}
		return moveFile(path, to)
	})
}

// moveFile renames a file, or copies it to another file system and keeps its mode.
func moveFile(from, to string) error {
	if os.Rename(from, to) == nil {
		return nil
	}
	st, err := os.Stat(from)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return wholefile.WriteBytes(to, st.Mode().Perm(), data)
}
