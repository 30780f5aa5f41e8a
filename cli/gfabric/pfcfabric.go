package gfabric

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gswitch/control"
	"gswitch/control/cli"
	"gswitch/fabric/lab"
	"gswitch/fabric/pauses"
	"gswitch/fabric/pauses/query"
	"gswitch/frame"
	"gswitch/table"
)

// daemons returns the switches of a fabric that is up; the only one without a
// name.
func daemons(args []string) (*lab.Status, []query.Daemon, error) {
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	name, err := lab.Resolve(name)
	if err != nil {
		return nil, nil, err
	}
	st, err := lab.Inspect(name)
	if err != nil {
		return nil, nil, err
	}
	var sockets []string
	for _, p := range st.Processes {
		sockets = append(sockets, p.Socket)
	}
	return st, query.Dial(sockets), nil
}

func fabricTrace(ctx context.Context, args []string) (*pauses.Trace, error) {
	st, v, err := daemons(args)
	if err != nil {
		return nil, err
	}
	return query.Trace(ctx, st.Topology, v)
}

func pfcDeadlockCommand() *cobra.Command {
	var asJSON bool
	var after time.Duration
	c := &cobra.Command{
		Use:   "deadlock [FABRIC]",
		Short: "Find egress queues of a fabric that wait for each other in a circle",
		Long: "deadlock asks the switches of a fabric that gfabric up raised which egress queues their\n" +
			"neighbours hold back, joins the answers, and looks for circles: queues each of which is\n" +
			"held back by the switch of another one of them, because of frames that wait in that\n" +
			"one. A circle that has lasted for --after is a deadlock: it does not end by itself,\n" +
			"unless frames escape (escape) or a watchdog drops them (pfc.watchdog). gswitch show\n" +
			"deadlock is the part of one switch.\n\n" +
			"Exit codes: 0 there is none, 1 there is one or the fabric did not answer.",
		Example: "  gfabric pfc deadlock\n" +
			"  gfabric pfc deadlock ring --after 1s\n" +
			"  gfabric pfc deadlock ring --json | jq '.circles[].ports'",
		Args: cli.Args(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if after < 0 {
				return usagef("--after: %v is negative", after)
			}
			if len(args) == 1 && isFile(args[0]) {
				return usagef("%s is a scenario, and this looks at a fabric that is up: gfabric pfc trace %s names the circles in which a run ends, and its result deadlocks_total counts those that it saw", args[0], args[0])
			}
			st, v, err := daemons(args)
			if err != nil {
				return err
			}
			w, err := query.Waits(c.Context(), st.Topology, v)
			if err != nil {
				return err
			}
			if asJSON {
				err = writeJSON(w)
			} else {
				err = writeWaiting(w, frame.Time(after))
			}
			if err != nil {
				return err
			}
			for i := range w.Circles {
				if w.Circles[i].For >= frame.Time(after) {
					return fmt.Errorf("fabric %s is in a deadlock; gfabric pfc trace %s says how it came about", st.Name, st.Name)
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON: what waits, and the circles")
	c.Flags().DurationVar(&after, "after", time.Duration(control.DefaultPatience), "how long nothing of a circle must have moved")
	return c
}

func writeWaiting(w *query.Waiting, after frame.Time) error {
	for i := range w.Circles {
		c := &w.Circles[i]
		word := "DEADLOCK"
		if c.For < after {
			word = "a circle that may still end"
		}
		fmt.Fprintf(&stdout, "%s for %s, %s\n", word, pauses.Seconds(c.For.Seconds()), c)
	}
	if len(w.Circles) == 0 {
		fmt.Fprintln(&stdout, "no queues wait for each other in a circle")
	}
	if len(w.Waits) == 0 {
		return nil
	}
	fmt.Fprintln(&stdout)
	t := table.New("QUEUE", "CLASS", "HELD BACK BY", "FOR", "BYTES", "CAME FROM")
	for i := range w.Waits {
		v := &w.Waits[i]
		t.Row(v.At, v.Class, v.At.To, pauses.Seconds(v.For.Seconds()), v.Bytes, strings.Join(v.Names, ", "))
	}
	return t.Print(&stdout)
}
