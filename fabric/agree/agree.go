// Package agree says how far the results of a scenario on real frames are
// from those in virtual time, and whether that is within bounds.
//
// What is judged of each run: the percentiles 50, 95 and 99 of the slowdown of
// flows, of all and of each group, as a share of virtual time's; and the
// percentiles 50 and 95 of queue depths, in bandwidth-delay products. Between
// runs: no pair that differs by more than the bound in virtual time stands in
// the other order on real frames. A run that did not keep time is not judged.
package agree

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gswitch/fabric/results"
	"gswitch/fabric/scenario"
)

// Bounds of what counts as the same.
const (
	SlowdownBound = 0.15       // of virtual time's slowdown
	QueueBound    = 1.5 * 0.10 // bandwidth-delay products: a tenth of one and a half
)

// Comparison is a scenario in virtual time and on real frames.
type Comparison struct {
	Scenario string   `json:"scenario"`
	Title    string   `json:"title,omitempty"`
	Agrees   bool     `json:"agrees"`  // every run was valid and every value within its bound
	Judged   int      `json:"judged"`  // values and pairs of valid runs
	Beyond   int      `json:"beyond"`  // of these, how many exceed their bound
	Invalid  int      `json:"invalid"` // runs that are not judged
	Missing  []string `json:"missing,omitempty"`
	Runs     []Run    `json:"runs"`
	Orders   []Order  `json:"orders,omitempty"`
}

// Run is one run on both engines.
type Run struct {
	Name   string          `json:"name"`
	BDP    float64         `json:"bdp_bytes"` // rate of the fastest host link times T
	Valid  bool            `json:"valid"`
	Timing *results.Timing `json:"timing,omitempty"`
	Values []Value         `json:"values"` // of an invalid run too, but not judged
	Shown  []Value         `json:"shown"`  // for information: no bound
}

// Value is a measured value on both engines. Distance is relative to virtual
// time's, or in bandwidth-delay products for queues.
type Value struct {
	Name     string   `json:"name"`
	Sim      *float64 `json:"sim"` // null: not measured
	Real     *float64 `json:"netns"`
	Distance *float64 `json:"distance"`
	Bound    float64  `json:"bound,omitempty"`
	InBDP    bool     `json:"in_bdp,omitempty"`
	OK       bool     `json:"ok"`
}

// Order is a pair of runs of which virtual time puts A clearly below B.
type Order struct {
	Value    string     `json:"value"`
	A        string     `json:"a"`
	B        string     `json:"b"`
	Sim      [2]float64 `json:"sim"`
	Real     [2]float64 `json:"netns"`
	Reversed bool       `json:"reversed"`
}

// Compare puts the runs of both engines side by side. s is the scenario that
// both were run from.
func Compare(s *scenario.Scenario, sim, live *results.File) *Comparison {
	c := &Comparison{Scenario: s.Doc.Name, Title: s.Doc.Title, Runs: make([]Run, 0, len(sim.Runs))}
	var points []point // of runs that stay where they are: there is room for all
	labels := results.Labels(sim.Runs)
	for i := range sim.Runs {
		v := &sim.Runs[i]
		r := find(live.Runs, v)
		if r == nil {
			c.Missing = append(c.Missing, labels[i])
			continue
		}
		run := Run{Name: labels[i], Timing: r.Timing, Valid: r.Timing != nil && r.Timing.Valid}
		if d := document(s, v); d != nil && r.Timing != nil {
			run.BDP = hostRate(d) / 8 * r.Timing.BaseRTT
		}
		run.values(v, r)
		c.Runs = append(c.Runs, run)
		if !run.Valid {
			c.Invalid++
			continue
		}
		points = append(points, point{&c.Runs[len(c.Runs)-1], v})
		for _, x := range run.Values {
			c.count(x.OK)
		}
	}
	c.order(points)
	c.Agrees = c.Beyond == 0 && c.Invalid == 0 && len(c.Missing) == 0
	return c
}

func (c *Comparison) count(ok bool) {
	c.Judged++
	if !ok {
		c.Beyond++
	}
}

// find returns the run of the same name, point and seed.
func find(runs []results.Run, like *results.Run) *results.Run {
	for i := range runs {
		if runs[i].Name == like.Name && runs[i].Seed == like.Seed {
			return &runs[i]
		}
	}
	return nil
}

func document(s *scenario.Scenario, like *results.Run) *scenario.Run {
	for i := range s.Runs {
		if s.Runs[i].Name == like.Name && s.Runs[i].Seed == like.Seed {
			return &s.Runs[i]
		}
	}
	return nil
}

// hostRate is the rate of the fastest link of a host.
func hostRate(r *scenario.Run) (rate float64) {
	for _, h := range r.Topology.Hosts() {
		rate = max(rate, float64(r.Topology.Links[r.Topology.Nodes[h].Links[0]].Rate))
	}
	return rate
}

