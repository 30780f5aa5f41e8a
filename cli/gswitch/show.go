package gswitch

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"gswitch/clocksync/boundary"
	"gswitch/config"
	"gswitch/control"
	"gswitch/control/api"
	"gswitch/control/cli"
	"gswitch/table"
	"gswitch/vswitch"
)

func (a *app) showCommand() *cobra.Command {
	fdb := list(a, "fdb [PORT]", "Forwarding database of layer 2", api.ControlClient.ListFDB, printFDB)
	routes := list(a, "routes", "Routes", api.ControlClient.ListRoutes, printRoutes)
	order := false
	queues := list(a, "queues [PORT]", "Egress queues that were used", api.ControlClient.ListQueues, func(w io.Writer, m *api.Queues) {
		if order {
			printOrders(w, m)
			return
		}
		printQueues(w, m)
	})
	queues.Flags().BoolVar(&order, "order", false, "in which order frames leave, which were dropped for others, and how often a smaller rank waited")
	for _, c := range []*cobra.Command{fdb, routes} {
		c.Flags().Uint32VarP(&a.limit, "limit", "n", 0, "most entries, 0 is all")
	}
	group := cli.Group("show", "Show state and counters", `  gswitch show ports
  gswitch show ports p1
  gswitch show drops
  gswitch show routes --json`,
		list(a, "ports [PORT]", "Ports; all about one if it is named", api.ControlClient.ListPorts, printPorts),
		queues,
		fdb,
		routes,
		aliased(list(a, "paths", "Next hops among which frames choose, and how full the chosen ones were", api.ControlClient.ListPaths, printPaths), "groups"),
		list(a, "neighbors", "Neighbours (ARP, neighbour discovery)", api.ControlClient.ListNeighbors, printNeighbors),
		list(a, "acl", "Access lists with what they matched", api.ControlClient.ListACLs, printACLs),
		list(a, "buffer [PORT]", "Shared packet buffer", api.ControlClient.ListBuffers, printBuffers),
		list(a, "pfc [PORT]", "Priority flow control", api.ControlClient.ListPFC, printPFC),
		list(a, "pauses [PORT]", "Pauses in the switch's log: who asked, how long, for which queues", api.ControlClient.ListPauses, printPauses),
		list(a, "deadlock [PORT]", "Egress queues that neighbours hold back: the switch's own part of a deadlock", api.ControlClient.ListWaits, printWaits),
		list(a, "drops [PORT]", "Dropped frames, by reason", api.ControlClient.ListDrops, printDrops),
		list(a, "limits [PORT]", "What is bounded: memory by what, tables by port, connections, requests, lines of the log", api.ControlClient.ListLimits, cli.PrintLimits),
		list(a, "workers", "Workers and packet memory", api.ControlClient.ListWorkers, printWorkers),
		list(a, "export", "Where reports go, and how many a collector acknowledged", api.ControlClient.ListExports, printExports),
		a.showConfigCommand(),
		&cobra.Command{Use: "version", Short: "Version of the daemon and of this program", Args: cli.Args(cobra.NoArgs), RunE: a.showVersion})
	for _, f := range vswitch.Features() {
		if len(f.Counters) > 0 {
			if f.Name == boundary.Name {
				group.AddCommand(a.showClock(f))
				continue
			}
			group.AddCommand(a.showFeature(f))
		}
	}
	return group
}

// list is a verb that asks the daemon for a list and prints it.
func list[M proto.Message](a *app, use, short string, call func(api.ControlClient, context.Context, *api.ListRequest) (M, error), print func(io.Writer, M)) *cobra.Command {
	most := cobra.NoArgs
	if strings.Contains(use, "[PORT]") {
		most = cobra.MaximumNArgs(1)
	}
	var none M
	verb, _, _ := strings.Cut(use, " ")
	long, example := short+".\n\n"+cli.JSONHelp(none), "  gswitch show "+verb+"\n  gswitch show "+verb+" --json"
	if strings.Contains(use, "[PORT]") {
		example += "\n  gswitch show " + verb + " p1"
	}
	return &cobra.Command{Use: use, Short: short, Long: long, Example: example, Args: cli.Args(most), RunE: func(c *cobra.Command, words []string) error {
		client, address, err := a.client()
		if err != nil {
			return err
		}
		r := &api.ListRequest{Switch: a.sw, Limit: a.limit}
		if len(words) > 0 {
			r.Port = words[0]
			// "switch/port" names both.
			if sw, port, both := strings.Cut(words[0], "/"); both && a.sw == "" {
				r.Switch, r.Port = sw, port
			}
		}
		m, err := call(client, c.Context(), r)
		if err != nil {
			return control.Explain(address, err)
		}
		if a.json {
			return cli.PrintJSON(c.OutOrStdout(), m)
		}
		if ports, ok := any(m).(*api.Ports); ok && r.Port != "" {
			if len(ports.Ports) == 0 {
				return fmt.Errorf("there is no port %q", words[0])
			}
			printPort(c.OutOrStdout(), ports.Ports[0])
			return nil
		}
		print(c.OutOrStdout(), m)
		return nil
	}}
}

