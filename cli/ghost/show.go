package ghost

import (
	"context"
	"fmt"
	"io"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"gswitch/control"
	"gswitch/control/api"
	"gswitch/control/cli"
	"gswitch/table"
)

func (a *app) showCommand() *cobra.Command {
	hosts := func(ctx context.Context, c api.HostClient) (*api.HostList, error) {
		return c.ListHosts(ctx, &api.ListHostsRequest{Host: a.host})
	}
	host := func(ctx context.Context, c api.HostClient) (*api.HostStatus, error) {
		return c.GetHost(ctx, &api.GetHostRequest{Host: a.host})
	}
	flows := func(ctx context.Context, c api.HostClient) (*api.Flows, error) {
		return c.ListFlows(ctx, &api.ListFlowsRequest{Host: a.host})
	}
	qps := func(ctx context.Context, c api.HostClient) (*api.QueuePairs, error) {
		return c.ListQueuePairs(ctx, &api.ListQueuePairsRequest{Host: a.host})
	}
	pfc := func(ctx context.Context, c api.HostClient) (*api.HostPFC, error) {
		m, err := hosts(ctx, c)
		out := &api.HostPFC{}
		for _, h := range m.GetHosts() {
			out.Classes = append(out.Classes, h.Pfc...)
		}
		return out, err
	}
	drops := func(ctx context.Context, c api.HostClient) (*api.HostDrops, error) {
		m, err := hosts(ctx, c)
		out := &api.HostDrops{}
		for _, h := range m.GetHosts() {
			out.Drops = append(out.Drops, h.Drops...)
		}
		return out, err
	}
	streams := func(ctx context.Context, c api.HostClient) (*api.TCPStreams, error) {
		return c.ListStreams(ctx, &api.ListHostsRequest{Host: a.host})
	}
	limits := func(ctx context.Context, c api.HostClient) (*api.Limits, error) {
		m, err := c.ListLimits(ctx, &api.ListHostsRequest{Host: a.host})
		if connect.CodeOf(err) != connect.CodeUnimplemented {
			return m, err
		}
		address, err := a.bumps() // it is a daemon of bumps
		if err != nil {
			return nil, err
		}
		return control.DialTransparent(address, a.show).ListLimits(ctx, &api.ListBumpsRequest{Host: a.host})
	}
	return cli.Group("show", "Show state and counters", `  ghost show host
  ghost show flows
  ghost show qps --host h3
  ghost show cc --json`,
		shown(a, "hosts", "The hosts of the daemon", hosts, printHosts),
		shown(a, "host", "A host, its port and how punctual it is", host, printHost),
		shown(a, "flows", "Data under way: from and to which hosts, how far it is, and what holds it up", flows, printFlows),
		shown(a, "qps", "Queue pairs", qps, printQPs),
		shown(a, "cc", "Congestion control of each queue pair, with its internals", qps, printCC),
		shown(a, "tcp", "Connections of TCP", streams, printStreams),
		shown(a, "pfc", "Priority flow control", pfc, printPFC),
		shown(a, "drops", "Dropped frames, by reason", drops, printDrops),
		shown(a, "limits", "What is bounded: memory by what, tables, sessions, connections, requests, lines of the log", limits, cli.PrintLimits),
		a.showConfigCommand())
}

// shown is a verb that asks the daemon for a message and prints it.
func shown[M proto.Message](a *app, use, short string, ask func(context.Context, api.HostClient) (M, error), print func(io.Writer, M)) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: cli.Args(cobra.NoArgs), RunE: func(c *cobra.Command, _ []string) error {
		client, address, err := a.client(c.Context())
		if err != nil {
			return err
		}
		m, err := ask(c.Context(), client)
		if err != nil {
			return control.Explain(address, err)
		}
		if a.json {
			return cli.PrintJSON(c.OutOrStdout(), m)
		}
		print(c.OutOrStdout(), m)
		return nil
	}}
}

// ofHost writes the host before what belongs to it where there are several.
func ofHost[T interface{ GetHost() string }](list []T) func(T, string) string {
	for _, e := range list {
		if e.GetHost() != list[0].GetHost() {
			return func(e T, what string) string { return e.GetHost() + "/" + what }
		}
	}
	return func(_ T, what string) string { return what }
}

func printHosts(w io.Writer, m *api.HostList) {
	t := table.New("HOST", "ADDRESS", "ON", "MODE", ">WORKER", ">LINK", ">QPS", ">RX FRAMES", ">TX FRAMES", ">LATE P99", "STATE")
	for _, h := range m.Hosts {
		on := h.Interface
		if h.Netns != "" {
			on += "@" + h.Netns[strings.LastIndex(h.Netns, "/")+1:]
		}
		t.Row(h.Name, h.Address, on, h.XdpMode, h.Worker, cli.Rate(float64(h.Rate)), h.QueuePairs, h.RxFrames, h.TxFrames, cli.Span(h.Timing.FrameLateP99), h.State)
	}
	t.Print(w)
}

