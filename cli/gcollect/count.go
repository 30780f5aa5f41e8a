package gcollect

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"gswitch/collect"
	"gswitch/control/cli"
	"gswitch/table"
)

func (a *app) countCommand() *cobra.Command {
	return cli.Group("count", "Count traced packets that a filter chooses, from now on",
		"  gcollect count add web 'tcp.dstport == 443 && switch == leaf1'\n"+
			"  gcollect count list\n"+
			"  gcollect count remove web",
		a.countAddCommand(), a.countListCommand(), a.countRemoveCommand())
}

func (a *app) countAddCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "add NAME FILTER",
		Short: "Add a counter of the traced packets that a filter chooses",
		Long: `add has all collectors count the traced packets that a filter chooses (gfabric
traces --help) from now on, within about a second: as counter NAME of the metrics
gcollect_counted_packets_total and gcollect_counted_bytes_total.

It is kept with the streams, also when collectors end, until it is removed. Switches
in filters are named as in the network that collectors have (--fabric of gcollect
run). To add what there is changes nothing.`,
		Example: `  gcollect count add web 'tcp.dstport == 443'
  gcollect count add vip1 'ip.dst == 10.0.9.0/24 && switch == leaf4'`,
		Args: cli.Args(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			return a.count(c, &collect.CountRequest{Add: &collect.Counter{Name: args[0], Filter: args[1]}})
		},
	}
}

func (a *app) countListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "Show the counters, and what was counted",
		Long: `list shows the counters that were added, and those of --count, with the packets and
bytes that all collectors have counted together since each of them was started.`,
		Example: "  gcollect count list\n  gcollect count list --json",
		Args:    cli.Args(cobra.NoArgs),
		RunE:    func(c *cobra.Command, _ []string) error { return a.count(c, &collect.CountRequest{}) },
	}
}

func (a *app) countRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "remove NAME",
		Short:   "Remove a counter",
		Long:    "remove ends a counter that was added. One that is added again counts anew.",
		Example: "  gcollect count remove web",
		Args:    cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if args[0] == "" {
				return cli.Usage(errors.New("NAME is empty: gcollect count list shows the names"))
			}
			return a.count(c, &collect.CountRequest{Remove: args[0]})
		},
	}
}

// count asks for something, and shows what there is then.
func (a *app) count(c *cobra.Command, r *collect.CountRequest) error {
	st, err := asked(c.Context(), a, func(s *collect.Store, ctx context.Context) (*collect.CountState, error) { return s.AskCount(ctx, r) })
	if err != nil {
		return err
	}
	return report(c, a, st.Refused, st, showCounters)
}

func showCounters(w io.Writer, st *collect.CountState) {
	t := table.New("COUNTER", ">PACKETS", ">BYTES", "SINCE", "FILTER")
	for _, c := range st.Counters {
		since := "--count"
		if !c.Since.IsZero() {
			since = instant(c.Since)
		}
		t.Row(c.Name, c.Packets, c.Bytes, since, c.Filter)
	}
	t.Print(w)
}
