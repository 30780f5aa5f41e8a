package ghost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"gswitch/control/api"
	"gswitch/control/cli"
)

func (a *app) pingCommand() *cobra.Command {
	var o own
	var h how
	bytes := sizeFlag(64)
	var count uint32
	var interval time.Duration
	c := &cobra.Command{
		Use:   "ping ADDRESS",
		Short: "Round trips of RDMA messages, and the switches on the way",
		Long: `Send small messages to another host, each when the one before is acknowledged
and --interval has passed. Every running ghost answers.

The round trip is that of a frame and its acknowledgement, without the time
that the frame takes on the first link. INT-MD names switches and ports; the
time that a queue takes is known where the rate of the link is: from hpcc's
telemetry, or where all links of the configuration have one rate.`,
		Example: `  ghost ping 10.0.0.2
  ghost ping 10.0.0.2 -n 100 -i 10ms --int hpcc --json`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, words []string) error {
			if h.to = words[0]; count == 0 {
				return cli.Usage(errors.New("--count 0: nothing would be sent"))
			}
			r, err := h.request()
			if err != nil {
				return err
			}
			r.Operation, r.Size, r.Count, r.Interval = "ping", uint64(bytes), count, uint64(interval)
			return o.with(c, a, func(ctx context.Context, client api.HostClient) error {
				return a.ping(ctx, c.OutOrStdout(), client, r)
			})
		},
	}
	o.flags(c, true)
	f := c.Flags()
	h.telemetry, h.cc = "int-md", "none"
	f.StringVar(&h.telemetry, "int", h.telemetry, "telemetry: "+formats)
	f.IntVar(&h.class, "class", -1, "traffic class, 0 to 7; the host's own if left out")
	f.Var(&bytes, "size", "bytes of a message")
	f.Uint32VarP(&count, "count", "n", 5, "messages")
	f.DurationVarP(&interval, "interval", "i", 200*time.Millisecond, "time between messages, at least")
	return c
}

func (a *app) ping(ctx context.Context, w io.Writer, client api.HostClient, r *api.TransferRequest) error {
	var samples []*api.TransferSample
	report, err := a.move(ctx, client, r, func(s *api.TransferSample) {
		samples = append(samples, s)
		if a.json {
			return
		}
		fmt.Fprintf(w, "%s: message %d round trip %s\n", r.To, s.Message, cli.Span(s.Rtt))
		for i, h := range s.Hops {
			fmt.Fprintf(w, "  %d  %s  queue %s\n", i+1, hopName(h), queueOf(h))
		}
	})
	if report == nil {
		return err
	}
	if a.json {
		report.Samples = samples
		return errors.Join(cli.PrintJSON(w, report), err)
	}
	if p := report.Result.GetRtt(); p != nil {
		fmt.Fprintf(w, "%d of %d messages answered; round trip min %s, mean %s, max %s\n", len(samples), r.Count, cli.Span(p.Min), cli.Span(uint64(p.Mean)), cli.Span(p.Max))
	}
	return err
}
