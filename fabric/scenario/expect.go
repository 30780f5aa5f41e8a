package scenario

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"gswitch/fabric/measure"
	"gswitch/fabric/results"
	"gswitch/section"
	"gswitch/units"
)

// Expectation is an expected result or, with Deviates, a published result that is known
// not to be reproduced.
type Expectation struct {
	Text     string
	Line     int
	Deviates string // the reason of a deviation, "" for an expected result
	expr     *node
}

// expectations parses both lists and checks that every name in them has a meaning.
func (s *Scenario) expectations(root *yaml.Node) error {
	var errs section.Errors
	add := func(at *yaml.Node, key, text, deviates string) {
		fail := func(err error) {
			errs = append(errs, section.Error{File: s.File, Line: at.Line, Column: at.Column, Key: key, Problem: fmt.Sprintf("%.200q: %v", text, err)})
		}
		n, err := parseExpr(text)
		if err != nil {
			fail(err)
			return
		}
		constant := true
		n.refs(func(r *ref) {
			constant = false
			if err := s.bind(r); err != nil {
				fail(err)
			}
		})
		if constant {
			fail(errors.New("names no value of a run, so that no run can decide it; write what must hold of one, such as slowdown_p99 < 3"))
			return
		}
		s.Expect = append(s.Expect, &Expectation{text, at.Line, deviates, n})
	}
	for i, text := range s.Doc.Expect {
		add(child(root, "expect").Content[i], fmt.Sprintf("expect[%d]", i), text, "")
	}
	for i, d := range s.Doc.Deviates {
		add(child(child(root, "deviates").Content[i], "claim"), fmt.Sprintf("deviates[%d].claim", i), d.Claim, d.Why)
	}
	if len(errs) > 0 {
		return errs
	}
	return nil
}

// judgeNothing is the way out where expectations pin points that are not swept.
const judgeNothing = "to run other points and judge nothing, --set 'expect=[]' --set 'deviates=[]'"

// bind determines which part of a name is the variant and checks the rest.
func (s *Scenario) bind(r *ref) error {
	variants := map[string]bool{}
	var names []string
	for i := range s.Runs {
		if v := s.Runs[i].Variant; v != "" && !variants[v] {
			variants[v] = true
			names = append(names, v)
		}
	}
	if first, rest, ok := strings.Cut(r.key, "."); r.pinned == nil && ok && variants[first] {
		r.variant, r.key = first, rest
	}
	if r.variant != "" && !variants[r.variant] {
		return fmt.Errorf("%s: there is no variant %q; there are %s", r.text, r.variant, strings.Join(names, ", "))
	}
	for k, v := range r.pinned {
		var values, keys []string
		for i := range s.Runs {
			for _, set := range s.Runs[i].Point {
				if !slices.Contains(keys, set.Key) {
					keys = append(keys, set.Key)
				}
				if set.Key == k && !slices.Contains(values, set.Value) {
					values = append(values, set.Value)
				}
			}
		}
		switch {
		case len(values) == 0:
			has := "nothing is swept"
			if len(keys) > 0 {
				has = "it has " + strings.Join(keys, ", ")
			}
			return fmt.Errorf("%s: this pins %s to %q, and the sweep has no key %q; %s; %s", r.text, k, v, k, has, judgeNothing)
		case !slices.Contains(values, v):
			return fmt.Errorf("%s: this pins a point, and the sweep does not set %s to %q; it has %s; %s", r.text, k, v, strings.Join(values, ", "), judgeNothing)
		}
	}
	for i := range s.Runs {
		if run := &s.Runs[i]; r.fits(run, run) {
			known := run.Doc.Keys()
			if !slices.Contains(known, r.key) && !run.Doc.zero(r.key) && !run.Doc.hop(r.key) && !run.Doc.probed(r.key) {
				if near := units.Nearest(r.key, known); near != "" {
					return fmt.Errorf("%s: %q is no value of a run; did you mean %q?", r.text, r.key, near)
				}
				return fmt.Errorf("%s: %q is no value of a run; gfabric schema values explains all, gfabric check --values lists those of a scenario", r.text, r.key)
			}
			return nil
		}
	}
	return fmt.Errorf("%s: no run fits", r.text)
}

// Keys returns the names of the values that a run of the document can have.
func (d *Document) Keys() []string {
	var sizes, windows, events []string
	for i := range d.Measure.Sizes {
		sizes = append(sizes, d.Measure.Sizes[i].Name)
	}
	for i := range d.Measure.Windows {
		windows = append(windows, d.Measure.Windows[i].Name)
	}
	for i := range d.Measure.Events {
		events = append(events, d.Measure.Events[i].Name)
	}
	return measure.Known(d.Groups(), sizes, windows, events)
}

// fits reports whether r refers to run when it is evaluated in the context of another
// run.
func (r *ref) fits(run, context *Run) bool {
	want := context.Variant
	if r.variant != "" {
		want = r.variant
	}
	if run.Variant != want {
		return false
	}
	for i, set := range run.Point {
		value, pinned := r.pinned[set.Key]
		if !pinned {
			value = context.Point[i].Value
		}
		if set.Value != value {
			return false
		}
	}
	return true
}