// shownWarnings is how many warnings fit below a table.
const shownWarnings = 4

func printPorts(w io.Writer, m *api.Ports) {
	list := m.Ports
	name := cli.Namer(list)
	t := table.New("PORT", "ON", "MODE", ">RATE", ">RX FRAMES", ">TX FRAMES", ">DROPS", "STATE")
	var warnings []string
	for _, p := range list {
		t.Row(name(p.Switch, p.Name), below(p), dash(p.Mode), rate(p.Rate), p.RxFrames, p.TxFrames, p.Drops, p.State)
		for _, text := range p.Warnings {
			short, _, _ := strings.Cut(text, ": ")
			warnings = append(warnings, fmt.Sprintf("%s: %s", name(p.Switch, p.Name), short))
		}
	}
	t.Print(w)
	for i, text := range warnings {
		if i == shownWarnings {
			fmt.Fprintf(w, "and %d more warnings\n", len(warnings)-i)
			break
		}
		fmt.Fprintln(w, "warning:", text)
	}
	if warnings != nil {
		fmt.Fprintln(w, "show ports PORT says what to do")
	}
}

// below names what is under a port.
func below(p *api.Port) string {
	switch {
	case p.Interface != "" && p.Netns != "":
		return p.Interface + "@" + p.Netns[strings.LastIndex(p.Netns, "/")+1:]
	case p.Interface != "":
		return p.Interface
	case p.Wire != "":
		return "wire " + p.Wire
	}
	return p.Kind
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func printPort(w io.Writer, p *api.Port) {
	field := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-16s %s\n", name, fmt.Sprintf(format, args...))
	}
	field("port", "%s/%s (number %d)", p.Switch, p.Name, p.Number)
	field("on", "%s", below(p))
	field("state", "%s", p.State)
	if p.Mode != "" {
		field("mode", "%s (%s)", p.Mode, p.ModeReason)
	}
	if p.Mode != "" {
		field("sockets", "%d frames in a transmit call, frames in several chunks: %s, busy polling: %s", p.TxBudget, yes(p.MultiBuffer), yes(p.BusyPoll))
	}
	field("rate", "%s", rate(p.Rate))
	field("mtu", "%d", p.Mtu)
	if len(p.Addresses) > 0 {
		field("addresses", "%s", strings.Join(p.Addresses, ", "))
	}
	field("queues", "%d on workers %v", p.Queues, p.Workers)
	for _, s := range p.Setup {
		field("set up", "%s", s)
	}
	for _, s := range p.Warnings {
		field("warning", "%s", s)
	}
	field("received", "%d frames, %d bytes", p.RxFrames, p.RxBytes)
	field("sent", "%d frames, %d bytes", p.TxFrames, p.TxBytes)
	field("drops", "%d", p.Drops)
	printFaults(field, p.Faults)
	if p.Kind == "xdp" {
		x := p.Xsk
		field("rings", "rx full %d, fill empty %d, rx dropped %d, rx invalid %d", x.RxRingFull, x.RxFillRingEmpty, x.RxDropped, x.RxInvalid)
		field("", "tx invalid %d, tx empty %d, kicks %d, kick errors %d, lost %d", x.TxInvalid, x.TxRingEmpty, x.Kicks, x.KickErrors, x.TxDropped)
		field("reopened", "%d", p.Reopened)
	}
}

func printQueues(w io.Writer, m *api.Queues) {
	list := m.Queues
	name := cli.Namer(list)
	t := table.New("PORT", ">QUEUE", ">FRAMES", ">BYTES", ">MEAN", ">PEAK", ">SENT", ">MARKED", ">DROPS", ">P50", ">P99", "PAUSED")
	for _, q := range list {
		if q.EnqueuedFrames+q.Drops+q.Frames == 0 {
			continue
		}
		t.Row(name(q.Switch, q.Port), q.Queue, q.Frames, q.Bytes, size(uint64(q.MeanBytes)), size(q.PeakBytes), q.DequeuedFrames, q.EcnMarkedFrames, q.Drops, cli.Span(q.SojournP50), cli.Span(q.SojournP99), yes(q.Paused))
	}
	t.Print(w)
}

