package gcollect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"gswitch/collect"
	"gswitch/control/cli"
	"gswitch/units"
)

// chosen is which events a verb is about.
type chosen struct {
	kinds  []string
	since  string
	follow bool
}

func (f *chosen) add(c *cobra.Command) {
	c.Flags().StringSliceVar(&f.kinds, "kind", nil, "only these kinds: "+strings.Join(collect.Kinds, ", "))
	c.Flags().StringVar(&f.since, "since", "", "only what was found since then: 10m, 24h, or 2006-01-02T15:04:05Z")
	c.Flags().BoolVarP(&f.follow, "follow", "f", false, "go on with what is found from now on")
}

func (f *chosen) filter(now time.Time) (by collect.Filter, err error) {
	for _, k := range f.kinds {
		if !slices.Contains(collect.Kinds, k) {
			return by, cli.Usage(fmt.Errorf("--kind %q: there are %s", k, strings.Join(collect.Kinds, ", ")))
		}
	}
	by = collect.Filter{Kinds: f.kinds, Follow: f.follow}
	if f.since != "" {
		if d, derr := units.Span(f.since); derr == nil {
			by.Since = now.Add(-d)
		} else if by.Since, err = time.Parse(time.RFC3339, f.since); err != nil {
			return by, cli.Usage(fmt.Errorf("--since %q is neither a duration, such as 10m, nor an instant, such as 2006-01-02T15:04:05Z", f.since))
		}
	}
	return by, nil
}

func (a *app) eventsCommand() *cobra.Command {
	var f chosen
	c := &cobra.Command{
		Use:   "events",
		Short: "Show what happened in the network",
		Long: `events prints what the collectors found, one event a line: links that lost packets of
a batch, at once (lossy), these packets by flow and cause, when the cause is known
(loss), packets that did not come to their destination, and marked packets and probes
(trace), pauses (pause), and flows that lose packets on a link, are lost behind a
switch or loop (flow).

With --json each line is an object; its times are in UTC. An event has the same id
whichever collector found it.`,
		Example: `  gcollect events
  gcollect events --kind loss --since 10m
  gcollect events --kind flow --follow
  gcollect events --follow --json | jq 'select(.what == "blackhole")'
  gcollect events --json | clickhouse-client \
    --query 'INSERT INTO gswitch.events FORMAT JSONEachRow'`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			by, err := f.filter(time.Now())
			if err != nil {
				return err
			}
			out := json.NewEncoder(c.OutOrStdout())
			out.SetEscapeHTML(false)
			return a.each(c, by, func(e *collect.Event) error {
				if a.json {
					return out.Encode(e)
				}
				_, err := fmt.Fprintln(c.OutOrStdout(), e)
				return err
			})
		},
	}
	f.add(c)
	return c
}

// each calls do with the events of the collector that runs, until there are no more
// or a signal ends it.
func (a *app) each(c *cobra.Command, by collect.Filter, do func(*collect.Event) error) error {
	ctx, stop := signal.NotifyContext(c.Context(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	s, nc, err := a.store(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	err = s.Events(ctx, by, do)
	if by.Follow && errors.Is(err, context.Canceled) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
