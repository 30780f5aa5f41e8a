package gfabric

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gswitch/fabric/observe/losses"
	"gswitch/fabric/results"
	"gswitch/table"
	"gswitch/telemetry/lossradar"
)

func lossesCommand() *cobra.Command {
	var asJSON bool
	var link, cause string
	c := &cobra.Command{
		Use:   "losses DIR",
		Short: "Show which links lost frames in a run, of which flows and why",
		Long: "losses shows what the meters at both ends of each link found in a run: a scenario\n" +
			"with switch.lossradar. Each row is a link and a cause: random (a link that damages\n" +
			"frames now and then), blackhole (a table that sends some flows nowhere), congestion\n" +
			"(a full queue), loop, or unknown.",
		Example: "  gfabric run scenarios/lossradar/random-link.yaml\n" +
			"  gfabric losses results/random-link\n" +
			"  gfabric losses results/random-link --cause blackhole",
		Args: one("a directory of results, such as results/random-link"),
		RunE: func(_ *cobra.Command, args []string) error {
			if cause != "" && !slices.Contains(lossradar.Causes(), cause) {
				return usagef("--cause %q: there are %s", cause, strings.Join(lossradar.Causes(), ", "))
			}
			f, err := loadResults(args[0])
			if err != nil {
				return err
			}
			return showLosses(&stdout, f, args[0], link, cause, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().StringVar(&link, "link", "", "only this link, such as s1>s2")
	c.Flags().StringVar(&cause, "cause", "", "only this cause")
	return c
}

// showLosses writes the losses of each run.
func showLosses(w io.Writer, f *results.File, dir, link, cause string, asJSON bool) error {
	metered := false
	var all []losses.Loss
	labels := results.Labels(f.Runs)
	for i := range f.Runs {
		r := &f.Runs[i]
		if _, ok := r.Values["lost_named_total"]; !ok {
			continue
		}
		metered = true
		var v []losses.Loss
		for _, l := range losses.Found.Of(r) {
			if (link == "" || l.Link == link) && (cause == "" || l.Cause == cause) {
				v = append(v, l)
			}
		}
		all = append(all, v...)
		if asJSON {
			continue
		}
		fmt.Fprintln(w, labels[i])
		if len(v) == 0 {
			fmt.Fprintln(w, "  no losses")
			continue
		}
		t := table.New("LINK", ">LOST", ">SHARE", "CAUSE", ">FLOWS", ">FIRST", ">LAST", "SUCH AS")
		for _, l := range v {
			t.Row(l.Link, l.Frames, fmt.Sprintf("%.3g %%", 100*float64(l.Frames)/float64(max(l.Sent, 1))), l.Cause, l.Flows,
				fmt.Sprintf("%.3f ms", 1e3*l.First), fmt.Sprintf("%.3f ms", 1e3*l.Last), strings.Join(l.Examples[:min(1, len(l.Examples))], ", "))
		}
		t.Print(w)
	}
	if !metered {
		return inputf("%s: no run had meters at its links: set switch.lossradar.enabled in the scenario", dir)
	}
	if asJSON {
		return printJSON(w, all)
	}
	return nil
}
