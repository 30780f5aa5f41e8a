package compare

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Line prints one run while the comparison goes on.
func (r Result) Line(m Mode) string {
	var s strings.Builder
	fmt.Fprintf(&s, "round %d  %5d B  %-16s", r.Round, r.Size, r.DUT)
	switch {
	case m == Latency && r.RTT != nil:
		fmt.Fprintf(&s, " RTT us p50 %.1f p99 %.1f max %.1f, lost %d", r.RTT.P50, r.RTT.P99, r.RTT.Max, r.RTT.Lost)
	case m == Idle:
		fmt.Fprintf(&s, " user %.1f %% system %.1f %% of a core, %.0f MB", r.Use.User, r.Use.System, megabytes(r))
	default:
		fmt.Fprintf(&s, " %7.1f kpps %6.3f Gb/s (offered %.0f)", r.Kpps, r.Gbps, r.Offered)
		if r.UserNS > 0 {
			fmt.Fprintf(&s, " user %.0f ns/frame, waited %.1f %%, %.0f MB", r.UserNS, r.Use.Waiting, megabytes(r))
		}
		if r.PerCall > 0 {
			fmt.Fprintf(&s, ", %.0f frames/call", r.PerCall)
		}
		for i, c := range r.Cores {
			fmt.Fprintf(&s, " cpu%d %.0f/%.0f/%.0f", i, c.User, c.System, c.SoftIRQ)
		}
	}
	if r.Invalid != "" {
		fmt.Fprintf(&s, "  INVALID: %s", r.Invalid)
	}
	return s.String()
}

// Median returns the median of v, and 0 of nothing.
func Median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Clone(v)
	slices.Sort(v)
	if len(v)%2 == 1 {
		return v[len(v)/2]
	}
	return (v[len(v)/2-1] + v[len(v)/2]) / 2
}

// values returns what of a forwarder's valid runs of one size, by round.
func values(rs []Result, name string, size int, of func(Result) float64) map[int]float64 {
	v := map[int]float64{}
	for _, r := range rs {
		if r.DUT == name && r.Size == size && r.Invalid == "" {
			v[r.Round] = of(r)
		}
	}
	return v
}

func flat(m map[int]float64) (v []float64) {
	for _, x := range m {
		v = append(v, x)
	}
	slices.Sort(v)
	return v
}

// Ratio is how one forwarder stands to another.
type Ratio struct {
	Medians float64   // ratio of the medians
	Rounds  []float64 // of each round in which both were valid, sorted
}

func ratio(rs []Result, a, b string, size int, of func(Result) float64) (r Ratio) {
	x, y := values(rs, a, size, of), values(rs, b, size, of)
	if len(x) == 0 || len(y) == 0 || Median(flat(y)) == 0 {
		return r
	}
	r.Medians = Median(flat(x)) / Median(flat(y))
	for round, v := range x {
		if w := y[round]; w > 0 {
			r.Rounds = append(r.Rounds, v/w)
		}
	}
	slices.Sort(r.Rounds)
	return r
}

func (r Ratio) String() string {
	switch {
	case r.Medians == 0:
		return "-"
	case len(r.Rounds) == 0:
		return fmt.Sprintf("%.2f", r.Medians)
	}
	return fmt.Sprintf("%.2f (%.2f..%.2f)", r.Medians, r.Rounds[0], r.Rounds[len(r.Rounds)-1])
}

func kpps(r Result) float64   { return r.Kpps }
func userNS(r Result) float64 { return r.UserNS }
func p50(r Result) float64    { return rtt(r, func() float64 { return r.RTT.P50 }) }
func p99(r Result) float64    { return rtt(r, func() float64 { return r.RTT.P99 }) }

func rtt(r Result, of func() float64) float64 {
	if r.RTT == nil {
		return 0
	}
	return of()
}

// column is a column of the table: its heading and what stands there for a forwarder.
type column struct {
	head string
	cell func(name string, size int) string
}

func columns(o Options, rs []Result) []column {
	median := func(head, format string, of func(Result) float64) column {
		return column{head, func(name string, size int) string {
			return fmt.Sprintf(format, Median(flat(values(rs, name, size, of))))
		}}
	}
	over := func(head, yardstick string, of func(Result) float64) column {
		return column{head + " / " + yardstick, func(name string, size int) string {
			return ratio(rs, name, yardstick, size, of).String()
		}}
	}
	switch o.Mode {
	case Latency:
		return []column{median("p50 us", "%.1f", p50), median("p99 us", "%.1f", p99),
			over("p50", "testpmd", p50), over("p99", "testpmd", p99), over("p50", "c", p50)}
	case Idle:
		return []column{
			median("user %", "%.1f", func(r Result) float64 { return r.Use.User }),
			median("system %", "%.1f", system),
			median("MB", "%.0f", megabytes),
		}
	}
	end := func(head string, of func([]float64) float64) column {
		return column{head, func(name string, size int) string {
			return fmt.Sprintf("%.0f", of(flat(values(rs, name, size, kpps))))
		}}
	}
	cols := []column{median("kpps", "%.0f", kpps), end("min", slices.Min[[]float64]), end("max", slices.Max[[]float64]), median("user ns", "%.0f", userNS)}
	if o.Mode == Paced {
		cols = append(cols, median("lost", "%.0f", lost))
	}
	for _, y := range []string{"c", "testpmd", "ovs", "bridge"} {
		cols = append(cols, over("", y, kpps))
	}
	return cols
}

