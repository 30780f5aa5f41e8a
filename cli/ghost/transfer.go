package ghost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"gswitch/cc"
	"gswitch/control"
	"gswitch/control/api"
	"gswitch/control/cli"
	inband "gswitch/int"
	"gswitch/table"
)

// formats are those of telemetry, in the help of flags.
var formats = strings.Join(inband.RoCENames(), ", ")

// how are the flags of how messages are moved.
type how struct {
	to, cc, telemetry, recovery string
	options                     []string
	rate                        rateFlag
	class                       int
}

func (h *how) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&h.to, "to", "", "IP address of the other host (required)")
	f.StringVar(&h.cc, "cc", "", "congestion control: "+strings.Join(cc.Names(), ", ")+"; the host's own if left out")
	f.StringArrayVar(&h.options, "cc-option", nil, "option of the congestion control, as name=value (repeat)")
	f.Var(&h.rate, "rate", "send at this rate at most; with --cc none nothing else bounds it")
	f.StringVar(&h.telemetry, "int", "", "telemetry: "+formats+"; the host's own if left out")
	f.StringVar(&h.recovery, "recovery", "", "loss recovery: go-back-n, irn, tcp, newreno ...; the host's own if left out")
	f.IntVar(&h.class, "class", -1, "traffic class, 0 to 7; the host's own if left out")
}

// request returns what all transfers of the verb have in common.
func (h *how) request() (*api.TransferRequest, error) {
	if h.to == "" {
		return nil, cli.Usage(errors.New("--to is missing: name the other host by its IP address"))
	}
	r := &api.TransferRequest{To: h.to, Congestion: h.cc, Rate: uint64(h.rate), Class: int32(h.class), Telemetry: h.telemetry, Recovery: h.recovery}
	for _, o := range h.options {
		name, value, ok := strings.Cut(o, "=")
		if !ok {
			return nil, cli.Usage(fmt.Errorf("--cc-option %q: write name=value", o))
		}
		if r.CongestionOptions == nil {
			r.CongestionOptions = map[string]string{}
		}
		r.CongestionOptions[name] = value
	}
	return r, nil
}

// move runs a transfer and calls each with what is new. It returns the last
// report, and an error if the transfer failed.
func (a *app) move(ctx context.Context, client api.HostClient, r *api.TransferRequest, each func(*api.TransferSample)) (*api.TransferReport, error) {
	r.Host = a.host
	stream, err := client.Transfer(ctx, r)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	for stream.Receive() {
		m := stream.Msg()
		for _, s := range m.Samples {
			each(s)
		}
		switch {
		case m.Done && m.Error != "":
			return m, errors.New(m.Error)
		case m.Done:
			return m, nil
		}
	}
	if err := stream.Err(); err != nil {
		if ctx.Err() != nil {
			return nil, errors.New("interrupted")
		}
		return nil, err
	}
	return nil, errors.New("the host went away before the transfer was done")
}

// corrupted is what a transfer whose bytes are wrong ends with.
func corrupted(r *api.TransferResult) error {
	if r == nil || r.Corrupt == 0 {
		return nil
	}
	return fmt.Errorf("%d pieces of what arrived are not as sent", r.Corrupt)
}

func (a *app) sendCommand() *cobra.Command {
	var o own
	var h how
	bytes := sizeFlag(1e6)
	var count, depth uint32
	c := &cobra.Command{
		Use:   "send --to ADDRESS [--size 1MB] [--count 10] [--cc hpcc]",
		Short: "Send messages to a host that serves, and measure",
		Long: `Send messages to another host, one after the other or --depth at once, over a
queue pair that is opened for them. The other host must serve: "ghost serve",
or "ghost run --serve". What arrives there is compared with what was sent.

The completion time of a message runs from its posting to its last
acknowledgement. Queues are those that its frames found at each switch, as the
telemetry shows.`,
		Example: `  ghost send --to 10.0.0.2 --size 1MB --count 10 --cc hpcc
  ghost send --to 10.0.0.2 --size 10MB --cc none --rate 300Mbps
  ghost send --port veth0 --addr 10.0.0.1/24 --to 10.0.0.2 --json`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			r, err := h.request()
			if err != nil {
				return err
			}
			r.Operation, r.Size, r.Count, r.Depth = "send", uint64(bytes), count, depth
			return o.with(c, a, func(ctx context.Context, client api.HostClient) error {
				return a.send(ctx, c.OutOrStdout(), client, r)
			})
		},
	}
	o.flags(c, true)
	h.flags(c)
	c.Flags().Var(&bytes, "size", "bytes of a message")
	c.Flags().Uint32VarP(&count, "count", "n", 1, "messages")
	c.Flags().Uint32Var(&depth, "depth", 1, "messages under way at once")
	return c
}