// printOrders shows how queues are served: those that were used, and those that
// have an order or admission.
func printOrders(w io.Writer, m *api.Queues) {
	name := cli.Namer(m.Queues)
	t := table.New("PORT", ">QUEUE", "ORDER", "ADMISSION", ">FRAMES", ">SENT", ">REFUSED", ">SHED", ">PUSHED OUT", ">INVERSIONS", ">GAP P99", ">GAP MAX")
	for _, q := range m.Queues {
		if q.EnqueuedFrames+q.Drops+q.Frames == 0 && q.Order == "fifo" && q.Admission == "" {
			continue
		}
		inversions, p99, most := "-", "-", "-"
		if q.Inversions != nil {
			inversions, p99, most = fmt.Sprint(*q.Inversions), fmt.Sprint(q.RankGapP99), fmt.Sprint(q.RankGapMax)
		}
		t.Row(name(q.Switch, q.Port), q.Queue, q.Order, dash(q.Admission), q.Frames, q.DequeuedFrames, q.Drops, q.Shed, q.PushedOut, inversions, p99, most)
	}
	t.Print(w)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "-"
}

func printFDB(w io.Writer, m *api.FDB) {
	name := cli.Namer(m.Entries)
	t := table.New(">VLAN", "MAC", "PORT", "TYPE", ">AGE")
	for _, e := range m.Entries {
		kind, age := "learned", fmt.Sprintf("%.0fs", e.AgeSeconds)
		if e.Static {
			kind, age = "static", "-"
		}
		t.Row(e.Vlan, e.Mac, name(e.Switch, e.Port), kind, age)
	}
	t.Print(w)
	fmt.Fprintf(w, "%d of %d\n", m.Total, m.Capacity)
}

func printRoutes(w io.Writer, m *api.Routes) {
	name := cli.Namer(m.Routes)
	t := table.New("PREFIX", "KIND", ">FRAMES", ">BYTES", "NEXT HOPS")
	for _, e := range m.Routes {
		var hops []string
		for _, h := range e.NextHops {
			s := h.Via
			if h.Interface != "" {
				s = h.Interface
			}
			if h.Weight > 1 {
				s += fmt.Sprintf(" x%d", h.Weight)
			}
			hops = append(hops, s)
		}
		prefix := e.Prefix
		if full := name(e.Switch, prefix); full != prefix {
			prefix = e.Switch + " " + prefix
		}
		t.Row(prefix, e.Kind, e.Frames, e.Bytes, dash(strings.Join(hops, ", ")))
	}
	t.Print(w)
	fmt.Fprintf(w, "%d of %d\n", len(m.Routes), m.Total)
}

func printNeighbors(w io.Writer, m *api.Neighbors) {
	list := m.Neighbors
	name := cli.Namer(list)
	t := table.New("ADDRESS", "MAC", "INTERFACE", "STATE")
	for _, n := range list {
		t.Row(n.Address, dash(n.Mac), name(n.Switch, n.Interface), n.State)
	}
	t.Print(w)
}

func printACLs(w io.Writer, m *api.ACLs) {
	list := m.Rules
	name := cli.Namer(list)
	t := table.New("LIST", ">SEQ", "NAME", ">FRAMES", ">BYTES", "RULE")
	for _, r := range list {
		t.Row(name(r.Switch, r.Acl), r.Seq, dash(r.Name), r.Frames, r.Bytes, r.Rule)
	}
	t.Print(w)
}

func printBuffers(w io.Writer, m *api.Buffers) {
	t := table.New("SWITCH", ">SHARE", ">SIZE", ">HELD", ">SHARED POOL", ">OF WHICH USED")
	for _, e := range m.Buffers {
		t.Row(e.Switch, e.Worker, size(e.Size), size(e.Held), size(e.SharedSize), size(e.Shared))
	}
	t.Print(w)
	if len(m.Groups) == 0 {
		return
	}
	fmt.Fprintln(w)
	name := cli.Namer(m.Groups)
	t = table.New("FROM PORT", ">CLASS", ">RESERVED", ">SHARED", ">HEADROOM", ">OF", ">PEAK", ">XOFFS", ">DROPS")
	for _, g := range m.Groups {
		held, most := "lossy", "-"
		if g.Lossless {
			held, most = size(g.Headroom), size(g.HeadroomSize)
		}
		t.Row(name(g.Switch, g.Port), g.Class, size(g.Reserved), size(g.Shared), held, most, size(g.Peak), g.Xoffs, g.Drops)
	}
	t.Print(w)
}

func printPFC(w io.Writer, m *api.PFC) {
	list := m.Classes
	name := cli.Namer(list)
	t := table.New("PORT", ">CLASS", ">RX XOFF", ">RX XON", ">TX XOFF", ">TX XON", ">PAUSED S", ">ASKED S", ">STORMS", "NOW")
	for _, p := range list {
		var now []string
		for _, is := range []struct {
			so   bool
			word string
		}{{p.Paused, "paused"}, {p.Asking, "asking"}, {p.Storm, "storm"}} {
			if is.so {
				now = append(now, is.word)
			}
		}
		t.Row(name(p.Switch, p.Port), p.Class, p.RxXoff, p.RxXon, p.TxXoff, p.TxXon,
			fmt.Sprintf("%.3f", p.PausedSeconds), fmt.Sprintf("%.3f", p.AskedSeconds), p.Storms, dash(strings.Join(now, ", ")))
	}
	t.Print(w)
}

