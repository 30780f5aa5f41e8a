package gfabric

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"gswitch/fabric"
	"gswitch/fabric/fit"
	"gswitch/fabric/lab"
	runner "gswitch/fabric/run"
	"gswitch/fabric/scenario"
	"gswitch/units"
)

// fitPiece is how long each run of a piece may take, in real time.
const fitPiece = 2 * time.Second

func fitCommand() *cobra.Command {
	var f scenarioFlags
	var l liveFlags
	var piece time.Duration
	var asJSON, quiet bool
	c := &cobra.Command{
		Use:   "fit SCENARIO.yaml",
		Short: "Find the smallest scale at which this machine runs a scenario on real frames and keeps time",
		Long: "fit runs the first piece of each variant of a scenario on real frames, at a scale\n" +
			"that doubles until time is kept, and then bisects. It prints what it tried, and the\n" +
			"command to use. Times are those of the nodes but for the real 99th percentile.\n\n" +
			"Exit codes: 0 a scale was found, 1 none or a run failed, 2 the scenario or the\n" +
			"command line is wrong.",
		Example: "  gfabric fit scenarios/quickstart.yaml\n" +
			"  gfabric fit scenarios/agreement/incast8.yaml --only hpcc --poll spin --json",
		Args: one("a scenario, such as scenarios/quickstart.yaml"),
		RunE: func(c *cobra.Command, args []string) error {
			if piece <= 0 {
				return usagef("--piece: %v is not above zero", piece)
			}
			s, err := f.load(args[0])
			if err != nil {
				return err
			}
			o, err := l.live(s)
			if err != nil {
				return err
			}
			report := say
			if quiet {
				report = func(string, ...any) {}
			}
			r, err := search(c.Context(), s, o, piece, report)
			if err != nil {
				return err
			}
			if r.Scale > 0 {
				r.Command = fmt.Sprintf("gfabric run %s --on netns --scale %d%s", args[0], r.Use, chosen(c))
			}
			if asJSON {
				err = writeJSON(r)
			} else {
				err = r.Text(&stdout)
			}
			if err == nil && r.Scale == 0 {
				err = fmt.Errorf("no scale up to %d lets this machine keep time", largestScale)
			}
			return err
		},
	}
	f.add(c)
	l.add(c, false)
	c.Flags().DurationVar(&piece, "piece", fitPiece, "real time that a run of the piece may take")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	c.Flags().BoolVar(&quiet, "quiet", false, "no progress on standard error")
	return c
}

// chosen repeats the flags of c that run has, too.
func chosen(c *cobra.Command) string {
	var b strings.Builder
	for _, name := range []string{"short", "set", "only", "seed", "first-seed", "poll", "processes", "workers", "cpus", "late-bound"} {
		flag := c.Flags().Lookup(name)
		if flag == nil || !flag.Changed {
			continue
		}
		if many, ok := flag.Value.(interface{ GetSlice() []string }); ok {
			for _, v := range many.GetSlice() {
				fmt.Fprintf(&b, " --%s '%s'", name, v)
			}
			continue
		}
		fmt.Fprintf(&b, " --%s=%s", name, flag.Value)
	}
	return b.String()
}

// search looks for the smallest scale.
func search(ctx context.Context, s *scenario.Scenario, l runner.Live, budget time.Duration, say func(string, ...any)) (*fit.Result, error) {
	wires := sharedWires{raise: l.Wires}
	l.Wires = wires.get
	defer wires.close()
	try := func(scale int) (t fit.Try, err error) {
		l.Dilation = int64(scale)
		part := firstPiece(s, scale, budget)
		for i := range part.Runs {
			one := *part
			one.Runs = part.Runs[i : i+1]
			f, err := onNetns(ctx, &one, runner.Options{On: "netns", Live: l, Version: version, Jobs: 1})
			if err != nil {
				return t, fmt.Errorf("at scale %d: %w", scale, err)
			}
			g := f.Runs[0].Timing
			if g == nil {
				return t, fmt.Errorf("at scale %d: %s does not say how it kept time", scale, one.Runs[0].Name)
			}
			if !t.Add(one.Runs[0].Name, g) {
				break
			}
		}
		word := "kept time"
		if !t.Valid {
			word = "did not keep time"
		}
		say("scale %d: %s, p99 of lateness %v of at most %v (%s)", scale, word, roundSpan(t.LateP99), roundSpan(t.Bound), t.Run)
		return t, nil
	}
	r, err := fit.Search(startScale(s), largestScale, try)
	if r != nil {
		r.Scenario = s.Doc.Name
	}
	return r, err
}

func roundSpan(seconds float64) time.Duration {
	return time.Duration(seconds * 1e9).Round(10 * time.Nanosecond)
}

// firstPiece is the beginning of each variant of a scenario at the first point
// of its sweep with its first seed, as long as budget lasts at the scale.
func firstPiece(s *scenario.Scenario, scale int, budget time.Duration) *scenario.Scenario {
	part := *s
	part.Runs, part.Expect = nil, nil
	var seen []string
	for _, r := range s.Runs {
		if slices.Contains(seen, r.Variant) {
			continue
		}
		seen = append(seen, r.Variant)
		d := *r.Doc
		d.Duration = min(d.Duration, max(1, units.Duration(int64(budget)/int64(scale))))
		if d.Measure.Warmup >= d.Duration {
			d.Measure.Warmup = 0
		}
		d.Measure.Ideal = "computed"
		r.Doc = &d
		part.Runs = append(part.Runs, r)
	}
	return &part
}

// machineRate is what no machine forwards on veth: frames per second, each
// hop of a copy-mode AF_XDP socket taking about a microsecond of a processor.
const machineRate = 4e6

// startScale is where the search begins: below it the hosts' links alone,
// full of full frames, are more than a machine can carry.
func startScale(s *scenario.Scenario) int {
	rate := 0.0
	t := s.Runs[0].Topology
	for _, h := range t.Hosts() {
		rate += float64(t.Links[t.Nodes[h].Links[0]].Rate) / 8 / float64(max(1, s.Runs[0].Doc.Hosts.Payload))
	}
	scale := math.Exp2(math.Floor(math.Log2(max(1, rate/machineRate))))
	return int(scale)
}

// sharedWires raises the wires of a topology once for many runs.
type sharedWires struct {
	raise func(ctx context.Context, p *fabric.Plan) (runner.Wires, error)
	mu    sync.Mutex
	plan  string // the topology that is raised
	have  runner.Wires
}

func (w *sharedWires) get(ctx context.Context, p *fabric.Plan) (runner.Wires, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := fmt.Sprintf("%s %d %d", p.Topology.Name, len(p.Topology.Nodes), len(p.Topology.Links))
	if w.have != nil && w.plan == key {
		return borrowed{w.have}, nil
	}
	if w.have != nil {
		if err := w.have.Close(); err != nil {
			return nil, err
		}
		w.have = nil
	}
	have, err := w.raise(ctx, p)
	if err != nil {
		return nil, err
	}
	w.have, w.plan = have, key
	return borrowed{have}, nil
}

func (w *sharedWires) close() {
	if w.have == nil {
		return
	}
	if err := w.have.Close(); err != nil {
		say("gfabric: %v", err)
	}
}

// borrowed wires stay when their borrower closes them.
type borrowed struct{ runner.Wires }

func (borrowed) Close() error { return nil }

var _ runner.Wires = (*lab.Wires)(nil)
