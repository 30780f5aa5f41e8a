package show

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gswitch/fabric/agree"
	"gswitch/fabric/results"
	"gswitch/fabric/scenario"
)

// Table is what came out of a show. Values have the names and units of
// results.Run.Values, in the time of the nodes.
type Table struct {
	Scenario string   `json:"scenario"` // the file
	Title    string   `json:"title"`
	Runs     []Run    `json:"runs"`
	Held     int      `json:"expectations_held"`
	Failed   []string `json:"expectations_failed"` // those of runs that kept time
	Invalid  []string `json:"invalid"`             // runs that did not keep time
	Agrees   *Agrees  `json:"agreement,omitempty"` // of real frames with the prediction
	Report   string   `json:"report"`              // the page
}

// Run is a variant of the scenario.
type Run struct {
	Name      string             `json:"name"`
	Title     string             `json:"title"`
	Predicted map[string]float64 `json:"predicted"`          // in virtual time
	Measured  map[string]float64 `json:"measured,omitempty"` // on real frames
	Timing    *results.Timing    `json:"timing,omitempty"`   // how well these kept time
}

// Agrees says how many values of the valid runs are within the bounds of
// package agree.
type Agrees struct {
	Judged  int      `json:"judged"`
	Beyond  int      `json:"beyond"`
	Verdict string   `json:"verdict"`
	Values  []string `json:"values_beyond"` // which
}

// shown are the values of the table: a row each.
var shown = []struct{ label, value string }{
	{"completion p50", "fct_p50_seconds"},
	{"           p95", "fct_p95_seconds"},
	{"           max", "fct_max_seconds"},
	{"queue      p50", "queue_p50_bytes"},
	{"           p95", "queue_p95_bytes"},
	{"           max", "queue_max_bytes"},
	{"pauses", "pauses_total"},
	{"goodput", "goodput_bps"},
	{"Jain index", "jain_index"},
}

// newTable puts the results of both engines side by side. live is nil where
// nothing was run on real frames.
func newTable(s *scenario.Scenario, sim, live *results.File) *Table {
	t := &Table{Scenario: s.File, Title: s.Doc.Title, Failed: []string{}, Invalid: []string{}}
	for i := range s.Runs {
		r := &s.Runs[i]
		v := Run{Name: r.Name, Title: r.Title, Predicted: values(find(sim, r))}
		if x := find(live, r); x != nil {
			v.Measured, v.Timing = values(x), x.Timing
			if x.Timing != nil && !x.Timing.Valid {
				t.Invalid = append(t.Invalid, r.Title)
			}
		}
		t.Runs = append(t.Runs, v)
	}
	t.judge(s, sim, "in virtual time")
	if live != nil {
		t.judge(s, live, "on real frames")
		c := agree.Compare(s, sim, live)
		t.Agrees = &Agrees{c.Judged, c.Beyond, c.Verdict(), beyond(c)}
	}
	return t
}

// beyond lists the values of valid runs that are beyond their bounds, and the
// pairs of runs that stand in another order.
func beyond(c *agree.Comparison) []string {
	v := []string{}
	for i := range c.Runs {
		r := &c.Runs[i]
		for _, x := range r.Values {
			if r.Valid && !x.OK {
				v = append(v, x.Name+" of "+r.Name)
			}
		}
	}
	for _, o := range c.Orders {
		if o.Reversed {
			v = append(v, o.Value+" of "+o.A+" and "+o.B)
		}
	}
	return v
}

func find(f *results.File, like *scenario.Run) *results.Run {
	if f == nil {
		return nil
	}
	i := slices.IndexFunc(f.Runs, func(r results.Run) bool { return r.Name == like.Name && r.Seed == like.Seed })
	if i < 0 {
		return nil
	}
	return &f.Runs[i]
}

// values are those that the table shows.
func values(r *results.Run) map[string]float64 {
	v := map[string]float64{}
	if r == nil {
		return v
	}
	for _, row := range shown {
		if x, ok := r.Values[row.value]; ok {
			v[row.value] = x
		}
	}
	return v
}

// judge counts expectations. A run that did not keep time has no result, so
// that nothing is expected of it, nor of a comparison with it.
func (t *Table) judge(s *scenario.Scenario, f *results.File, where string) {
	count := func(checks []results.Check, who string) {
		for _, c := range checks {
			if c.OK {
				t.Held++
			} else {
				t.Failed = append(t.Failed, fmt.Sprintf("%s, %s: %s, but got %.4g", who, where, c.Text, c.Got))
			}
		}
	}
	all := true
	for i := range s.Runs {
		r := find(f, &s.Runs[i])
		if r == nil || r.Timing != nil && !r.Timing.Valid {
			all = false
			continue
		}
		count(r.Checks, s.Runs[i].Title)
	}
	if all {
		count(f.Checks, "all")
	}
}

// Err is what was wrong, nil if every run kept time and all expectations hold.
func (t *Table) Err() error {
	var errs []error
	if n := len(t.Failed); n > 0 {
		errs = append(errs, fmt.Errorf("%d of %d expectations do not hold", n, n+t.Held))
	}
	if len(t.Invalid) > 0 {
		errs = append(errs, fmt.Errorf("INVALID, as this machine did not keep time: %s; try a larger --scale, and nothing else on the machine", strings.Join(t.Invalid, ", ")))
	}
	return errors.Join(errs...)
}