func printDrops(w io.Writer, m *api.Drops) {
	list := m.Drops
	if len(list) == 0 {
		fmt.Fprintln(w, "no drops")
		return
	}
	name := cli.Namer(list)
	t := table.New("PORT", "REASON", ">FRAMES", "LOSS")
	for _, d := range list {
		loss := "yes"
		switch {
		case strings.HasSuffix(d.Reason, "-consumed"):
			loss = "no: used up"
		case !d.Loss:
			loss = "no: it had no receiver"
		}
		t.Row(name(d.Switch, dash(d.Port)), d.Reason, d.Frames, loss)
	}
	t.Print(w)
}

func printExports(w io.Writer, m *api.Exports) {
	if len(m.Exports) == 0 {
		fmt.Fprintln(w, "no reports leave: the document has no export")
		return
	}
	t := table.New("EXPORTER", "TO", "CONNECTED", ">SEQUENCE", ">ACKNOWLEDGED", ">WAITING", ">BYTES", ">LOST")
	sources := table.New("SWITCH", "SYSTEM", ">REPORTS")
	n := 0
	for _, e := range m.Exports {
		t.Row(e.Name, e.To, yes(e.Connected), e.Sequence, e.Acknowledged, e.Waiting, size(e.WaitingBytes)+" of "+size(e.MemoryBytes), e.Lost)
		for _, s := range e.Sources {
			n++
			sources.Row(s.Switch, s.System, s.Reports)
		}
	}
	t.Print(w)
	if n > 0 {
		fmt.Fprintln(w)
		sources.Print(w)
	}
}

func printWorkers(w io.Writer, m *api.Workers) {
	t := table.New(">WORKER", "POLL", ">CPU", ">PORTS", ">BUSY", ">PER VEC", ">PER KICK", ">MAX LOOP", ">LATE P99", ">LATE MAX")
	for _, e := range m.Workers {
		cpu := "-"
		if e.Cpu >= 0 {
			cpu = fmt.Sprint(e.Cpu)
		}
		t.Row(e.Worker, e.Poll, cpu, e.Ports, fmt.Sprintf("%.1f%%", 100*e.BusyRatio), fmt.Sprintf("%.1f", e.FramesPerVector), fmt.Sprintf("%.1f", e.FramesPerKick),
			cli.Span(e.MaxLoop), cli.Span(e.LatenessP99), cli.Span(e.LatenessMax))
	}
	t.Print(w)
	mem := m.Memory
	pages := ""
	if mem.HugePages {
		pages = " in huge pages"
	}
	fmt.Fprintf(w, "packet memory%s: %d of %d chunks free\nheap %s, %d collections, longest pause %s\n",
		pages, mem.FreeChunks, mem.Chunks, size(mem.HeapBytes), mem.GcCycles, cli.Span(uint64(mem.GcPauseMaxSeconds*1e9)))
}

func (a *app) showConfigCommand() *cobra.Command {
	var defaults bool
	c := &cobra.Command{Use: "config", Short: "The configuration in force", Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			client, address, err := a.client()
			if err != nil {
				return err
			}
			doc, err := client.GetConfig(c.Context(), &api.GetConfigRequest{Defaults: defaults})
			if err != nil {
				return control.Explain(address, err)
			}
			if !a.json {
				_, err := io.WriteString(c.OutOrStdout(), doc.Yaml)
				return err
			}
			parsed, err := config.Parse("the daemon's configuration", []byte(doc.Yaml))
			if err != nil {
				return err
			}
			return cli.PrintValue(c.OutOrStdout(), parsed)
		}}
	c.Flags().BoolVar(&defaults, "defaults", false, "write out what was left out")
	return c
}

func (a *app) showVersion(c *cobra.Command, _ []string) error {
	client, address, err := a.client()
	if err != nil {
		return err
	}
	v, err := client.GetVersion(c.Context(), &api.GetVersionRequest{})
	if err != nil {
		return control.Explain(address, err)
	}
	if a.json {
		return cli.PrintJSON(c.OutOrStdout(), v)
	}
	fmt.Fprintf(c.OutOrStdout(), "daemon %s (%s), kernel %s, up %.0f s, configuration %d\nprocess %d, socket %s\nclient %s\n",
		v.Version, v.Go, v.Kernel, v.UptimeSeconds, v.Generation, v.Pid, v.Socket, version)
	return nil
}
