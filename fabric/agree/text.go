package agree

import (
	"fmt"
	"io"
	"math"
	"strings"

	"gswitch/fabric/results"
	"gswitch/table"
)

// Text writes the comparison as a table: every judged value of every run on
// both engines, then the pairs that stand in another order.
func (c *Comparison) Text(w io.Writer) error {
	var b strings.Builder
	title := c.Scenario
	if c.Title != "" {
		title += ": " + c.Title
	}
	fmt.Fprintln(&b, title)
	t := table.New("RUN", "VALUE", "VIRTUAL TIME", "REAL FRAMES", "DISTANCE", "BOUND", "")
	for i := range c.Runs {
		c.Runs[i].rows(t)
	}
	t.Print(&b)
	reversed := 0
	for _, o := range c.Orders {
		if o.Reversed {
			reversed++
			fmt.Fprintf(&b, "OTHER ORDER of %s: %s below %s in virtual time (%s, %s), not on real frames (%s, %s)\n", label(o.Value), o.A, o.B,
				cell(o.Value, &o.Sim[0]), cell(o.Value, &o.Sim[1]), cell(o.Value, &o.Real[0]), cell(o.Value, &o.Real[1]))
		}
	}
	if n := len(c.Orders); n > 0 && reversed == 0 {
		fmt.Fprintf(&b, "same order of all %d pairs of runs and values that virtual time separates\n", n)
	}
	for i := range c.Runs {
		if r := &c.Runs[i]; !r.Valid {
			fmt.Fprintf(&b, "%s is INVALID and not judged%s\n", r.Name, reasons(r.Timing))
		}
	}
	for _, m := range c.Missing {
		fmt.Fprintf(&b, "%s was not run on real frames\n", m)
	}
	fmt.Fprintln(&b, c.Verdict())
	_, err := io.WriteString(w, b.String())
	return err
}

func reasons(t *results.Timing) string {
	if t == nil {
		return ": nothing says how well it kept time"
	}
	s := ": " + strings.Join(t.Why, "; ")
	if len(t.Remedies) > 0 {
		s += ". What helps: " + strings.Join(t.Remedies, "; ")
	}
	return s
}

func (r *Run) rows(t *table.Table) {
	name := r.Name
	for _, v := range append(append([]Value{}, r.Values...), r.Shown...) {
		distance, bound, verdict := "-", "", ""
		switch {
		case v.Bound == 0:
			distance = ""
		case !r.Valid:
			verdict = "not judged"
		case v.OK:
			verdict = "ok"
		default:
			verdict = "BEYOND"
		}
		if v.Distance != nil {
			distance = inUnit(*v.Distance, v.InBDP, true)
		}
		if v.Bound > 0 {
			bound = inUnit(v.Bound, v.InBDP, false)
		}
		t.Row(name, label(v.Name), cell(v.Name, v.Sim), cell(v.Name, v.Real), distance, bound, verdict)
		name = ""
	}
}

func inUnit(x float64, bdp, signed bool) string {
	format := "%.1f %%"
	if bdp {
		format = "%.3f BDP"
	} else {
		x *= 100
	}
	if signed {
		format = strings.Replace(format, "%", "%+", 1)
	}
	return fmt.Sprintf(format, x)
}

// label is the name of a value without its unit.
func label(name string) string {
	for _, unit := range []string{"_bytes", "_bps", "_share", "_total"} {
		name = strings.TrimSuffix(name, unit)
	}
	return strings.ReplaceAll(name, "_", " ")
}

func cell(name string, v *float64) string {
	switch {
	case v == nil:
		return "-"
	case strings.HasSuffix(name, "_bytes"):
		return fmt.Sprintf("%.1f kB", *v/1e3)
	case strings.HasSuffix(name, "_bps"):
		return fmt.Sprintf("%.2f Gb/s", *v/1e9)
	case strings.HasSuffix(name, "_share"):
		return fmt.Sprintf("%.2f %%", *v*100)
	case *v == math.Trunc(*v):
		return fmt.Sprintf("%.0f", *v)
	}
	return fmt.Sprintf("%.3f", *v)
}
