package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"

	"gswitch/fabric/live"
	"gswitch/fabric/observe"
	"gswitch/fabric/results"
	"gswitch/fabric/scenario"
	"gswitch/fabric/vnet"
	"gswitch/frame"
	records "gswitch/replay"
)

// RecordKind is the kind in the header of a run's record.
const RecordKind = "run"

// recorded is the document in the header of a record: all that a run is made from.
type recorded struct {
	File     string `json:"file"`
	Scenario string `json:"scenario"`
	Seed     uint64 `json:"seed"`
}

// record opens the file to which a run on real frames is recorded. It returns nil if the
// run is not recorded.
func (h *host) record(s *scenario.Scenario, r *scenario.Run) (*live.Record, error) {
	unrecorded := slices.ContainsFunc(observe.Of(r.Doc), func(s *observe.System) bool { return s.Unrecorded })
	if h.o.Out == "" || h.o.Watch != nil || unrecorded {
		if !h.o.Record {
			return nil, nil
		}
		return nil, fmt.Errorf("run %q cannot be recorded: it needs a directory of results, no viewer meanwhile, and nodes without clocks of their own", label(r))
	}
	document, err := r.Alone()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(&recorded{s.File, string(document), r.Seed})
	if err != nil {
		return nil, err
	}
	return &live.Record{File: filepath.Join(h.o.Out, "records", recordName(r)), Must: h.o.Record,
		Header: records.Header{Build: h.o.Version, Go: runtime.Version(), Kind: RecordKind, Name: label(r), Document: string(text)}}, nil
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9._=-]+`)

// recordName returns the file name of a run's record.
func recordName(r *scenario.Run) string {
	return notInNames.ReplaceAllString(fmt.Sprintf("%s-seed-%d", r.Name, r.Seed), "_") + ".grec"
}

// noteRecord reports the record in the results of its run.
func (h *host) noteRecord(rec *live.Record, n *vnet.Network, out *results.Run) {
	e, ok := n.Engine.(*live.Engine)
	if !ok || rec == nil {
		return
	}
	switch err := e.Recorded(); {
	case errors.Is(err, live.ErrSeveral):
	case err != nil:
		out.Record = rec.File
		out.Warnings = append(out.Warnings, "the record is not whole: "+err.Error())
	default:
		out.Record = rec.File
	}
}

// keepRecords removes the records of a scenario if there is no reason to examine them:
// every expectation holds and every run kept time. Records that were asked for stay.
func (h *host) keepRecords(f *results.File) error {
	if h.o.Record || !h.real() {
		return nil
	}
	failed := false
	count := func(v []results.Check) {
		for _, c := range v {
			failed = failed || !c.OK
		}
	}
	count(f.Checks)
	for i := range f.Runs {
		count(f.Runs[i].Checks)
		failed = failed || f.Runs[i].Timing != nil && !f.Runs[i].Timing.Valid
	}
	var errs []error
	for i := range f.Runs {
		if r := &f.Runs[i]; !failed && r.Record != "" {
			errs = append(errs, os.Remove(r.Record))
			r.Record = ""
		}
	}
	return errors.Join(errs...)
}

// scenarioOf reads the scenario in the header of a record and applies other settings.
func scenarioOf(h *records.Header, set []string) (*scenario.Scenario, error) {
	var doc recorded
	if err := json.Unmarshal([]byte(h.Document), &doc); err != nil {
		return nil, fmt.Errorf("the document of the record: %w", err)
	}
	return scenario.Parse(doc.File, []byte(doc.Scenario), scenario.Options{Seeds: []uint64{doc.Seed}, Set: set})
}

// Replay is a repetition of a run from its record.
type Replay struct {
	// At, if not nil, is called at the instants of Instants, which must ascend. The run
	// ends at the last one.
	At       func(n *vnet.Network, now frame.Time) error
	Instants []frame.Time

	// Built, if not nil, is called when the network has been built, before the first
	// step.
	Built func(n *vnet.Network, p *records.NetworkPlayer) error

	Result *results.Run // nil if the run did not reach its end
	Player *records.NetworkPlayer
	Cut    error // why the record ends before the run; nil if it is complete
}

// Again repeats the run of a record. An error of type *replay.Diverged says that the
// repetition sent something else than the record.
func (x *Replay) Again(ctx context.Context, in *records.Reader) error {
	if in.Header.Kind != RecordKind {
		return fmt.Errorf("this is the record of a %s, not of a run", in.Header.Kind)
	}
	s, err := scenarioOf(&in.Header, nil)
	if err != nil {
		return err
	}
	var e *live.Again
	h := &host{o: &Options{Version: in.Header.Build, On: Netns}}
	h.again = live.Replayer(in, func(a *live.Again) { e = a })
	h.built = func(n *vnet.Network) {
		x.Player = e.Player()
		if x.Built != nil {
			if err := x.Built(n, x.Player); err != nil {
				e.Stop(err)
			}
		}
		if x.At != nil {
			next := 0
			e.StopAt(x.Instants[0], func(now frame.Time) (frame.Time, error) {
				if next++; next < len(x.Instants) {
					return x.Instants[next], x.At(n, now)
				}
				return frame.Never, x.At(n, now)
			})
		}
	}
	x.Result, err = one(ctx, s, &s.Runs[0], h, new(progress))
	if e != nil {
		x.Cut = e.Cut()
	}
	if errors.Is(err, live.ErrStopAt) {
		err = nil
	}
	return err
}
