package gfabric

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gswitch/control/cli"
	"gswitch/fabric"
	"gswitch/fabric/traces"
	"gswitch/frame"
	"gswitch/table"
)

// copiesFlags say which copies are read, and of which network.
type copiesFlags struct {
	fabric string
	run    string
	filter string
	limit  int
	json   bool
}

func (f *copiesFlags) add(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.fabric, "fabric", "", "the network that the copies are of: a file, or a generator such as leaf-spine:2,4,2; results of a run have it")
	fl.StringVar(&f.run, "run", "", "of a directory with several runs, the one whose name begins with this")
	fl.StringVar(&f.filter, "filter", "", "only packets that this is true of, such as 'tcp.port == 80 && switch == leaf1 && delay > 1ms'")
	fl.IntVarP(&f.limit, "limit", "n", 30, "most rows, 0 is all")
	fl.BoolVar(&f.json, "json", false, "print JSON")
}

// book reads the copies of a file or of a directory of results.
func (f *copiesFlags) book(name string) (*traces.Book, error) {
	files, err := traces.Files(name)
	if err != nil {
		return nil, err
	}
	if f.run != "" {
		files = slices.DeleteFunc(files, func(s string) bool { return !strings.HasPrefix(filepath.Base(s), f.run) })
	}
	if len(files) != 1 {
		var names []string
		for _, s := range files {
			names = append(names, strings.TrimSuffix(filepath.Base(s), ".pcapng"))
		}
		return nil, usagef("%s has the copies of %d such runs: choose one of %s with --run", name, len(files), strings.Join(names, ", "))
	}
	var t *fabric.Topology
	if f.fabric != "" {
		t, err = fabric.Load(f.fabric, fabric.Spec{})
	} else {
		t, err = traces.Network(files[0])
	}
	if err != nil {
		return nil, err
	}
	b, err := traces.Read(files, t)
	if err != nil || f.filter == "" {
		return b, err
	}
	if err := b.Choose(f.filter); err != nil {
		return nil, cli.Usage(err)
	}
	return b, nil
}

// rows cuts a list to what is to be printed, and reports the rest.
func rows[T any](limit int, v []T) (shown []T, rest int) {
	if limit > 0 && len(v) > limit {
		return v[:limit], len(v) - limit
	}
	return v, 0
}

func printRest(w io.Writer, rest int) {
	if rest > 0 {
		fmt.Fprintf(w, "and %d more (-n 0 prints all)\n", rest)
	}
}

const copiesHelp = "The copies are those of mirror sessions (watch in a switch's document, switch.watch in a\n" +
	"scenario), in a file of tcpdump, Wireshark or gswitch capture, or in the results of a run with\n" +
	"measure.traces. Names, and who should have seen a packet next, come from the network:\n" +
	"results have it, files of captures need --fabric.\n\n" +
	"--filter compares fields of the packets' innermost headers, of their hops, and of what\n" +
	"became of them, by == != < <= > >= and joins comparisons by && || ! and ( ). A field that\n" +
	"differs from hop to hop is asked of all of them."

func tracesCommand() *cobra.Command {
	var f copiesFlags
	var only, of string
	c := &cobra.Command{
		Use:   "traces FILE|DIR",
		Short: "Show the paths of packets, from the copies that switches made of them (Everflow)",
		Long:  "traces prints the switches that each packet came by, and what became of it.\n\n" + copiesHelp,
		Example: "  gfabric run scenarios/everflow/drops.yaml\n" +
			"  gfabric traces results/drops --run silent-1\n" +
			"  gfabric traces copies.pcap --fabric leaf-spine:2,4,2 --only lost\n" +
			"  gfabric traces copies.pcap --flow 10.0.1.2 --json\n" +
			"  gfabric traces copies.pcap --filter 'switch == spine1 && lost'",
		Args: one("a file of copies, or a directory of results"),
		RunE: func(c *cobra.Command, args []string) error {
			if only != "" && !slices.Contains(traces.Kinds, traces.Kind(only)) {
				return usagef("--only %s: there are %v", only, traces.Kinds)
			}
			b, err := f.book(args[0])
			if err != nil {
				return err
			}
			v := slices.DeleteFunc(b.Verdicts(), func(v traces.Verdict) bool {
				return only != "" && v.Kind != traces.Kind(only) || !strings.Contains(v.Flow, of)
			})
			return f.traces(c.OutOrStdout(), b, v)
		},
	}
	f.add(c)
	c.Flags().StringVar(&only, "only", "", "only packets that were delivered, dropped, lost or looped")
	c.Flags().StringVar(&of, "flow", "", "only packets of flows whose line contains this, such as an address")
	return c
}

