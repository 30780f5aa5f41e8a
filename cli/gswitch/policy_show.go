package gswitch

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"gswitch/capture"
	"gswitch/control"
	"gswitch/control/api"
	"gswitch/control/cli"
	"gswitch/frame"
	"gswitch/policy"
	"gswitch/table"
	"gswitch/units"
	"gswitch/wire"
)

func (a *app) policyShow() *cobra.Command {
	var tc bool
	var port string
	c := &cobra.Command{Use: "show", Short: "Show what queues with policies did",
		Long: `Show what each queue of each policy did since the policy came, and what shadows
would have done. LATE is of those refused: they would have waited for longer
than their slack. --tc prints the form of the Linux prototype.

` + cli.JSONHelp(&api.Queues{}),
		Example: "  gswitch policy show\n  gswitch policy show --port eth1 --json\n  gswitch policy show --tc",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			client, address, err := a.client()
			if err != nil {
				return err
			}
			m, err := client.ListQueues(c.Context(), &api.ListRequest{Switch: a.sw, Port: port})
			if err != nil {
				return control.Explain(address, err)
			}
			list := &api.Queues{}
			for _, q := range m.Queues {
				if len(q.Policy)+len(q.Shadow) > 0 {
					list.Queues = append(list.Queues, q)
				}
			}
			switch {
			case a.json:
				return cli.PrintJSON(c.OutOrStdout(), list)
			case tc:
				printTC(c.OutOrStdout(), list)
			default:
				printPolicies(c.OutOrStdout(), list)
			}
			return nil
		}}
	c.Flags().BoolVar(&tc, "tc", false, "as tc qdisc show does for the Linux prototype")
	c.Flags().StringVar(&port, "port", "", "of this port alone")
	return c
}

func printPolicies(w io.Writer, m *api.Queues) {
	if len(m.Queues) == 0 {
		fmt.Fprintln(w, "no egress queue has a policy: gswitch policy apply gives it one")
		return
	}
	name := cli.Namer(m.Queues)
	t := table.New(append([]string{"PORT", ">QUEUE", "", "OF POLICY", ">SIZE", ">WAITING", ">MAX"}, policyTitles()...)...)
	for _, q := range m.Queues {
		for _, part := range []struct {
			kind string
			list []*api.InnerQueue
		}{{"live", q.Policy}, {"shadow", q.Shadow}} {
			for _, p := range part.list {
				max := fmt.Sprintf("%dB", p.Size)
				if p.InPackets {
					max = fmt.Sprint(p.Size)
				}
				row := []any{name(q.Switch, q.Port), q.Queue, part.kind, p.Name, max, p.Packets, p.MaxPackets}
				for i := range policy.Counters {
					row = append(row, control.InnerCount(p, &policy.Counters[i].Counter))
				}
				t.Row(row...)
			}
		}
	}
	t.Print(w)
	for _, q := range m.Queues {
		if q.Draining > 0 {
			fmt.Fprintf(w, "%s queue %d: %d frames still wait under the policy before\n", name(q.Switch, q.Port), q.Queue, q.Draining)
		}
	}
}

// policyTitles are the headings of policy.Counters.
func policyTitles() (v []string) {
	for i := range policy.Counters {
		v = append(v, ">"+policy.Counters[i].Title())
	}
	return v
}

func printTC(w io.Writer, m *api.Queues) {
	for _, q := range m.Queues {
		if len(q.Policy) == 0 {
			continue
		}
		fmt.Fprintf(w, "qdisc openqueue dev %s queue %d\n", q.Port, q.Queue)
		for _, p := range q.Policy {
			fmt.Fprintf(w, "Queue: %s, Max: %d, Curr: %d, Dropped: %d, Total: %d\n", p.Name, p.Size, p.Packets, p.Refused+p.PushedOut, p.Admitted+p.Refused)
		}
	}
}