func (a *app) send(ctx context.Context, w io.Writer, client api.HostClient, r *api.TransferRequest) error {
	var samples []*api.TransferSample
	t := table.Right("MESSAGE", "COMPLETION", "GOODPUT")
	report, err := a.move(ctx, client, r, func(s *api.TransferSample) {
		if a.json {
			samples = append(samples, s)
			return
		}
		t.Rowf("%d\t%s\t%s", s.Message, cli.Span(s.End-s.Start), cli.Rate(8e9*float64(r.Size)/float64(max(1, s.End-s.Start))))
		if s.Message%32 == 31 {
			t.Flush(w) // let long lists be seen while they grow
		}
	})
	if report == nil {
		return err
	}
	if a.json {
		out := &api.TransferReport{Done: true, State: report.State, Error: report.Error, LocalQp: report.LocalQp, RemoteQp: report.RemoteQp, Samples: samples, Result: report.Result}
		return errors.Join(cli.PrintJSON(w, out), err, corrupted(report.Result))
	}
	t.Flush(w)
	if err == nil {
		fmt.Fprintln(w)
		printResult(w, report.Result)
	}
	return errors.Join(err, corrupted(report.Result))
}

func printResult(w io.Writer, r *api.TransferResult) {
	t := table.New()
	t.Rowf("congestion\t%s, telemetry %s, recovery %s", r.Congestion, r.Telemetry, r.Recovery)
	t.Rowf("goodput\t%s: %s in %s", cli.Rate(r.Goodput), size(r.Bytes), cli.Span(r.Elapsed))
	verified := fmt.Sprintf("%s, %d messages, as sent", size(r.VerifiedBytes), r.ReceivedMessages)
	if r.Corrupt > 0 {
		verified = fmt.Sprintf("%s, %d frames NOT AS SENT", size(r.VerifiedBytes), r.Corrupt)
	}
	t.Rowf("received\t%s", verified)
	t.Rowf("sent again\t%d frames, %d timeouts", r.Retransmitted, r.Timeouts)
	t.Print(w)
	fmt.Fprintln(w)
	t = table.Right("TIME", "MIN", "MEAN", "P50", "P95", "P99", "MAX")
	line := func(name string, p *api.Percentiles) {
		if p != nil {
			t.Rowf("%s\t%s\t%s\t%s\t%s\t%s\t%s", name, cli.Span(p.Min), cli.Span(uint64(p.Mean)), cli.Span(p.P50), cli.Span(p.P95), cli.Span(p.P99), cli.Span(p.Max))
		}
	}
	line("completion", r.Completion)
	line("round trip", r.Rtt)
	t.Print(w)
	if len(r.Path) == 0 {
		return
	}
	fmt.Fprintln(w)
	t = table.Right("HOP", "WHERE", "RATE", "QUEUE P50", "P95", "P99", "MAX", "MAX/BDP")
	for i, h := range r.Path {
		rate := "?"
		if h.Last.Rate > 0 {
			rate = cli.Rate(float64(h.Last.Rate))
		}
		t.Rowf("%d\t%s\t%s\t%s\t%s\t%s\t%s\t%.2f", i+1, hopName(h.Last), rate, size(h.QueueP50), size(h.QueueP95), size(h.QueueP99), size(h.QueueMax), float64(h.QueueMax)/float64(max(1, r.Bdp)))
	}
	t.Print(w)
	fmt.Fprintf(w, "BDP %s\n", size(r.Bdp))
}

func (a *app) serveCommand() *cobra.Command {
	var o own
	c := &cobra.Command{
		Use:   "serve [--port IF --addr ADDRESS/LENGTH]",
		Short: "Let other hosts send here, and show what arrives",
		Long: `Let other hosts open queue pairs here until a signal ends it, and print each
transfer when it ends. With --port it is a host of its own, else it opens the
running one.`,
		Example: `  ghost serve --port veth1 --addr 10.0.0.2/24
  ghost serve --name h2 --json`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return o.with(c, a, func(ctx context.Context, client api.HostClient) error { return a.serve(ctx, c.OutOrStdout(), client) })
		},
	}
	o.flags(c, true)
	return c
}

func (a *app) serve(ctx context.Context, w io.Writer, client api.HostClient) error {
	at, err := client.GetHost(ctx, &api.GetHostRequest{Host: a.host})
	if err != nil {
		return err
	}
	stream, err := client.Serve(ctx, &api.ServeRequest{Host: a.host})
	if err != nil {
		return err
	}
	defer stream.Close()
	for first := true; stream.Receive(); first = false {
		if first && !a.json {
			fmt.Fprintf(w, "ready: serving at %s on %s\n", at.Address, at.Interface)
		}
		for _, s := range stream.Msg().Sessions {
			if !s.Closed {
				continue
			}
			if a.json {
				if err := printLine(w, s); err != nil {
					return err
				}
				continue
			}
			state := "as sent"
			if s.Corrupt > 0 {
				state = fmt.Sprintf("%d frames NOT AS SENT", s.Corrupt)
			}
			if s.Service == "memory" {
				fmt.Fprintf(w, "%s: RDMA operations of %s on memory, %s of it written, %s\n", s.Peer, size(s.MessageSize), size(s.Bytes), state)
				continue
			}
			fmt.Fprintf(w, "%s: %s in %d messages at %s, %s\n", s.Peer, size(s.Bytes), s.Messages, cli.Rate(s.Goodput), state)
		}
	}
	if err := stream.Err(); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// printLine prints a message as one line of JSON.
func printLine(w io.Writer, s *api.Session) error {
	text, err := control.JSON(s)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", text)
	return err
}