func (f *copiesFlags) traces(w io.Writer, b *traces.Book, v []traces.Verdict) error {
	if f.json {
		return printJSON(w, v)
	}
	shown, rest := rows(f.limit, v)
	t := table.New("TIME", "FLOW", ">ID", "PATH", ">TOOK", "WHAT BECAME OF IT")
	for i := range shown {
		x := &shown[i]
		t.Row(x.First.Duration(), x.Flow, x.ID, strings.Join(shorten(x.Path), " "), x.Delay.Duration(), became(x))
	}
	t.Print(w)
	printRest(w, rest)
	f.foot(w, b)
	return nil
}

// foot says how many copies there are, and how many are missing: packets of which these are
// seem to be lost where they may not be.
func (f *copiesFlags) foot(w io.Writer, b *traces.Book) {
	if f.json {
		return
	}
	fmt.Fprintf(w, "%d copies of %d packets", b.Copies, len(b.Done))
	if b.Lost > 0 {
		fmt.Fprintf(w, "; %d copies are missing by their numbers", b.Lost)
	}
	if b.Cut > 0 {
		fmt.Fprintf(w, "; %d end within telemetry, apart from others of their packet: give the session a longer snap", b.Cut)
	}
	fmt.Fprintln(w)
}

// shorten cuts the path of a loop.
func shorten(path []string) []string {
	if len(path) <= 10 {
		return path
	}
	return append(slices.Clone(path[:8]), fmt.Sprintf("... %d more", len(path)-8))
}

