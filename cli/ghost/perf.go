package ghost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"gswitch/control/api"
	"gswitch/control/cli"
	"gswitch/table"
	"gswitch/units"
)

func (a *app) perfCommand() *cobra.Command {
	var o own
	var h how
	var sizes []string
	var all bool
	var count, depth uint32
	c := &cobra.Command{
		Use:       "perf write|read|send --to ADDRESS",
		Short:     "Bandwidth and latency of RDMA operations",
		ValidArgs: []string{"write", "read", "send"},
		Long: `Measure RDMA Write, Read or Send: for each size bandwidth with --depth
operations under way, then latency with one at a time. Latency runs from the
posting of an operation to its completion. The other host must serve.`,
		Example: `  ghost perf write --to 10.0.0.2
  ghost perf read --to 10.0.0.2 --size 4KB --size 64KB --json
  ghost perf send --to 10.0.0.2 --all --count 100`,
		Args: cli.Args(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)),
		RunE: func(c *cobra.Command, words []string) error {
			r, err := h.request()
			if err != nil {
				return err
			}
			var list []uint64
			for _, s := range sizes {
				var n units.Size
				if err := n.UnmarshalText([]byte(s)); err != nil {
					return cli.Usage(fmt.Errorf("--size: %w", err))
				}
				list = append(list, uint64(n))
			}
			if all {
				list = nil
				for n := uint64(2); n <= 1<<20; n *= 2 {
					list = append(list, n)
				}
			}
			r.Operation, r.Count, r.Summary = words[0], count, true
			return o.with(c, a, func(ctx context.Context, client api.HostClient) error {
				return a.perf(ctx, c.OutOrStdout(), client, r, list, depth)
			})
		},
	}
	o.flags(c, true)
	h.flags(c)
	f := c.Flags()
	f.StringArrayVarP(&sizes, "size", "s", []string{"64KiB"}, "bytes of an operation (repeat)")
	f.BoolVarP(&all, "all", "a", false, "sizes from 2 B to 1 MiB")
	f.Uint32VarP(&count, "count", "n", 100, "operations of each size")
	f.Uint32Var(&depth, "depth", 16, "operations under way at once, for bandwidth")
	return c
}

// perfRow is what perf found at one size. Times are in nanoseconds.
type perfRow struct {
	Operation     string  `json:"operation"`
	Bytes         uint64  `json:"bytes"`
	Iterations    uint64  `json:"iterations"`
	BitsPerSec    float64 `json:"bits_per_second"`
	MessageRate   float64 `json:"messages_per_second"`
	LatencyMin    uint64  `json:"latency_min"`
	LatencyMean   float64 `json:"latency_mean"`
	LatencyP50    uint64  `json:"latency_p50"`
	LatencyP99    uint64  `json:"latency_p99"`
	LatencyMax    uint64  `json:"latency_max"`
	Retransmitted uint64  `json:"retransmitted"`
	Corrupt       uint64  `json:"corrupt"`
}

func (a *app) perf(ctx context.Context, w io.Writer, client api.HostClient, r *api.TransferRequest, sizes []uint64, depth uint32) error {
	var rows []perfRow
	nothing := func(*api.TransferSample) {}
	var wrong error
	for _, r.Size = range sizes {
		r.Depth = depth
		many, err := a.move(ctx, client, r, nothing)
		if err != nil {
			return err
		}
		r.Depth = 1
		single, err := a.move(ctx, client, r, nothing)
		if err != nil {
			return err
		}
		b, l := many.Result, single.Result
		row := perfRow{Operation: r.Operation, Bytes: r.Size, Iterations: b.Completion.GetCount(), BitsPerSec: b.Goodput, Retransmitted: b.Retransmitted + l.Retransmitted, Corrupt: b.Corrupt + l.Corrupt}
		if b.Elapsed > 0 {
			row.MessageRate = 1e9 * float64(row.Iterations) / float64(b.Elapsed)
		}
		if p := l.Completion; p != nil {
			row.LatencyMin, row.LatencyMean, row.LatencyP50, row.LatencyP99, row.LatencyMax = p.Min, p.Mean, p.P50, p.P99, p.Max
		}
		rows = append(rows, row)
		wrong = errors.Join(wrong, corrupted(b), corrupted(l))
	}
	if a.json {
		text, err := json.MarshalIndent(rows, "", "  ")
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\n", text)
		return wrong
	}
	fmt.Fprintf(w, "RDMA %s bandwidth, %d at once\n", r.Operation, depth)
	t := table.Right("#bytes", "#iterations", "BW [Mb/s]", "MsgRate [kpps]", "sent again")
	for _, p := range rows {
		t.Rowf("%d\t%d\t%.2f\t%.3f\t%d", p.Bytes, p.Iterations, p.BitsPerSec/1e6, p.MessageRate/1e3, p.Retransmitted)
	}
	t.Print(w)
	fmt.Fprintf(w, "\nRDMA %s latency\n", r.Operation)
	t = table.Right("#bytes", "#iterations", "t_min [us]", "t_max [us]", "t_typical [us]", "t_avg [us]", "t_99% [us]")
	us := func(ns uint64) float64 { return float64(ns) / 1e3 }
	for _, p := range rows {
		t.Rowf("%d\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f", p.Bytes, p.Iterations, us(p.LatencyMin), us(p.LatencyMax), us(p.LatencyP50), p.LatencyMean/1e3, us(p.LatencyP99))
	}
	t.Print(w)
	return wrong
}