func printHost(w io.Writer, h *api.HostStatus) {
	t := table.New()
	t.Rowf("host\t%s, version %s, process %d", h.Name, h.Version, h.Pid)
	t.Rowf("port\t%s %s, %s, AF_XDP %s", h.Interface, h.Netns, h.State, h.XdpMode)
	t.Rowf("address\t%s, %s", h.Address, h.Mac)
	if h.Gateway != "" {
		t.Rowf("gateway\t%s", h.Gateway)
	}
	t.Rowf("link\t%s, payload %d, T %s", cli.Rate(float64(h.Rate)), h.Payload, cli.Span(h.BaseRtt))
	t.Rowf("defaults\tcongestion %s, telemetry %s, recovery %s", h.Congestion, h.Telemetry, h.Recovery)
	t.Rowf("serving\t%v", h.Serving)
	t.Rowf("received\t%d frames, %s, %d messages", h.RxFrames, size(h.RxBytes), h.MessagesReceived)
	t.Rowf("sent\t%d frames, %s, %d messages, %d again, %d timeouts", h.TxFrames, size(h.TxBytes), h.MessagesSent, h.Retransmissions, h.Timeouts)
	t.Rowf("congestion\t%d frames came with a mark, %d sent with one of our own, %s", h.EcnMarkedFrames, h.SourceMarkedFrames, cli.Plural(int(h.Quenches), "quench"))
	m := h.Timing
	t.Rowf("worker\t%d, %s, busy %.1f %%; %s", h.Worker, m.Poll, 100*m.BusyRatio, cli.Plural(int(h.Queues), "queue"))
	t.Rowf("frames late\tp50 %s, p99 %s, max %s", cli.Span(m.FrameLateP50), cli.Span(m.FrameLateP99), cli.Span(m.FrameLateMax))
	t.Rowf("timers late\tp50 %s, p99 %s, max %s", cli.Span(m.TimerLateP50), cli.Span(m.TimerLateP99), cli.Span(m.TimerLateMax))
	for _, s := range h.Warnings {
		t.Rowf("warning\t%s", s)
	}
	t.Print(w)
}

func printFlows(w io.Writer, m *api.Flows) {
	of := ofHost(m.Flows)
	t := table.New("FLOW", "WHAT", ">DONE", ">OF", ">GOODPUT", "CC", ">RATE", ">WINDOW", ">RTT", ">MEDIAN", "BOTTLENECK")
	for _, f := range m.Flows {
		total, at := "?", "-"
		if f.Total > 0 {
			total = size(f.Total)
		}
		if b := f.Bottleneck; b != nil {
			at = fmt.Sprintf("hop %d, %s, queue %s", f.BottleneckHop, hopName(b), queueOf(b))
			if b.Switch == 0 {
				at = fmt.Sprintf("hop %d, queue %s", f.BottleneckHop, queueOf(b))
			}
		}
		t.Row(of(f, endpoint(f.Source, f.SourcePort)+" > "+endpoint(f.Destination, f.DestinationPort)), f.Operation+" "+f.State, size(f.Bytes), total, cli.Rate(f.Goodput), f.Congestion,
			unless(f.Rate == 0, cli.Rate(f.Rate)), unless(f.Window == 0, size(uint64(f.Window))), unless(f.Rtt == 0, cli.Span(f.Rtt)), unless(f.RttP50 == 0, cli.Span(f.RttP50)), at)
	}
	t.Print(w)
}

// endpoint writes an address and a UDP port, which may be unknown.
func endpoint(address string, port uint32) string {
	if port == 0 {
		return address
	}
	if strings.Contains(address, ":") {
		address = "[" + address + "]"
	}
	return fmt.Sprintf("%s:%d", address, port)
}

// unless is a dash where something is not known or does not exist.
func unless(missing bool, text string) string {
	if missing {
		return "-"
	}
	return text
}

func printQPs(w io.Writer, m *api.QueuePairs) {
	of := ofHost(m.QueuePairs)
	t := table.New("QP", ">REMOTE", "PEER", "ROLE", "SERVICE", ">CLASS", "STATE", ">IN FLIGHT", ">SENT", ">RECEIVED", ">AGAIN", ">NAKS", ">TIMEOUTS")
	for _, q := range m.QueuePairs {
		t.Row(of(q, fmt.Sprintf("%#x", q.Number)), fmt.Sprintf("%#x", q.Remote), q.Peer, q.Role, q.Service, q.Class, q.State,
			size(q.InFlight), size(q.TxBytes), size(q.RxBytes), q.Retransmitted, q.Naks, q.Timeouts)
	}
	t.Print(w)
}

func printCC(w io.Writer, m *api.QueuePairs) {
	of := ofHost(m.QueuePairs)
	t := table.New("QP", "PEER", "CONGESTION", ">RATE", ">WINDOW", ">MARKS", ">CNPS", "INTERNALS")
	for _, q := range m.QueuePairs {
		var in []string
		for _, v := range q.Internals {
			in = append(in, fmt.Sprintf("%s=%.4g", v.Name, v.Value))
		}
		t.Row(of(q, fmt.Sprintf("%#x", q.Number)), q.Peer, q.Congestion, cli.Rate(q.Rate), unless(q.Window == 0, size(uint64(q.Window))), q.Marks, q.Cnps, strings.Join(in, " "))
	}
	t.Print(w)
}

func printPFC(w io.Writer, m *api.HostPFC) {
	of := ofHost(m.Classes)
	t := table.New(">CLASS", "PAUSED", "QUENCHED", ">RX XOFF", ">RX XON", ">TX XOFF", ">TX XON", ">PAUSED FOR", ">ASKED FOR")
	for _, c := range m.Classes {
		t.Row(of(c, fmt.Sprint(c.Class)), c.Paused, c.Quenched, c.RxXoff, c.RxXon, c.TxXoff, c.TxXon, cli.Span(uint64(1e9*c.PausedSeconds)), cli.Span(uint64(1e9*c.AskedSeconds)))
	}
	t.Print(w)
}

func printDrops(w io.Writer, m *api.HostDrops) {
	if len(m.Drops) == 0 {
		fmt.Fprintln(w, "no drops")
		return
	}
	of := ofHost(m.Drops)
	t := table.New("REASON", ">FRAMES")
	for _, d := range m.Drops {
		t.Row(of(d, d.Reason), d.Frames)
	}
	t.Print(w)
}