// queues are the names of the depths that are judged, shown what a reader
// wants beside.
var (
	quantiles = []string{"p50", "p95", "p99"}
	queues    = []string{"queue_p50_bytes", "queue_p95_bytes"}
	shown     = []string{"flows_unfinished_total", "goodput_bps", "jain_index", "utilisation_share", "queue_p99_bytes", "queue_max_bytes", "retransmissions_total", "timeouts_total", "pauses_total", "pause_share", "drops_total", "faults_total"}
)

// values fills in what both engines measured.
func (run *Run) values(sim, live *results.Run) {
	for _, name := range slowdowns(sim) {
		run.add(name, sim, live, SlowdownBound, false)
	}
	for _, name := range queues {
		run.add(name, sim, live, QueueBound, true)
	}
	for _, name := range shown {
		if v := value(name, sim, live); v.Sim != nil || v.Real != nil {
			v.OK = true
			run.Shown = append(run.Shown, v)
		}
	}
}

// slowdowns are the percentiles of all flows, and of groups where there are
// several.
func slowdowns(sim *results.Run) (names []string) {
	var groups []string
	for key := range sim.Values {
		if g, ok := strings.CutSuffix(key, ".slowdown_p50"); ok {
			groups = append(groups, g+".")
		}
	}
	slices.Sort(groups)
	if len(groups) == 1 {
		groups = nil
	}
	for _, g := range append([]string{""}, groups...) {
		for _, q := range quantiles {
			if _, ok := sim.Values[g+"slowdown_"+q]; ok {
				names = append(names, g+"slowdown_"+q)
			}
		}
	}
	return names
}

func (run *Run) add(name string, sim, live *results.Run, bound float64, bdp bool) {
	v := value(name, sim, live)
	if v.Sim == nil && v.Real == nil {
		return
	}
	v.Bound, v.InBDP = bound, bdp
	if v.Sim != nil && v.Real != nil {
		unit := math.Abs(*v.Sim)
		if bdp {
			unit = run.BDP
		}
		if d := (*v.Real - *v.Sim) / unit; !math.IsNaN(d) && !math.IsInf(d, 0) {
			v.Distance = &d
			v.OK = math.Abs(d) <= bound
		} else if *v.Real == *v.Sim {
			v.Distance, v.OK = new(float64), true
		}
	}
	run.Values = append(run.Values, v)
}

func value(name string, sim, live *results.Run) Value {
	v := Value{Name: name}
	if x, ok := sim.Values[name]; ok {
		v.Sim = &x
	}
	if x, ok := live.Values[name]; ok {
		v.Real = &x
	}
	return v
}

// point is a valid run that may stand in an order with others.
type point struct {
	run *Run
	sim *results.Run
}

// order looks at every pair of runs that differ in their variant alone.
func (c *Comparison) order(all []point) {
	for i, a := range all {
		for _, b := range all[i+1:] {
			if !sameBut(a.sim, b.sim) {
				continue
			}
			for _, v := range a.run.Values {
				k := slices.IndexFunc(b.run.Values, func(w Value) bool { return w.Name == v.Name })
				if k >= 0 {
					c.pair(a, b, v, b.run.Values[k])
				}
			}
		}
	}
	slices.SortStableFunc(c.Orders, func(a, b Order) int { return cmp.Compare(a.Value, b.Value) })
}

// sameBut says that runs have the same parameters and seed, so that what is
// different is the variant.
func sameBut(a, b *results.Run) bool {
	if a.Seed != b.Seed || len(a.Params) != len(b.Params) {
		return false
	}
	for k, v := range a.Params {
		if b.Params[k] != v {
			return false
		}
	}
	return true
}

// pair judges the order of a and b by one value, if virtual time distinguishes them
// clearly apart.
func (c *Comparison) pair(a, b point, v, w Value) {
	if v.Sim == nil || v.Real == nil || w.Sim == nil || w.Real == nil {
		return
	}
	if *v.Sim > *w.Sim {
		a, b, v, w = b, a, w, v
	}
	gap := *w.Sim - *v.Sim
	if v.InBDP && gap <= QueueBound*a.run.BDP || !v.InBDP && gap <= SlowdownBound**v.Sim {
		return
	}
	o := Order{Value: v.Name, A: a.run.Name, B: b.run.Name, Sim: [2]float64{*v.Sim, *w.Sim}, Real: [2]float64{*v.Real, *w.Real}, Reversed: *v.Real >= *w.Real}
	c.Orders = append(c.Orders, o)
	c.count(!o.Reversed)
}

// Verdict is one line.
func (c *Comparison) Verdict() string {
	var parts []string
	if c.Beyond > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d values and orders beyond their bounds", c.Beyond, c.Judged))
	} else if c.Judged > 0 {
		parts = append(parts, fmt.Sprintf("all %d values and orders within their bounds", c.Judged))
	}
	if c.Invalid > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d runs INVALID and not judged", c.Invalid, len(c.Runs)))
	}
	if len(c.Missing) > 0 {
		parts = append(parts, fmt.Sprintf("%d runs are missing on real frames", len(c.Missing)))
	}
	return strings.Join(parts, "; ")
}