// Evaluate compares the runs with the expectations. measured[i] is the result of
// s.Runs[i], nil if that was not run. Expectations about one run of one seed are added to
// its Checks. Those that compare runs, or are about the mean of several seeds, are
// returned. Expectations that name a run that was not run are left out.
func (s *Scenario) Evaluate(measured []*results.Run) []results.Check {
	var between []results.Check
	for _, m := range measured {
		if m != nil {
			m.Checks = nil
		}
	}
	for _, e := range s.Expect {
		done := map[string]bool{}
		for i := range s.Runs {
			which := e.runs(s.Runs, &s.Runs[i])
			if len(which) == 0 {
				continue
			}
			id := fmt.Sprint(which)
			if done[id] || slices.ContainsFunc(which, func(k int) bool { return measured[k] == nil }) {
				continue
			}
			done[id] = true
			check := e.check(s.Runs, measured, &s.Runs[i])
			name := s.Runs[which[0]].Name
			switch {
			case len(which) == 1:
				measured[which[0]].Checks = append(measured[which[0]].Checks, check)
				continue
			case !slices.ContainsFunc(which, func(k int) bool { return s.Runs[k].Name != name }):
				check.Run = name
			case e.varies(&s.Runs[i]):
				check.Why = strings.TrimSpace(point(s.Runs[i].Point) + " " + check.Why)
			}
			between = append(between, check)
		}
	}
	return between
}

// varies reports whether e refers to the sweep point of its context, rather than to
// points that it pins only.
func (e *Expectation) varies(context *Run) (yes bool) {
	e.expr.refs(func(r *ref) {
		for _, set := range context.Point {
			if _, pinned := r.pinned[set.Key]; !pinned {
				yes = true
			}
		}
	})
	return yes
}

func point(p []Setting) string {
	var v []string
	for _, s := range p {
		v = append(v, s.Key+"="+s.Value)
	}
	return strings.Join(v, ", ") + ":"
}

// runs returns the indices of the runs that e names in a context, or none if it names a
// run that was not asked for.
func (e *Expectation) runs(all []Run, context *Run) []int {
	found, missing := map[int]bool{}, false
	e.expr.refs(func(r *ref) {
		fits := false
		for i := range all {
			if r.fits(&all[i], context) {
				found[i], fits = true, true
			}
		}
		missing = missing || !fits
	})
	if missing {
		return nil
	}
	return slices.Sorted(maps.Keys(found))
}

// check evaluates e in a context.
func (e *Expectation) check(all []Run, measured []*results.Run, context *Run) results.Check {
	var seen []string
	var estimates []results.Estimate
	several := false
	look := func(r *ref) (float64, error) {
		sum := 0.0
		var values []float64
		for i := range all {
			if !r.fits(&all[i], context) {
				continue
			}
			x, ok := measured[i].Values[r.key]
			if !ok {
				if !all[i].Doc.zero(r.key) {
					return 0, fmt.Errorf("%s was not measured", r.text)
				}
				x = 0 // nothing was dropped for this reason, or no trace ended there
			}
			sum += x
			values = append(values, x)
		}
		mean := sum / float64(len(values))
		text := fmt.Sprintf("%s = %s", r.text, quantity(r.key, mean))
		if !slices.Contains(seen, text) {
			seen = append(seen, text)
			estimates = append(estimates, results.NewEstimate(r.text, values))
			several = several || len(values) > 1
		}
		return mean, nil
	}
	c := results.Check{Text: e.Text, Got: math.NaN(), Deviates: e.Deviates}
	ok, err := e.expr.eval(look)
	if err != nil {
		c.Why = err.Error()
		return c
	}
	c.OK = (ok != 0) == (e.Deviates == "")
	c.Got, _ = e.expr.subject().eval(look)
	c.Why = strings.Join(seen, ", ")
	if several {
		c.Values = estimates
	}
	if e.expr.subject().op != "value" {
		c.Why = short(c.Got) + ", from " + c.Why
	}
	return c
}

// zero reports whether a missing value counts as 0: drops by reason, traces that end or
// loop at a node, and nodes that pause others.
func (d *Document) zero(key string) bool {
	of := func(begin string) bool { return strings.HasPrefix(key, begin) && strings.HasSuffix(key, "_total") }
	return strings.HasPrefix(key, "drops_") || len(d.Measure.Traces) > 0 && (of("ends_at_") || of("loops_at_") || of("pauses_by_"))
}

// hop reports whether key names a value of a hop, whether or not a trace has that hop.
func (d *Document) hop(key string) bool {
	return len(d.Measure.Traces) > 0 && strings.HasPrefix(key, "hop_") && (strings.HasSuffix(key, "_max_seconds") || strings.HasSuffix(key, "_packets_total"))
}

// probed reports whether key names a value of a series of probes.
func (d *Document) probed(key string) bool {
	for i := range d.Probes {
		if what, ok := strings.CutPrefix(key, "probe_"+d.Probes[i].Name+"_"); ok && slices.Contains([]string{"sent_total", "lost_total", "rtt_mean_seconds", "rtt_max_seconds"}, what) {
			return true
		}
	}
	return false
}
