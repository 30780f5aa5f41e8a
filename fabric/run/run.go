package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"sync"

	"gswitch/dataplane"
	"gswitch/fabric"
	"gswitch/fabric/live"
	"gswitch/fabric/results"
	"gswitch/fabric/scenario"
	"gswitch/fabric/view"
	"gswitch/frame"
)

// Options say how a scenario is run.
type Options struct {
	Version  string    // of the program, for results
	Program  string    // names the very build: results of another are not taken over
	Jobs     int       // runs side by side; 0: as many as there are processors
	Cores    int       // that step each run in virtual time, at least one. What comes out is the same
	Out      string    // directory of results, "" for none
	Fresh    bool      // run what the directory has results of again, too
	Progress io.Writer // nil: none

	// Part, if not nil, says which core steps a node, modulo Cores.
	Part func(node int) int

	// Record keeps the records of all runs on real frames, in Out, and refuses those that
	// cannot be recorded. Else those are kept that are worth looking into: where an
	// expectation does not hold, or a run did not keep time.
	Record bool

	// On is the engine: Sim (or "") for virtual time, Netns for real frames over
	// Live.Wires, Wire for real time within the process. In real time runs go
	// one after the other.
	On   string
	Live Live

	// Pauses is how many pauses each switch keeps, 0 for none: results then
	// say which port paused which.
	Pauses int

	// Elsewhere, if not nil, executes the runs in virtual time in place of this
	// process, all at once. One that fails is left out, and the others go on.
	Elsewhere Elsewhere

	// Watch, if not nil, is called for each run when it starts. With Pace, virtual
	// time then goes by no faster than so many seconds in a real one.
	Watch func(view.Source)
	Pace  float64
}

// Live says how runs on real frames are made.
type Live struct {
	// Wires raises the veth pairs of a topology; runs of the same topology
	// share them.
	Wires func(ctx context.Context, p *fabric.Plan) (Wires, error)
	// Dilation is how many real nanoseconds the nodes take for one; 0 = the
	// scale of the scenario, or 1000 if it names none.
	Dilation int64
	Bound    frame.Time // see live.Config, as what follows
	Workers  int
	Poll     dataplane.PollMode
	CPUs     []int
	Logger   *slog.Logger

	// Division says which nodes have processes of their own, on Netns only; each
	// is started by Start, which gets its name and a variable for its
	// environment.
	Division live.Division
	Start    func(name, env string) (*Process, error)
}

// Wires are raised for some runs and then closed.
type Wires interface {
	live.Wires
	// Env is what processes on them have in their environment, by which they are
	// found when the wires are removed.
	Env() string
	Close() error
}

// Scenario executes all runs of s and evaluates its expectations. Runs that
// the directory of results holds already, from the same program with the same
// settings and seed, are not executed again. If it is interrupted, what is
// finished is in the directory, and the error is that of ctx.
func Scenario(ctx context.Context, s *scenario.Scenario, o Options) (*results.File, error) {
	h := &host{o: &o}
	if err := h.check(s); err != nil {
		return nil, err
	}
	st, err := newStore(s, &o, h)
	if err != nil {
		return nil, err
	}
	var todo []int
	var bars []*progress
	for i := range s.Runs {
		if st.runs[i] == nil {
			todo = append(todo, i)
			bars = append(bars, &progress{name: label(&s.Runs[i]), end: frame.Time(s.Runs[i].Doc.Duration), open: s.Runs[i].Doc.Until == "done"})
		}
	}
	if k := len(s.Runs) - len(todo); k > 0 && o.Progress != nil {
		fmt.Fprintf(o.Progress, "%d of %d runs are in %s already\n", k, len(s.Runs), o.Out)
	}
	rep := newReporter(o.Progress, bars)
	jobs := max(1, o.Jobs)
	if h.real() {
		jobs = 1
	}
	if o.Elsewhere != nil {
		jobs = len(todo)
	}
	err = st.execute(ctx, todo, bars, jobs)
	err = errors.Join(err, h.close())
	rep.close()
	if err != nil && (o.Elsewhere == nil || ctx.Err() != nil) {
		return nil, err
	}
	f := st.file()
	err = errors.Join(err, h.keepRecords(f))
	return f, errors.Join(st.save(f), err)
}

// DefaultJobs is how many runs fit the machine side by side.
func DefaultJobs() int { return runtime.GOMAXPROCS(0) }

// execute runs those that are to be done, some at a time.
func (st *store) execute(ctx context.Context, todo []int, bars []*progress, jobs int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		mu    sync.Mutex
		next  int
		errs  []error
		group sync.WaitGroup
	)
	for range min(jobs, len(todo)) {
		group.Go(func() {
			for {
				mu.Lock()
				k := next
				next++
				mu.Unlock()
				if k >= len(todo) || ctx.Err() != nil {
					return
				}
				run := &st.s.Runs[todo[k]]
				out, err := st.do(ctx, todo[k], bars[k])
				bars[k].state.Store(finished)
				mu.Lock()
				if err == nil {
					st.runs[todo[k]] = out
					err = st.save(st.file())
				}
				if err != nil && !errors.Is(err, context.Canceled) {
					errs = append(errs, fmt.Errorf("run %q: %w", label(run), err))
					if st.o.Elsewhere == nil {
						cancel()
					}
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	return ctx.Err()
}

// do executes the i-th run.
func (st *store) do(ctx context.Context, i int, p *progress) (*results.Run, error) {
	if st.o.Elsewhere != nil {
		return st.elsewhere(ctx, i, p)
	}
	p.state.Store(running)
	return one(ctx, st.s, &st.s.Runs[i], st.h, p)
}

// label names a run for people.
func label(r *scenario.Run) string { return fmt.Sprintf("%s (seed %d)", r.Name, r.Seed) }