// Table prints medians and ratios of all forwarders in the order of names.
func Table(w io.Writer, o Options, names []string, rs []Result) {
	cols := columns(o, rs)
	for _, size := range o.Sizes {
		fmt.Fprintf(w, "\n%s, %d-byte frames", o.Mode, size)
		if o.Rate > 0 {
			fmt.Fprintf(w, ", %.0f kpps offered", o.Rate/1e3)
		}
		fmt.Fprintf(w, "; medians of the valid rounds, ratios of medians (lowest and highest of a round)\n")
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprint(t, "\tvalid")
		for _, c := range cols {
			fmt.Fprintf(t, "\t%s", strings.TrimSpace(c.head))
		}
		fmt.Fprintln(t)
		for _, name := range names {
			valid := len(values(rs, name, size, kpps))
			fmt.Fprintf(t, "%s\t%d", name, valid)
			for _, c := range cols {
				cell := "-"
				if valid > 0 {
					cell = c.cell(name, size)
				}
				fmt.Fprintf(t, "\t%s", cell)
			}
			fmt.Fprintln(t)
		}
		t.Flush()
	}
}

// bar is a promise of the project about how it stands to its peers.
type bar struct {
	mode  Mode
	text  string
	least bool // the bound is the least, not the most, that holds
	bound float64
	value func([]Result) float64 // 0 = not measured
}

func against(a, b string, of func(Result) float64) func([]Result) float64 {
	return func(rs []Result) float64 { return ratio(rs, a, b, 64, of).Medians }
}

const none = 1e-9 // a measured nothing, where 0 would say that nothing was measured

// ofValid is the median over the valid 64-byte runs. Nothing is a value too.
func ofValid(name string, of func(Result) float64) func([]Result) float64 {
	return func(rs []Result) float64 {
		v := flat(values(rs, name, 64, of))
		if len(v) == 0 {
			return 0
		}
		return max(Median(v), none)
	}
}

func framesPerCall(name string) func([]Result) float64 {
	return func(rs []Result) float64 {
		return Median(flat(values(rs, name, 64, func(r Result) float64 { return r.PerCall })))
	}
}

func lost(r Result) float64   { return float64(r.Sent) - float64(r.Received) }
func parked(r Result) float64 { return r.Use.User + r.Use.System }
func system(r Result) float64 { return r.Use.System }

func megabytes(r Result) float64 { return float64(r.Resident) / 1e6 }

var bars = []bar{
	{Throughput, "gswitch-l2 / testpmd", true, 1.0, against("gswitch-l2", "testpmd", kpps)},
	{Throughput, "gswitch-l2 / c", true, 0.98, against("gswitch-l2", "c", kpps)},
	{Throughput, "gswitch-l2 / ovs", true, 3.5, against("gswitch-l2", "ovs", kpps)},
	{Throughput, "gswitch-full / testpmd", true, 0.97, against("gswitch-full", "testpmd", kpps)},
	{Throughput, "gswitch-l2 user ns/frame", false, 70, ofValid("gswitch-l2", userNS)},
	{Throughput, "gswitch-full user ns/frame", false, 100, ofValid("gswitch-full", userNS)},
	{Throughput, "gswitch-l2 frames/call", true, 60, framesPerCall("gswitch-l2")},
	{Throughput, "gswitch-full frames/call", true, 60, framesPerCall("gswitch-full")},
	{Throughput, "gswitch-chain / gswitch-l2", true, 0.8, against("gswitch-chain", "gswitch-l2", kpps)},
	{Throughput, "gswitch-rocc / gswitch-rated", true, 0.95, against("gswitch-rocc", "gswitch-rated", kpps)},
	{Throughput, "gswitch-recorded / gswitch-unicast", true, 0.97, against("gswitch-recorded", "gswitch-unicast", kpps)},
	{Throughput, "gswitch-paths / gswitch-hash", true, 0.95, against("gswitch-paths", "gswitch-hash", kpps)},
	{Throughput, "gswitch-telemetry / gswitch-pair", true, 0.90, against("gswitch-telemetry", "gswitch-pair", kpps)},
	{Paced, "gswitch-l2 frames lost", false, none, ofValid("gswitch-l2", lost)},
	{Paced, "gswitch-full frames lost", false, none, ofValid("gswitch-full", lost)},
	{Latency, "gswitch-l2 / testpmd, p50", false, 1, against("gswitch-l2", "testpmd", p50)},
	{Latency, "gswitch-l2 / testpmd, p99", false, 1.5, against("gswitch-l2", "testpmd", p99)},
	{Idle, "gswitch-l2 (spinning) system %", false, 1, ofValid("gswitch-l2", system)},
	{Idle, "gswitch-adaptive (parked) % of a core", false, 2, ofValid("gswitch-adaptive", parked)},
}

// Bars prints which of the project's bars hold in the runs with 64-byte
// frames, and reports whether all that were measured do.
func Bars(w io.Writer, o Options, rs []Result) bool {
	if !slices.Contains(o.Sizes, 64) {
		return true
	}
	ok := true
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, b := range bars {
		v := b.value(rs)
		if b.mode != o.Mode || v == 0 {
			continue
		}
		sign, verdict := "<=", "holds"
		if b.least {
			sign = ">="
		}
		if b.least && v < b.bound || !b.least && v > b.bound {
			verdict, ok = "MISSED", false
		}
		fmt.Fprintf(t, "%s\t%.2f\t%s %.2f\t%s\n", b.text, v, sign, b.bound, verdict)
	}
	fmt.Fprintln(w)
	t.Flush()
	return ok
}
