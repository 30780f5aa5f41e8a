package gfabric

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gswitch/dataplane"
	"gswitch/fabric"
	"gswitch/fabric/lab"
	"gswitch/fabric/live"
	"gswitch/fabric/results"
	runner "gswitch/fabric/run"
	"gswitch/fabric/scenario"
	"gswitch/frame"
)

// largestScale is that of the scenario's key.
const largestScale = 1_000_000

// liveFlags say how runs on real frames are made.
type liveFlags struct {
	scale   int
	poll    string
	workers int
	cpus    []int
	bound   time.Duration
	divide  string
}

func (f *liveFlags) add(c *cobra.Command, scale bool) {
	if scale {
		c.Flags().IntVar(&f.scale, "scale", 0, "on real frames: rates are divided and times multiplied by it; that of the scenario, or else what gfabric fit recommends, if left out")
	}
	c.Flags().StringVar(&f.poll, "poll", "sleep", "on real frames: poll mode of the workers: sleep (before all other programs), adaptive or spin")
	c.Flags().IntVar(&f.workers, "workers", 0, "on real frames: threads that step nodes, the first has all hosts; with --processes hosts, those of the switches; as the processors suggest if left out")
	c.Flags().IntSliceVar(&f.cpus, "cpus", nil, "on real frames: processors to pin the workers to, such as 2,3; if left out not pinned, or with --processes hosts or each where there are more than two, to one each as far as they go")
	c.Flags().StringVar(&f.divide, "processes", "one", "on real frames: which nodes have a process of their own: one (none, all nodes are in one), hosts (each host; all switches are in one) or each (each host and each switch)")
	c.Flags().DurationVar(&f.bound, "late-bound", 0, "on real frames: 99th percentile of lateness, in the time of the nodes, up to which a run is valid; a quarter of T if left out")
}

// unused says which option for real frames is given to a run in virtual time.
func unused(c *cobra.Command) error {
	for _, name := range []string{"scale", "poll", "workers", "cpus", "processes", "late-bound"} {
		if c.Flags().Changed(name) {
			return usagef("--%s is about real frames: add --on netns", name)
		}
	}
	return nil
}

// live returns the options of runs on real frames, but for the scale.
func (f *liveFlags) live(s *scenario.Scenario) (l runner.Live, err error) {
	if f.scale < 0 || f.scale > largestScale {
		return l, usagef("--scale: %d is not from 1 to %d", f.scale, largestScale)
	}
	if f.workers < 0 || f.workers > 64 {
		return l, usagef("--workers: %d is not from 1 to 64", f.workers)
	}
	if f.bound < 0 {
		return l, usagef("--late-bound: %v is negative", f.bound)
	}
	if l.Poll, err = dataplane.ParsePollMode(f.poll); err != nil {
		return l, usagef("--poll: %w", err)
	}
	if l.Division, err = live.ParseDivision(f.divide); err != nil {
		return l, usagef("--processes: %w", err)
	}
	l.Start = startNode
	if os.Geteuid() != 0 {
		return l, errors.New("real frames need root, for network namespaces and AF_XDP sockets: run it with sudo; gfabric run --on sim needs none")
	}
	l.Workers, l.CPUs, l.Bound = f.workers, f.cpus, frame.Time(f.bound)
	name := wiresName(s.Doc.Name)
	l.Wires = func(ctx context.Context, p *fabric.Plan) (runner.Wires, error) {
		// What the lab knows them by says which scenario they are for.
		t, own := *p.Topology, *p
		t.Name, own.Topology = name, &t
		return lab.RaiseWires(ctx, &own, say)
	}
	return l, nil
}

// onNetns runs a scenario on real frames, before everything else on the machine.
func onNetns(ctx context.Context, s *scenario.Scenario, o runner.Options) (*results.File, error) {
	defer lab.GoFirst()()
	return runner.Scenario(ctx, s, o)
}

// choose fills in the scale: that of the command line, of the scenario, or one
// that is found by trying.
func (f *liveFlags) choose(ctx context.Context, s *scenario.Scenario, l runner.Live) (runner.Live, error) {
	switch {
	case f.scale > 0:
		l.Dilation = int64(f.scale)
	case s.Doc.Scale > 0:
		l.Dilation = int64(s.Doc.Scale)
	default:
		say("neither --scale nor the scenario says how much slower than the nodes' time real time is: trying what this machine can do")
		r, err := search(ctx, s, l, fitPiece, say)
		if err != nil {
			return l, err
		}
		if r.Scale == 0 {
			return l, fmt.Errorf("no scale up to %d lets this machine keep time: %s", largestScale, strings.Join(r.Tries[len(r.Tries)-1].Why, "; "))
		}
		say("scale %d (the smallest that kept time is %d; --scale %d next time saves the search)", r.Use, r.Scale, r.Use)
		l.Dilation = int64(r.Use)
	}
	return l, nil
}

// wiresName is what the lab calls the wires of a scenario: as much of its name
// as fits (fabric.CheckName).
func wiresName(scenario string) string {
	name := strings.ToLower(results.FileName("run-" + scenario))
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, name)
	if len(name) > 32 {
		name = name[:32]
	}
	return strings.Trim(name, "-")
}

// invalidError says that runs on real frames did not keep time: there is no
// result.
type invalidError struct{ error }

func (e invalidError) Unwrap() error { return e.error }

// kept is an error if a run did not keep time.
func kept(f *results.File) error {
	var bad []string
	for i := range f.Runs {
		if t := f.Runs[i].Timing; t != nil && !t.Valid {
			bad = append(bad, f.Runs[i].Name)
		}
	}
	if bad == nil {
		return nil
	}
	return invalidError{fmt.Errorf("%d of %d runs are INVALID, they did not keep time: %s; take a larger --scale (gfabric fit finds one), and nothing else on the machine", len(bad), len(f.Runs), strings.Join(bad, ", "))}
}
