package show

import (
	"fmt"
	"io"
	"math"
	"strings"

	"gswitch/fabric/view"
)

// Widths of the columns of the table: what a row is, a measured value and a
// predicted one.
const (
	labelWidth     = 16
	measuredWidth  = 14
	predictedWidth = 12
	textWidth      = 80
)

// Text writes the table for people: as many runs side by side as a terminal of
// 80 columns has room for, and then what is to be said of them.
func (t *Table) Text(w io.Writer) error {
	var b strings.Builder
	for from := 0; from < len(t.Runs); {
		to := from + max(1, (textWidth-labelWidth)/t.width())
		to = min(to, len(t.Runs))
		t.block(&b, t.Runs[from:to])
		b.WriteByte('\n')
		from = to
	}
	for i := range t.Runs {
		if g := t.Runs[i].Timing; g != nil && !g.Valid {
			fmt.Fprintf(&b, "WARNING: %s on real frames is INVALID, its numbers are no result: %s. What helps: %s.\n",
				t.Runs[i].Title, strings.Join(g.Why, "; "), strings.Join(g.Remedies, "; "))
		}
	}
	t.gist(&b)
	if t.Agrees != nil {
		which := ""
		if len(t.Agrees.Values) > 0 {
			which = ": " + strings.Join(t.Agrees.Values, ", ")
		}
		fmt.Fprintf(&b, "Real frames beside the prediction: %s%s.\n", t.Agrees.Verdict, which)
	}
	for _, x := range t.Failed {
		fmt.Fprintf(&b, "FAILED: %s\n", x)
	}
	switch {
	case len(t.Failed) > 0:
	case len(t.Invalid) > 0:
		fmt.Fprintf(&b, "The %d expectations of %s that can be judged hold.\n", t.Held, t.Scenario)
	default:
		fmt.Fprintf(&b, "All %d expectations of %s hold.\n", t.Held, t.Scenario)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// real reports whether there is anything of real frames.
func (t *Table) real() bool { return t.Agrees != nil }

// width is that of the columns of a run.
func (t *Table) width() int {
	if t.real() {
		return measuredWidth + predictedWidth
	}
	return measuredWidth
}

// block writes the table of some runs.
func (t *Table) block(b *strings.Builder, runs []Run) {
	row := func(label string, measured, predicted func(r *Run) string) {
		line := fmt.Sprintf("%-*s", labelWidth, label)
		for i := range runs {
			if t.real() {
				line += fmt.Sprintf("%*s", measuredWidth, measured(&runs[i])) + fmt.Sprintf("%*s", predictedWidth, predicted(&runs[i]))
			} else {
				line += fmt.Sprintf("%*s", measuredWidth, predicted(&runs[i]))
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	none := func(*Run) string { return "" }
	row("", none, func(r *Run) string { return r.Title })
	if t.real() {
		row("", func(*Run) string { return "real frames" }, func(*Run) string { return "predicted" })
	}
	for _, x := range shown {
		row(x.label, func(r *Run) string { return cell(r.Measured, x.value) }, func(r *Run) string { return cell(r.Predicted, x.value) })
	}
	if !t.real() {
		return
	}
	late := func(f func(r *Run) string) func(r *Run) string {
		return func(r *Run) string {
			if r.Timing == nil {
				return "-"
			}
			return f(r)
		}
	}
	row("late       p99", late(func(r *Run) string { return view.Seconds(r.Timing.LateP99) }), late(func(r *Run) string { return "< " + view.Seconds(r.Timing.Bound) }))
	row("kept time", late(func(r *Run) string {
		if r.Timing.Valid {
			return "yes"
		}
		return "INVALID"
	}), none)
}

// cell writes a value in its unit.
func cell(values map[string]float64, name string) string {
	v, ok := values[name]
	switch {
	case !ok:
		return "-"
	case strings.HasSuffix(name, "_seconds"):
		return view.Seconds(v)
	case strings.HasSuffix(name, "_bytes"):
		return view.Bytes(v)
	case strings.HasSuffix(name, "_bps"):
		return view.Rate(v)
	case strings.HasSuffix(name, "_total"):
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// gist says what the last run does better or worse than the first.
func (t *Table) gist(b *strings.Builder) {
	if len(t.Runs) < 2 {
		return
	}
	x, y := t.Runs[0].best(), t.Runs[len(t.Runs)-1].best()
	if x == nil || y == nil {
		return
	}
	fmt.Fprintf(b, "%s in place of %s: 95 %% of the time the queue is below %s, not %s%s;\nthe slowest flow takes %s, not %s; switches pause a neighbour %s times, not %s.\n",
		t.Runs[len(t.Runs)-1].Title, t.Runs[0].Title, cell(y, "queue_p95_bytes"), cell(x, "queue_p95_bytes"), factor(x["queue_p95_bytes"], y["queue_p95_bytes"]),
		cell(y, "fct_max_seconds"), cell(x, "fct_max_seconds"), cell(y, "pauses_total"), cell(x, "pauses_total"))
}

// best are the values that count: of real frames, if there are any and the run
// kept time; nil if it did not.
func (r *Run) best() map[string]float64 {
	switch {
	case r.Measured == nil:
		return r.Predicted
	case r.Timing != nil && !r.Timing.Valid:
		return nil
	}
	return r.Measured
}

// factor says how many times one value is another, if it is at all.
func factor(of, by float64) string {
	if f := of / by; f >= 2 && !math.IsInf(f, 0) {
		return fmt.Sprintf(" (a factor of %.0f)", f)
	}
	return ""
}