func policyTrace() *cobra.Command {
	var pcap, rate string
	var each bool
	c := &cobra.Command{Use: "trace FILE --pcap CAPTURE --rate RATE", Short: "Show what a policy would do with the packets of a capture",
		Long: `Give the packets of a capture to a policy at their instants, over a link of the
given rate, and say what becomes of each. No daemon is asked.`,
		Example: "  gswitch policy trace gold.oq --pcap in.pcapng --rate 1Gbps\n  gswitch policy trace gold.oq --pcap in.pcap --rate 10Mbps --each=false",
		Args:    cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, w []string) error {
			p, _, err := readPolicy(c, w[0])
			if err != nil {
				return err
			}
			var bits units.Rate
			if err := bits.UnmarshalText([]byte(rate)); err != nil || bits == 0 {
				return cli.Usage(fmt.Errorf("--rate %q: write the rate of a link, such as 1Gbps", rate))
			}
			if n := len(p.Parts()); n > 1 {
				return cli.Input(fmt.Errorf("%s has %d ports, and a capture does not say by which a packet leaves: leave one of them", w[0], n))
			}
			f, err := os.Open(pcap)
			if err != nil {
				return cli.Input(err)
			}
			defer f.Close()
			r, err := capture.NewReader(f)
			if err != nil {
				return cli.Input(fmt.Errorf("%s: %w", pcap, err))
			}
			return trace(c.OutOrStdout(), p, r, uint64(bits), each)
		}}
	c.Flags().StringVar(&pcap, "pcap", "", "capture, pcap or pcapng")
	c.Flags().StringVar(&rate, "rate", "1Gbps", "of the link")
	c.Flags().BoolVar(&each, "each", true, "a line for each packet; else the sums alone")
	_ = c.MarkFlagRequired("pcap")
	return c
}

// trace runs a capture through a policy.
func trace(w io.Writer, p *policy.Program, r *capture.Reader, rate uint64, each bool) error {
	l := p.NewLink(1, rate, 0)
	queues := p.Queues()
	print := func(at frame.Time, p *policy.Packet, what string) {
		if each {
			fmt.Fprintf(w, "%.9f  #%d  %d bytes  %s  value %d  %s\n", at.Seconds(), p.Ref, p.Size, queues[p.Queue], p.Value, what)
		}
	}
	l.Sent = func(at frame.Time, p *policy.Packet) { print(at, p, "sent after "+cli.Span(uint64(at-p.Arrival))) }
	l.Lost = func(at frame.Time, p *policy.Packet) {
		if p.Arrival == at {
			print(at, p, "dropped as it came")
		} else {
			print(at, p, "pushed out after "+cli.Span(uint64(at-p.Arrival)))
		}
	}
	arena := frame.MustArena(1, 1<<16, 0)
	pool := frame.NewPool(arena)
	parser := wire.NewParser(wire.NewHasher(1, false))
	var begin, now frame.Time
	for n := frame.Ref(1); ; n++ {
		rec, data, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		ref := pool.Alloc()
		m := arena.Reset(ref)
		if !arena.SetBytes(ref, data) {
			return fmt.Errorf("packet %d has %d bytes", n, len(data))
		}
		m.Wire = max(m.Wire, uint32(rec.Wire))
		parser.Parse(arena, []frame.Ref{ref})
		if n == 1 {
			begin = frame.Time(rec.Time)
		}
		now = max(now, frame.Time(rec.Time)-begin) // a capture may step back
		packet := policy.Read(arena, ref)
		packet.Ref = n
		l.Come(now, packet)
		pool.Free(ref)
	}
	l.Until(frame.Never)
	t := table.New(append([]string{"QUEUE", ">MAX"}, policyTitles()...)...)
	stats := l.Stats()
	for i := range stats {
		row := []any{stats[i].Name, stats[i].MaxPackets}
		for k := range policy.Counters {
			row = append(row, policy.Counters[k].Of(&stats[i]))
		}
		t.Row(row...)
	}
	t.Print(w)
	return nil
}
