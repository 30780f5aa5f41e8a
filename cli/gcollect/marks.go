package gcollect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gswitch/collect"
	"gswitch/control/cli"
	"gswitch/mirror"
	"gswitch/table"
)

func (a *app) marksCommand() *cobra.Command {
	return cli.Group("marks", "Share what collectors take of copies among marks of hosts",
		"  gcollect marks allow web --host h1,h2 --most 1000\n"+
			"  gcollect marks show\n"+
			"  gcollect marks end web",
		a.marksAllowCommand(), a.marksShowCommand(), a.marksEndCommand())
}

func (a *app) marksAllowCommand() *cobra.Command {
	var hosts []string
	var each, switches, size int
	var lasts time.Duration
	c := &cobra.Command{
		Use:   "allow NAME",
		Short: "Ask for marks of hosts, within what collectors can take",
		Long: `allow asks whether hosts may mark packets (debug in their documents), so that
switches copy them at every hop. Each host marks --most packets a second, each
of which --switches copy: that many copies are added to those that come by now,
the mean of ten seconds, and to what was allowed before. If all collectors
together take fewer (--most-copies and --most-copied of gcollect run), it is
refused, and nothing changes.

What was allowed is kept with the streams until marks end, or --for is over: write
the number into the documents of the hosts (debug: {most: N}), which hold it. To
ask for the same again has it last as long again. What hosts still mark when the
time is over counts by the copies that come.`,
		Example: `  gcollect marks allow web --host h1,h2 --most 1000
  gcollect marks allow rdma --host h3 --most 200 --switches 3 --for 2h`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if len(hosts) == 0 {
				return cli.Usage(errors.New("--host is missing: name the hosts that mark"))
			}
			slices.Sort(hosts)
			hosts = slices.Compact(hosts)
			if lasts < 0 {
				return cli.Usage(fmt.Errorf("--for %v: say for how long, or 0: until they end", lasts))
			}
			if _, err := mirror.Marks(len(hosts), each, switches, size); err != nil {
				return cli.Usage(err)
			}
			return a.marks(c, &collect.MarksRequest{Allow: &collect.Marks{Name: args[0], Hosts: hosts, Each: each, Switches: switches, Bytes: size, For: lasts}})
		},
	}
	f := c.Flags()
	f.StringSliceVar(&hosts, "host", nil, "hosts that mark")
	f.IntVar(&each, "most", 1000, "packets that each of them marks in a second")
	f.IntVar(&switches, "switches", 5, "switches on the longest way, each of which makes a copy")
	f.IntVar(&size, "bytes", 242, "bytes of a copy: snap of the session, and 50 of its headers")
	f.DurationVar(&lasts, "for", 24*time.Hour, "how long they are allowed. 0: until they end")
	return c
}

func (a *app) marksShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "Show which marks are allowed, and what is left",
		Long: `show lists the marks that were allowed, what they may lead to, and what all
collectors together take and have in use.`,
		Example: "  gcollect marks show\n  gcollect marks show --json",
		Args:    cli.Args(cobra.NoArgs),
		RunE:    func(c *cobra.Command, _ []string) error { return a.marks(c, &collect.MarksRequest{}) },
	}
}

func (a *app) marksEndCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "end NAME",
		Short: "Give back what marks were allowed",
		Long: `end gives back what marks were allowed. Take debug out of the documents of the
hosts first: copies of what they mark go on to count.`,
		Example: "  gcollect marks end web",
		Args:    cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if args[0] == "" {
				return cli.Usage(errors.New("NAME is empty: gcollect marks show shows the names"))
			}
			return a.marks(c, &collect.MarksRequest{End: args[0]})
		},
	}
}

// marks asks for something, and shows what there is then.
func (a *app) marks(c *cobra.Command, r *collect.MarksRequest) error {
	st, err := asked(c.Context(), a, func(s *collect.Store, ctx context.Context) (*collect.MarksState, error) { return s.AskMarks(ctx, r) })
	if err != nil {
		return err
	}
	return report(c, a, st.Refused, st, showMarks)
}

func showMarks(w io.Writer, st *collect.MarksState) {
	if len(st.Marks) > 0 {
		t := table.New("MARKS", ">EACH HOST/S", ">COPIES/S", ">BYTES/S", "SINCE", "UNTIL", "HOSTS")
		for _, m := range st.Marks {
			until := "they end"
			if !m.Until.IsZero() {
				until = instant(m.Until)
			}
			t.Row(m.Name, m.Each, m.Rate.Copies, m.Rate.Bytes, instant(m.Since), until, strings.Join(m.Hosts, ","))
		}
		t.Print(w)
		fmt.Fprintln(w)
	}
	b := &st.Budget
	t := table.New("IN A SECOND", ">COPIES", ">BYTES")
	for _, r := range []struct {
		what string
		mirror.Rate
	}{{"taken at most", b.Capacity}, {"come without the debug bit", b.Others}, {"come with it", b.Marked}, {"allowed to marks", b.Granted}, {"in use", b.Load()}} {
		bytes := any(r.Bytes)
		if r.what == "taken at most" && r.Bytes == 0 {
			bytes = "-"
		}
		t.Row(r.what, r.Copies, bytes)
	}
	t.Print(w)
}
