package gfabric

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"gswitch/control/cli"
	"gswitch/fabric/ns3"
	"gswitch/frame"
	"gswitch/section"
	"gswitch/table"
	"gswitch/wholefile"
)

// ns3Flags are the flags of gfabric ns3.
type ns3Flags struct {
	topology, flows, algorithm, fct string
	cpuProfile                      string
	seed                            uint64
	until                           time.Duration
	asJSON                          bool
}

func ns3Command() *cobra.Command {
	var f ns3Flags
	c := &cobra.Command{
		Use:   "ns3 --topology FILE --flows FILE --cc NAME",
		Short: "Run topology and flow files of HPCC's ns-3 simulator in virtual time",
		Long: "Reads the topology and flow files that HPCC's authors published with their ns-3\n" +
			"simulator, runs them in virtual time over gswitches and host NICs that are set up\n" +
			"as that simulator is (frame sizes, buffers, marking, recovery, rounding), and\n" +
			"writes completion times in its format:\n\n" +
			"  source destination sport dport bytes start completion alone\n\n" +
			"with addresses in hexadecimal and times in nanoseconds.\n\n" +
			"Exit code 0 means that all flows ended, 1 that some did not.",
		Example: "  gfabric ns3 --topology fat.topo --flows web.flow --cc hpcc --fct web.fct\n" +
			"  gfabric ns3 --topology a.topo --flows a.flow --cc dcqcn --json | jq .slow_p99",
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c.Context()) },
	}
	c.Flags().StringVar(&f.topology, "topology", "", "topology file")
	c.Flags().StringVar(&f.flows, "flows", "", "flow file")
	c.Flags().StringVar(&f.algorithm, "cc", "hpcc", "congestion control: "+strings.Join(ns3.Algorithms, ", "))
	c.Flags().StringVar(&f.fct, "fct", "", "write completion times to this file")
	c.Flags().BoolVar(&f.asJSON, "json", false, "write the summary as JSON")
	c.Flags().Uint64Var(&f.seed, "seed", 1, "of random choices: which frames are marked")
	c.Flags().DurationVar(&f.until, "until", 0, "virtual time at which flows that have not ended are abandoned; 4s, or 2s after the last start, if left out")
	c.Flags().StringVar(&f.cpuProfile, "cpuprofile", "", "write a CPU profile of the run to this file")
	return c
}

func (f *ns3Flags) run(ctx context.Context) error {
	switch {
	case f.topology == "" || f.flows == "":
		return usagef("name the two files: --topology FILE --flows FILE")
	case f.until < 0:
		return usagef("--until: %v is negative", f.until)
	}
	topology, flows, err := f.load()
	if err != nil {
		return mistake(err)
	}
	// What is written must be possible before the run, not only after it.
	out, err := f.create(f.fct)
	if err != nil {
		return err
	}
	defer out.Discard() // of a run that ends with nothing
	stop, err := f.profile()
	if err != nil {
		return err
	}
	o := ns3.Options{Algorithm: f.algorithm, Seed: f.seed, Until: frame.Time(f.until)}
	if isTerminal(os.Stderr) {
		o.Progress = showNS3
	}
	r, err := ns3.Run(ctx, topology, flows, o)
	if o.Progress != nil {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
	if e := stop(); err == nil {
		err = e
	}
	if r == nil {
		return mistake(err)
	}
	return f.finish(r, out, err)
}

// maxFlows is the most bytes of a list of flows, eight million or so.
const maxFlows = 256 << 20

func (f *ns3Flags) load() (*ns3.Topology, []ns3.Flow, error) {
	text, err := wholefile.Read(f.topology, section.MaxDocument)
	if err != nil {
		return nil, nil, fmt.Errorf("--topology: %w", err)
	}
	t, err := ns3.ParseTopology(f.topology, text)
	if err != nil {
		return nil, nil, err
	}
	if text, err = wholefile.Read(f.flows, maxFlows); err != nil {
		return nil, nil, fmt.Errorf("--flows: %w", err)
	}
	flows, err := ns3.ParseFlows(f.flows, text, t)
	return t, flows, err
}

// create opens a file to write, none where it has no name.
func (f *ns3Flags) create(name string) (*wholefile.File, error) {
	if name == "" {
		return nil, nil
	}
	return wholefile.Create(name, 0o666)
}

// profile starts the CPU profile and returns what ends it.
func (f *ns3Flags) profile() (stop func() error, err error) {
	w, err := f.create(f.cpuProfile)
	if w == nil {
		return func() error { return nil }, err
	}
	if err := pprof.StartCPUProfile(w); err != nil {
		return nil, err
	}
	return func() error {
		pprof.StopCPUProfile()
		return w.Close(nil)
	}, nil
}

// finish writes what the run came to; failed is why it did not come to its end.
func (f *ns3Flags) finish(r *ns3.Result, out *wholefile.File, failed error) error {
	if out != nil {
		if err := out.Close(ns3.WriteFCT(out, r.Flows)); err != nil {
			return err
		}
	}
	report := r.Report(f.algorithm, f.seed)
	var err error
	if f.asJSON {
		err = writeJSON(report)
	} else {
		err = writeNS3(&stdout, &report)
	}
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return err
	case r.Unfinished > 0:
		return fmt.Errorf("%d of %d flows had not ended when the time was up; give more by --until", r.Unfinished, r.Offered)
	}
	return nil
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// showNS3 overwrites a line of progress.
func showNS3(p ns3.Progress) {
	left := "?"
	if p.Left > 0 {
		left = p.Left.Round(time.Second).String()
	}
	fmt.Fprintf(os.Stderr, "\r\x1b[K%.6f s  %d of %d flows ended  %.2f million events/s  %s left",
		p.Now.Seconds(), p.Finished, p.Flows, float64(p.Events)/p.Wall.Seconds()/1e6, left)
}

func writeNS3(w io.Writer, r *ns3.Report) error {
	t := table.New("slowdown", "flows", "mean", "p50", "p95", "p99")
	row := func(label string, b ns3.Band) {
		t.Rowf("%s\t%d\t%.3f\t%.3f\t%.3f\t%.3f", label, b.N, b.Mean, b.P50, b.P95, b.P99)
	}
	row("all", ns3.Band{N: r.Flows, Mean: r.SlowMean, P50: r.SlowP50, P95: r.SlowP95, P99: r.SlowP99})
	for _, b := range r.Bands {
		row(b.Label, b)
	}
	sum := table.New()
	sum.Rowf("last finish\t%.3f us", r.LastFinishUS)
	sum.Row("unfinished", r.Unfinished)
	sum.Row("PFC events", r.PFCEvents)
	sum.Row("drops", r.Drops)
	for _, d := range r.DropReasons {
		sum.Rowf("  %s\t%d", d.Reason, d.Frames)
	}
	sum.Row("sent again", r.Retransmitted)
	sum.Rowf("wall time\t%.3f s", r.WallS)
	sum.Rowf("frame hops\t%d (%.2f million/s)", r.FrameHops, r.FrameHopsPerS/1e6)
	sum.Row("events", r.Events)
	sum.Row("digest", r.Digest)
	if err := t.Print(w); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return sum.Print(w)
}
