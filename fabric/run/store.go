package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"gswitch/fabric/results"
	"gswitch/fabric/scenario"
	"gswitch/wholefile"
)

// store keeps the finished runs of a scenario, and its directory.
type store struct {
	s      *scenario.Scenario
	o      *Options
	h      *host
	runs   []*results.Run // by run of the scenario, nil if not finished
	prints []string       // fingerprints
}

// printsName is the file that identifies the runs of results.json.
const printsName = "fingerprints.json"

const maxPrints = 16 << 20 // limit of its size in bytes

// newStore adopts the results in the directory.
func newStore(s *scenario.Scenario, o *Options, h *host) (*store, error) {
	st := &store{s: s, o: o, h: h, runs: make([]*results.Run, len(s.Runs)), prints: make([]string, len(s.Runs))}
	for i := range s.Runs {
		var err error
		if st.prints[i], err = s.Runs[i].Fingerprint(h.print(o.Program, s.Runs[i].Doc), s.File); err != nil {
			return nil, err
		}
	}
	if o.Out == "" {
		return st, nil
	}
	if err := writable(o.Out); err != nil {
		return nil, err
	}
	if o.Fresh {
		return st, nil
	}
	data, err := wholefile.ReadPlain(filepath.Join(o.Out, printsName), maxPrints)
	if errors.Is(err, fs.ErrNotExist) {
		return st, nil
	}
	if err != nil {
		return nil, err
	}
	var have []string
	if err := json.Unmarshal(data, &have); err != nil {
		return nil, fmt.Errorf("%s: %w; remove it to run everything anew", filepath.Join(o.Out, printsName), err)
	}
	f, err := results.LoadAll(o.Out)
	if err != nil {
		return nil, fmt.Errorf("%w; remove %s to run everything anew", err, o.Out)
	}
	for i, p := range st.prints {
		for k, h := range have {
			if h == p && k < len(f.Runs) {
				run := f.Runs[k]
				if o.Pauses > 0 && run.Pauses == nil {
					continue // it was not asked for then
				}
				if t := run.Timing; t != nil && !t.Valid {
					continue // it may keep time this time
				}
				run.Name = s.Runs[i].Name
				st.runs[i] = &run
			}
		}
	}
	return st, nil
}

// writable creates the directory and a file in it, to show before hours of runs that the
// results can be written.
func writable(dir string) error {
	err := os.MkdirAll(dir, 0o777)
	if err == nil {
		var f *os.File
		if f, err = os.CreateTemp(dir, ".writable-"); err == nil {
			err = errors.Join(f.Close(), os.Remove(f.Name()))
		}
	}
	if err != nil {
		return fmt.Errorf("results cannot be written: %w; give another directory", err)
	}
	return nil
}

// file returns results.json of the finished runs, with the expectations evaluated.
func (st *store) file() *results.File {
	d := st.s.Doc
	f := &results.File{Format: results.Format, Scenario: d.Name, Title: d.Title, Version: st.o.Version}
	if d.Paper != nil {
		f.Figure = strings.TrimSpace(d.Paper.Figure + ": " + d.Paper.Text)
	}
	f.Params = params(st.s)
	f.Checks = st.s.Evaluate(st.runs)
	for _, r := range st.runs {
		if r != nil {
			f.Runs = append(f.Runs, *r)
		}
	}
	return f
}

// params returns the settings that a reader of a report looks for.
func params(s *scenario.Scenario) []results.Param {
	d, t := s.Doc, s.Runs[0].Topology
	v := []results.Param{
		{Name: "topology", Value: t.Name + ": " + t.Size()},
		{Name: "duration", Value: d.Duration.String()},
		{Name: "payload", Value: d.Hosts.Payload.String()},
		{Name: "transport", Value: d.Hosts.Transport.Mode},
		{Name: "buffer", Value: d.Switch.Buffer.Size.String()},
	}
	pfc := "off"
	if d.PFC.Enabled {
		pfc = "on"
	}
	v = append(v, results.Param{Name: "PFC", Value: pfc})
	for i := range d.Workload {
		e := &d.Workload[i]
		v = append(v, results.Param{Name: "workload " + e.Name(), Value: e.Summary()})
	}
	return v
}

// save writes the directory of results.
func (st *store) save(f *results.File) error {
	if st.o.Out == "" {
		return nil
	}
	if err := results.Save(st.o.Out, f); err != nil {
		return err
	}
	prints := []string{}
	for i, r := range st.runs {
		if r != nil {
			prints = append(prints, st.prints[i])
		}
	}
	data, err := json.MarshalIndent(prints, "", "  ")
	if err != nil {
		return err
	}
	return wholefile.WriteBytes(filepath.Join(st.o.Out, printsName), 0o666, append(data, '\n'))
}
