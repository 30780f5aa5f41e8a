package demo

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"gswitch/control/api"
	"gswitch/table"
	"gswitch/units"
)

// Result is what came of a demo.
type Result struct {
	Rate     units.Rate // of links between switches
	HostRate units.Rate
	Hosts    []string
	Tool     string
	Pings    []Ping
	Flows    []Flow
	Probes   []Probe
	Drops    []Drop // most frequent first
	Marked   uint64 // frames that bear an ECN mark
	PausesRx uint64 // pause and PFC frames that asked a switch to stop
	PausesTx uint64
	Late     Lateness
	Failures []string
}

// Drop is a reason with its frames, over all switches.
type Drop struct {
	Reason string
	Frames uint64
	Loss   bool
}

// counters reads what the switches counted.
func (d *demo) counters(ctx context.Context, r *Result) error {
	drops, err := d.client.ListDrops(ctx, &api.ListRequest{})
	if err != nil {
		return err
	}
	sum := map[string]*Drop{}
	for _, x := range drops.Drops {
		if sum[x.Reason] == nil {
			sum[x.Reason] = &Drop{Reason: x.Reason, Loss: x.Loss}
		}
		sum[x.Reason].Frames += x.Frames
	}
	for _, x := range sum {
		r.Drops = append(r.Drops, *x)
	}
	slices.SortFunc(r.Drops, func(a, b Drop) int {
		return cmp.Or(cmp.Compare(b.Frames, a.Frames), cmp.Compare(a.Reason, b.Reason))
	})
	queues, err := d.client.ListQueues(ctx, &api.ListRequest{})
	if err != nil {
		return err
	}
	for _, q := range queues.Queues {
		r.Marked += q.EcnMarkedFrames
	}
	workers, err := d.client.ListWorkers(ctx, &api.ListRequest{})
	if err != nil {
		return err
	}
	for _, w := range workers.Workers {
		r.Late.SwitchP99 = max(r.Late.SwitchP99, time.Duration(w.LatenessP99))
		r.Late.SwitchMax = max(r.Late.SwitchMax, time.Duration(w.LatenessMax))
		r.Late.Busy = max(r.Late.Busy, w.BusyRatio)
	}
	pfc, err := d.client.ListPFC(ctx, &api.ListRequest{})
	if err != nil {
		return err
	}
	for _, c := range pfc.Classes {
		r.PausesRx += c.RxXoff
		r.PausesTx += c.TxXoff
	}
	return nil
}

// judge notes what did not work.
func (r *Result) judge() {
	fail := func(format string, args ...any) { r.Failures = append(r.Failures, fmt.Sprintf(format, args...)) }
	for _, p := range r.Pings {
		switch {
		case p.Err != nil:
			fail("ping %s to %s: %v", p.From, p.To, p.Err)
		case p.Lost > 0:
			fail("ping %s to %s: %d of %d lost", p.From, p.To, p.Lost, p.Sent)
		}
	}
	for _, f := range r.Flows {
		switch {
		case f.Err != nil:
			fail("stream %s to %s: %v", f.From, f.To, f.Err)
		case f.BitsPerSecond <= 0:
			fail("stream %s to %s carried nothing", f.From, f.To)
		}
	}
	for _, p := range r.Probes {
		switch {
		case p.Err != nil:
			fail("requests %s to %s: %v", p.From, p.To, p.Err)
		case p.Count == 0:
			fail("requests %s to %s: none was answered", p.From, p.To)
		}
	}
}

// write writes the closing tables.
func (r *Result) write(w io.Writer) {
	heading(w, "throughput in Mb/s, by %s (links of hosts carry %s, others %s)", r.Tool, r.HostRate, r.Rate)
	r.writeFlows(w)
	heading(w, "request latency under this load, in ms (46 overtakes the streams)")
	t := table.Right("FROM", "TO", "DSCP", "REQUESTS", "MIN", "P50", "P99", "MAX")
	for _, p := range r.Probes {
		t.Rowf("%s\t%s\t%d\t%d\t%.2f\t%.2f\t%.2f\t%.2f", p.From, p.To, p.DSCP, p.Count, p.Min/1e3, p.P50/1e3, p.P99/1e3, p.Max/1e3)
	}
	t.Print(w)

	heading(w, "drops by reason, all switches")
	none := true
	for _, d := range r.Drops {
		if d.Frames == 0 {
			continue
		}
		none = false
		note := ""
		if !d.Loss {
			note = "  (did its work at the switch; not a loss)"
		}
		fmt.Fprintf(w, "%12d  %s%s\n", d.Frames, d.Reason, note)
	}
	if none {
		fmt.Fprintln(w, "        none")
	}
	heading(w, "ECN marks: %d frames; pauses: %d received, %d sent", r.Marked, r.PausesRx, r.PausesTx)
	r.Late.write(w)
	if len(r.Failures) == 0 {
		fmt.Fprintf(w, "\nAll %d pings answered, all %d streams arrived.\n", len(r.Pings), len(r.Flows))
		return
	}
	fmt.Fprintf(w, "\nFAILED:\n  %s\n", strings.Join(r.Failures, "\n  "))
}

// writeFlows writes a row for each host: what it sent to which others, and the sums.
func (r *Result) writeFlows(w io.Writer) {
	t := table.New(">HOST", ">SENT", ">RECEIVED", ">RETRANSMITS", "STREAMS").Indented()
	var total float64
	for _, h := range r.Hosts {
		var sent, received float64
		retransmits := 0
		var streams []string
		for _, f := range r.Flows {
			if f.To == h {
				received += f.BitsPerSecond
			}
			if f.From != h {
				continue
			}
			sent += f.BitsPerSecond
			retransmits += f.Retransmits
			streams = append(streams, fmt.Sprintf("%s %.1f", f.To, f.BitsPerSecond/1e6))
		}
		total += received
		again := fmt.Sprint(retransmits)
		if retransmits < 0 {
			again = "-"
		}
		t.Rowf("%s\t%.1f\t%.1f\t%s\t%s", h, sent/1e6, received/1e6, again, strings.Join(streams, ", "))
	}
	t.Rowf("all\t\t%.1f", total/1e6)
	t.Print(w)
}
