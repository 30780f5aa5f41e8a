package gfabric

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gswitch/fabric/flows"
	"gswitch/fabric/results"
	"gswitch/table"
)

// flowsFlags say which flows are shown.
type flowsFlags struct {
	link, flow string
	at         time.Duration
	losses     bool
	limit      int
	json       bool
}

func flowsCommand() *cobra.Command {
	var f flowsFlags
	c := &cobra.Command{
		Use:   "flows DIR",
		Short: "Show which flows used which link, slot by slot, and which flows lost packets, were lost or loop",
		Long: "flows shows what the switches of a run counted (FlowRadar): a scenario with switch.flowradar.\n" +
			"Without a link it lists what is wrong (flows all of whose packets are lost at one place, loops) and which flows used\n" +
			"the busiest links; with one, the flows of that link, and with --at those of one slot.",
		Example: "  gfabric run scenarios/flowradar/blackhole.yaml\n" +
			"  gfabric flows results/blackhole\n" +
			"  gfabric flows results/blackhole --losses\n" +
			"  gfabric flows results/blackhole --link 'edge1>agg1' --at 50ms",
		Args: one("a directory of results, such as results/blackhole"),
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("at") && f.link == "" {
				return usagef("--at needs --link: say whose slot")
			}
			r, err := loadResults(args[0])
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(r.Runs, func(r results.Run) bool { return flows.Reported.Of(&r) != nil }) {
				return inputf("%s: no run counted flows: set switch.flowradar.enabled in the scenario", args[0])
			}
			if c.Flags().Changed("at") {
				return f.slot(c.OutOrStdout(), args[0], r)
			}
			return f.show(c.OutOrStdout(), r)
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.link, "link", "", "only this link, such as s1>s2")
	fl.StringVar(&f.flow, "flow", "", "only flows whose line contains this, such as an address")
	fl.DurationVar(&f.at, "at", 0, "the slot at this time, such as 50ms")
	fl.BoolVar(&f.losses, "losses", false, "lost packets by flow and place")
	fl.IntVarP(&f.limit, "limit", "n", 20, "most rows of a table, 0 is all")
	fl.BoolVar(&f.json, "json", false, "print JSON")
	return c
}

func (f *flowsFlags) wants(link, flow string) bool {
	return (f.link == "" || f.link == link) && strings.Contains(flow, f.flow)
}

// show writes what is wrong and which flows used links in each run.
func (f *flowsFlags) show(w io.Writer, file *results.File) error {
	var all []flows.Report
	labels := results.Labels(file.Runs)
	for i := range file.Runs {
		c := flows.Reported.Of(&file.Runs[i])
		if c == nil {
			continue
		}
		var v flows.Report
		for _, x := range c.Findings {
			if f.wants(x.At, x.Flow) && (x.Kind == "loss") == f.losses {
				v.Findings = append(v.Findings, x)
			}
		}
		for _, l := range c.Links {
			l.Top = slices.DeleteFunc(slices.Clone(l.Top), func(u flows.ReportUser) bool { return !f.wants(l.Link, u.Flow) })
			if len(l.Top) > 0 && !f.losses {
				v.Links = append(v.Links, l)
			}
		}
		all = append(all, v)
		if f.json {
			continue
		}
		fmt.Fprintln(w, labels[i])
		f.findings(w, v.Findings)
		if !f.losses {
			f.users(w, v.Links)
		}
	}
	if f.json {
		return printJSON(w, all)
	}
	return nil
}

func (f *flowsFlags) findings(w io.Writer, v []flows.ReportFinding) {
	if len(v) == 0 {
		if f.losses {
			fmt.Fprintln(w, "  no losses")
		} else {
			fmt.Fprintln(w, "  no flow is lost or loops")
		}
		return
	}
	t := table.New("WHAT", "FLOW", "AT", ">PACKETS", ">FROM", ">KNOWN", "")
	shown, rest := rows(f.limit, v)
	for _, x := range shown {
		note := ""
		switch {
		case x.Moved > 0:
			note = fmt.Sprintf("moved at %.3f ms", 1e3*x.Moved)
		case len(x.Cycle) > 0:
			note = fmt.Sprintf("%s, %d came to it", strings.Join(append(slices.Clone(x.Cycle), x.Cycle[0]), " > "), x.Entered)
		}
		t.Row(x.Kind, x.Flow, x.At, x.Packets, fmt.Sprintf("%.3f ms", 1e3*x.From), fmt.Sprintf("%.3f ms", 1e3*x.Seen), note)
	}
	t.Print(w)
	printRest(w, rest)
}

// users writes which flows used links: all that are kept of a link that is named, the first
// of the others.
func (f *flowsFlags) users(w io.Writer, v []flows.ReportLink) {
	t := table.New("LINK", ">FLOWS", ">BYTES", "FLOW", ">ITS BYTES", ">PACKETS", ">SLOTS", ">PEAK", ">AT")
	shown, rest := rows(f.limit, v)
	for _, l := range shown {
		top := l.Top
		if f.link == "" {
			top = top[:1]
		}
		for _, u := range top {
			t.Row(l.Link, l.Flows, l.Bytes, u.Flow, u.Bytes, u.Packets, u.Slots, megabits(u.Peak), fmt.Sprintf("%.3f ms", 1e3*u.PeakAt))
		}
	}
	t.Print(w)
	printRest(w, rest)
}

func megabits(bps float64) string { return fmt.Sprintf("%.4g Mb/s", bps/1e6) }

// slot writes which flows used a link in one slot of each run.
func (f *flowsFlags) slot(w io.Writer, dir string, file *results.File) error {
	byRun := map[int][]flows.Slot{}
	at := f.at.Seconds()
	err := flows.LoadSlots(dir, func(run int, s flows.Slot) {
		if s.Slot <= at && at < s.Slot+s.Length && f.wants(s.Link, s.Flow) {
			byRun[run] = append(byRun[run], s)
		}
	})
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s has no slots.csv: the run counted no flow", dir)
	}
	if err != nil {
		return err
	}
	labels := results.Labels(file.Runs)
	var all [][]flows.Slot
	for i := range file.Runs {
		v := byRun[i]
		slices.SortStableFunc(v, func(a, b flows.Slot) int { return cmp.Compare(b.Bytes, a.Bytes) })
		all = append(all, v)
		if f.json || flows.Reported.Of(&file.Runs[i]) == nil {
			continue
		}
		fmt.Fprintln(w, labels[i])
		if len(v) == 0 {
			fmt.Fprintln(w, "  no flow")
			continue
		}
		t := table.New("FLOW", ">PACKETS", ">BYTES", ">RATE")
		shown, rest := rows(f.limit, v)
		for _, s := range shown {
			t.Row(s.Flow, s.Packets, s.Bytes, megabits(8*float64(s.Bytes)/s.Length))
		}
		t.Print(w)
		printRest(w, rest)
	}
	if f.json {
		return printJSON(w, all)
	}
	return nil
}
