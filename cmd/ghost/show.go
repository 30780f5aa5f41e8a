package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/gswitch/gswitch/control"
	"github.com/gswitch/gswitch/control/api"
)

func (a *app) showCommand() *cobra.Command {
	group := &cobra.Command{Use: "show", Short: "Show state and counters", Example: `  ghost show host
  ghost show qps
  ghost show cc --json`,
		RunE: func(c *cobra.Command, words []string) error {
			if len(words) > 0 {
				return usageError{fmt.Errorf("show: unknown %q; there are host, qps, cc, pfc, drops", words[0])}
			}
			return usageError{errors.New("show what? There are host, qps, cc, pfc, drops")}
		}}
	getHost := func(ctx context.Context, c api.HostClient) (*api.HostStatus, error) {
		return c.GetHost(ctx, &api.GetHostRequest{})
	}
	getQPs := func(ctx context.Context, c api.HostClient) (*api.QueuePairs, error) {
		return c.ListQueuePairs(ctx, &api.ListQueuePairsRequest{})
	}
	group.AddCommand(
		shown(a, "host", "The host, its port and how punctual it is", getHost, printHost),
		shown(a, "qps", "Queue pairs", getQPs, printQPs),
		shown(a, "cc", "Congestion control of each queue pair, with its internals", getQPs, printCC),
		shown(a, "pfc", "Priority flow control", getHost, printPFC),
		shown(a, "drops", "Dropped frames, by reason", getHost, printDrops))
	return group
}

// shown is a verb that asks the host for a message and prints it.
func shown[M proto.Message](a *app, use, short string, ask func(context.Context, api.HostClient) (M, error), print func(io.Writer, M)) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: args(cobra.NoArgs), RunE: func(c *cobra.Command, _ []string) error {
		address, err := a.address()
		if err != nil {
			return err
		}
		m, err := ask(c.Context(), control.DialHost(address))
		if err != nil {
			return control.Explain(address, err)
		}
		if a.json {
			return printJSON(c.OutOrStdout(), narrowed(use, m))
		}
		print(c.OutOrStdout(), m)
		return nil
	}}
}

// narrowed leaves of a host's status what a verb is about.
func narrowed(verb string, m proto.Message) proto.Message {
	h, ok := m.(*api.HostStatus)
	if !ok {
		return m
	}
	switch verb {
	case "pfc":
		return &api.HostPFC{Classes: h.Pfc}
	case "drops":
		return &api.HostDrops{Drops: h.Drops}
	}
	return m
}

func printHost(w io.Writer, h *api.HostStatus) {
	t := leftColumns(w)
	fmt.Fprintf(t, "host\t%s, version %s, process %d\n", h.Name, h.Version, h.Pid)
	fmt.Fprintf(t, "port\t%s %s, %s, AF_XDP %s\n", h.Interface, h.Netns, h.State, h.XdpMode)
	fmt.Fprintf(t, "address\t%s, %s\n", h.Address, h.Mac)
	if h.Gateway != "" {
		fmt.Fprintf(t, "gateway\t%s\n", h.Gateway)
	}
	fmt.Fprintf(t, "link\t%s, payload %d, T %s\n", speed(float64(h.Rate)), h.Payload, span(h.BaseRtt))
	fmt.Fprintf(t, "defaults\tcongestion %s, telemetry %s, recovery %s\n", h.Congestion, h.Telemetry, h.Recovery)
	fmt.Fprintf(t, "serving\t%v\n", h.Serving)
	fmt.Fprintf(t, "received\t%d frames, %s, %d messages\n", h.RxFrames, size(h.RxBytes), h.MessagesReceived)
	fmt.Fprintf(t, "sent\t%d frames, %s, %d messages, %d again, %d timeouts\n", h.TxFrames, size(h.TxBytes), h.MessagesSent, h.Retransmissions, h.Timeouts)
	m := h.Timing
	fmt.Fprintf(t, "worker\t%s, busy %.1f %%\n", m.Poll, 100*m.BusyRatio)
	fmt.Fprintf(t, "frames late\tp50 %s, p99 %s, max %s\n", span(m.FrameLateP50), span(m.FrameLateP99), span(m.FrameLateMax))
	fmt.Fprintf(t, "timers late\tp50 %s, p99 %s, max %s\n", span(m.TimerLateP50), span(m.TimerLateP99), span(m.TimerLateMax))
	for _, s := range h.Warnings {
		fmt.Fprintf(t, "warning\t%s\n", s)
	}
	t.Flush()
}

func printQPs(w io.Writer, m *api.QueuePairs) {
	t := columns(w)
	fmt.Fprintln(t, "QP\tREMOTE\tPEER\tROLE\tSERVICE\tCLASS\tSTATE\tIN FLIGHT\tSENT\tRECEIVED\tAGAIN\tNAKS\tTIMEOUTS\t")
	for _, q := range m.QueuePairs {
		fmt.Fprintf(t, "%#x\t%#x\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t\n", q.Number, q.Remote, q.Peer, q.Role, q.Service, q.Class, q.State,
			size(q.InFlight), size(q.TxBytes), size(q.RxBytes), q.Retransmitted, q.Naks, q.Timeouts)
	}
	t.Flush()
}

func printCC(w io.Writer, m *api.QueuePairs) {
	t := columns(w)
	fmt.Fprintln(t, "QP\tPEER\tCONGESTION\tRATE\tWINDOW\tMARKS\tCNPS\tINTERNALS\t")
	for _, q := range m.QueuePairs {
		var in []string
		for _, v := range q.Internals {
			in = append(in, fmt.Sprintf("%s=%.4g", v.Name, v.Value))
		}
		fmt.Fprintf(t, "%#x\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t\n", q.Number, q.Peer, q.Congestion, speed(q.Rate), size(uint64(q.Window)), q.Marks, q.Cnps, strings.Join(in, " "))
	}
	t.Flush()
}

func printPFC(w io.Writer, h *api.HostStatus) {
	t := columns(w)
	fmt.Fprintln(t, "CLASS\tPAUSED\tRX XOFF\tRX XON\tTX XOFF\tTX XON\tPAUSED FOR\tASKED FOR\t")
	for _, c := range h.Pfc {
		fmt.Fprintf(t, "%d\t%v\t%d\t%d\t%d\t%d\t%s\t%s\t\n", c.Class, c.Paused, c.RxXoff, c.RxXon, c.TxXoff, c.TxXon, span(uint64(1e9*c.PausedSeconds)), span(uint64(1e9*c.AskedSeconds)))
	}
	t.Flush()
}

func printDrops(w io.Writer, h *api.HostStatus) {
	t := leftColumns(w)
	fmt.Fprintln(t, "REASON\tFRAMES")
	for _, d := range h.Drops {
		fmt.Fprintf(t, "%s\t%d\n", d.Reason, d.Frames)
	}
	t.Flush()
}
