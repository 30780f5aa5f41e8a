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

// Options configure the execution of a scenario.
type Options struct {
	Version  string    // of the program, for results
	Program  string    // identifies the build: results of another build are not reused
	Jobs     int       // number of parallel runs; 0: as many as there are processors
	Cores    int       // that step each run in virtual time, at least one; they do not change the result
	Out      string    // directory of results, "" for none
	Fresh    bool      // execute again the runs whose results are in the directory
	Progress io.Writer // nil: none

	// Part, if not nil, returns the core that steps a node, modulo Cores.
	Part func(node int) int

	// Record keeps the records of all runs on real frames in Out, and rejects runs that
	// cannot be recorded. Without it, only records that are worth examining are kept:
	// those of scenarios in which an expectation fails or a run did not keep time.
	Record bool

	// On is the engine: Sim (or "") for virtual time, Netns for real frames over
	// Live.Wires, Wire for real time within the process. Runs in real time are executed
	// one after the other.
	On   string
	Live Live

	// Pauses is the number of pauses that each switch keeps, 0 for none. With it, results
	// say which port paused which.
	Pauses int

	// Elsewhere, if not nil, executes the runs in virtual time in place of this process,
	// all at once. If a run fails it is left out and the others continue.
	Elsewhere Elsewhere

	// Watch, if not nil, is called when a run starts. Pace limits virtual time to that
	// many seconds per real second.
	Watch func(view.Source)
	Pace  float64
}

// Live configures runs on real frames.
type Live struct {
	// Wires creates the veth pairs of a topology. Runs of the same topology share them.
	Wires func(ctx context.Context, p *fabric.Plan) (Wires, error)
	// Dilation is how many real nanoseconds one nanosecond of the nodes takes. 0 = the
	// scale of the scenario, or 1000 if it names none.
	Dilation int64
	Bound    frame.Time // see live.Config, also for the fields below
	Workers  int
	Poll     dataplane.PollMode
	CPUs     []int
	Logger   *slog.Logger

	// Division says which nodes have processes of their own, on Netns only. Start starts
	// each; it gets the name of the process and a variable for its environment.
	Division live.Division
	Start    func(name, env string) (*Process, error)
}

// Wires are created for some runs and then closed.
type Wires interface {
	live.Wires
	// Env is a variable in the environment of processes that use the wires. The processes
	// are found by it when the wires are removed.
	Env() string
	Close() error
}

// Scenario executes all runs of s and evaluates its expectations. It does not repeat runs
// whose results are in the directory already, from the same program with the same
// settings and seed. If it is interrupted, the directory holds what is finished, and the
// error is that of ctx.
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

// DefaultJobs returns how many runs the machine can execute in parallel.
func DefaultJobs() int { return runtime.GOMAXPROCS(0) }

// execute executes the outstanding runs, up to jobs at a time.
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

// label names a run in messages.
func label(r *scenario.Run) string { return fmt.Sprintf("%s (seed %d)", r.Name, r.Seed) }