// became says what became of a packet.
func became(v *traces.Verdict) string {
	s := string(v.Kind)
	switch v.Kind {
	case traces.Dropped:
		s += fmt.Sprintf(" by %s: %s", v.At, v.Reason)
	case traces.Lost:
		s += " behind " + v.At
		if len(v.Next) > 0 {
			s += ", towards " + strings.Join(v.Next, " or ")
		}
	case traces.Looped:
		s += " at " + strings.Join(v.Loop, " ")
	}
	if v.Missing > 0 {
		s += fmt.Sprintf(" (%d copies are missing)", v.Missing)
	}
	return s
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func whyCommand() *cobra.Command {
	c := cli.Group("why", "Find where packets are lost, loop, wait, or take one path of several (Everflow)",
		"  gfabric why drops results/drops --run silent-1\n  gfabric why slow copies.pcap --fabric leaf-spine:2,4,2")
	c.Long = "why answers questions about a network from the traces of packets (Everflow).\n\n" + copiesHelp
	for _, q := range questions {
		var f copiesFlags
		sub := &cobra.Command{Use: q.name + " FILE|DIR", Short: q.short, Long: q.long + "\n\n" + copiesHelp, Example: "  gfabric why " + q.name + " " + q.results,
			Args: one("a file of copies, or a directory of results"),
			RunE: func(c *cobra.Command, args []string) error {
				b, err := f.book(args[0])
				if err != nil {
					return err
				}
				return q.answer(&f, c.OutOrStdout(), b)
			}}
		f.add(sub)
		c.AddCommand(sub)
	}
	return c
}

// questions are what why answers.
var questions = []struct {
	name, short, long string
	results           string // of a scenario that has something to show
	answer            func(f *copiesFlags, w io.Writer, b *traces.Book) error
}{
	{"drops", "Where packets are lost", "A switch that drops says so where its session has drops. Of a packet that is gone silently the hop behind the last that\nsaw it is suspected; where there are several, each with its share. One lost packet is no proof: copies\nare lost, too; the last line says how many are missing, and gfabric probe sends such packets again.", "results/drops --run silent-1", whyDrops},
	{"loops", "Which switches packets come to again", "A packet that comes to a switch again with another time to live loops; before and behind a load balancer it\nmay meet a switch twice.", "results/loops --run loop-1", whyLoops},
	{"slow", "Which links packets take long for", "Times are from the arrival at one switch to that at the next: waiting, transmission and propagation. They compare the\nclocks of two switches, which must agree.", "results/slow --run slow-1", whySlow},
	{"uneven", "Which of several next hops packets take", "Of each switch the links to others, with how many of the traced packets took them.", "results/uneven --run uneven-1", whyUneven},
	{"pfc", "Which port paused which", "Pauses as switches saw them come, and, with own_pauses, as they sent them, the port with most of them first.", "results/pauses --run storm-1", whyPFC},
	{"probes", "What became of probes", "Of each series of gfabric probe, or of the probes of a scenario: how many came to their end, behind which switches the\nothers were seen last, and, of those that come back to a switch, how long that takes.", "results/probes --run silent-1", whyProbes},
}

// printWhy prints the answer: in JSON, or as a table of the first rows, or what none
// says where there are none.
func printWhy[T any](f *copiesFlags, w io.Writer, v []T, none string, columns []string, row func(e T) []any) error {
	if f.json {
		return printJSON(w, v)
	}
	if len(v) == 0 && none != "" {
		fmt.Fprintln(w, none)
		return nil
	}
	shown, rest := rows(f.limit, v)
	t := table.New(columns...)
	for _, e := range shown {
		t.Row(row(e)...)
	}
	t.Print(w)
	printRest(w, rest)
	return nil
}

func whyDrops(f *copiesFlags, w io.Writer, b *traces.Book) error {
	defer f.foot(w, b)
	return printWhy(f, w, b.Suspects(), fmt.Sprintf("none of %d packets was lost", len(b.Done)),
		[]string{"SUSPECT", "REASON", ">PACKETS", "SEEN LAST AT", ">DESTINATIONS", "SUCH AS"}, func(s traces.Suspect) []any {
			return []any{s.Name, cmp.Or(s.Reason, "silently"), fmt.Sprintf("%.4g", s.Traces), strings.Join(s.After, " "), s.To, s.Flow}
		})
}

func whyLoops(f *copiesFlags, w io.Writer, b *traces.Book) error {
	return printWhy(f, w, b.Circles(), fmt.Sprintf("none of %d packets looped", len(b.Done)),
		[]string{"SWITCHES", ">PACKETS", ">VISITS", "SUCH AS"}, func(c traces.Circle) []any {
			return []any{strings.Join(c.Switches, " "), c.Traces, fmt.Sprintf("%.1f", c.Visits), c.Flow}
		})
}

func whySlow(f *copiesFlags, w io.Writer, b *traces.Book) error {
	return printWhy(f, w, b.Links(), "", []string{"LINK", ">PACKETS", ">MEAN", ">MAX", ">MAX BEYOND LEAST"}, func(l traces.Link) []any {
		return []any{l.From + ":" + l.To, l.Packets, l.Mean.Duration(), l.Max.Duration(), l.Spread.Duration()}
	})
}

func whyUneven(f *copiesFlags, w io.Writer, b *traces.Book) error {
	return printWhy(f, w, b.Shares(), "", []string{"SWITCH", ">WAYS", ">PACKETS", ">MOST / MEAN", "MOST TAKEN", "LEAST TAKEN"}, func(s traces.Share) []any {
		return []any{s.Switch, s.Ways, s.Packets, fmt.Sprintf("%.2f", s.Ratio), s.Most, s.Least}
	})
}

func whyPFC(f *copiesFlags, w io.Writer, b *traces.Book) error {
	return printWhy(f, w, b.Pausers(), "no pause was seen: sessions with everflow see those that come, with own_pauses those that switches send",
		[]string{"WHO PAUSES", "WHOM", ">PAUSES", ">RESUMES", "FIRST", "LAST"}, func(p traces.Pauser) []any {
			return []any{p.Who, p.Whom, p.Pauses, p.Resumes, frame.Time(p.First).Duration(), frame.Time(p.Last).Duration()}
		})
}

func whyProbes(f *copiesFlags, w io.Writer, b *traces.Book) error {
	defer f.foot(w, b)
	return printWhy(f, w, b.Probes(), fmt.Sprintf("none of %d packets is a probe", len(b.Done)),
		[]string{">SERIES", "FLOW", "BY", ">SENT", ">LOST", "SEEN LAST AT", ">ROUND TRIP", ">MAX"}, func(s traces.Series) []any {
			mean, most := "-", "-"
			if s.RoundTrips > 0 {
				mean, most = s.Mean.Duration().String(), s.Max.Duration().String()
			}
			return []any{s.ID, s.Flow, s.Path, s.Sent, s.Lost, strings.Join(s.At, " "), mean, most}
		})
}
