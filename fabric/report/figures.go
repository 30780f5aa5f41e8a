package report

import (
	"fmt"
	"html/template"
	"strings"

	"gswitch/fabric/results"
)

// section is one subject of the page.
type section struct {
	ID, Title, Note string
	Class           string // how many drawings stand side by side: two, three, four
	Legend          template.HTML
	Plots           []template.HTML
}

// bySize draws the slowdown over flow size, a drawing per percentile.
func (d *design) bySize() *section {
	s := &section{ID: "size", Title: "Slowdown by flow size", Class: "two", Legend: legend(d.kinds),
		Note: "Completion time over the time alone in the network. Each point is one bucket of flows, named by its largest size; buckets stand in order of size, not to scale."}
	for _, f := range d.facets {
		var runs []results.Run
		for _, i := range f.runs {
			runs = append(runs, d.runs[i])
		}
		buckets := bucketLabels(runs)
		if len(buckets) < 2 { // the bars say it all
			continue
		}
		for _, p := range percentileNames() {
			if pl := d.sizePlot(f, buckets, p); pl != nil {
				s.Plots = append(s.Plots, pl.svg())
			}
		}
	}
	if len(s.Plots) == 0 {
		return nil
	}
	return s
}

func (d *design) sizePlot(f facet, buckets []string, percentile string) *plot {
	var e extent
	for _, i := range f.runs {
		for _, label := range buckets {
			if b := findBucket(&d.runs[i], label); b != nil {
				if v, ok := b.Quantiles[percentile]; ok {
					e.add(v)
				}
			}
		}
	}
	if !e.any {
		return nil
	}
	e.add(1) // alone in the network
	names := make([]string, len(buckets))
	for i, label := range buckets {
		names[i] = strings.TrimPrefix(label, "<= ")
	}
	p := newPlot(470, 270, join(percentile+" slowdown", f.title), "flow size (bytes)", "slowdown", scale{kind: ordinal, names: names}, e.log(""))
	for _, i := range f.runs {
		var x, y []float64
		for k, label := range buckets {
			b := findBucket(&d.runs[i], label)
			if b == nil {
				continue
			}
			v, ok := b.Quantiles[percentile]
			if !ok {
				continue
			}
			x, y = append(x, float64(k)), append(y, v)
			p.dot(d.look[i], fmt.Sprintf("%s, %s: %s of %d flows", d.labels[i], names[k], significant(v), b.N), float64(k), v)
		}
		p.line(d.look[i], d.labels[i], x, y, results.ShapeLine, len(x)+1)
	}
	return p
}

func join(a, b string) string {
	if b == "" {
		return a
	}
	return a + ", " + b
}

// cdfs draws each distribution as a whole and its tail.
func (d *design) cdfs() *section {
	s := &section{ID: "cdf", Title: "Distributions", Class: "two", Legend: legend(d.kinds),
		Note: "Left the share of observations up to a value; right the same for the largest tenth, to 99.99 %, each further step of the axis a tenth of the one before."}
	for _, name := range d.cdfNames() {
		for _, f := range d.facets {
			s.Plots = append(s.Plots, d.cdfPlots(name, f)...)
		}
	}
	if len(s.Plots) == 0 {
		return nil
	}
	return s
}

func (d *design) cdfNames() []string {
	var names []string
	for i := range d.runs {
		for k := range d.runs[i].CDFs {
			indexOf(&names, d.runs[i].CDFs[k].Name)
		}
	}
	return names
}

func findCDF(r *results.Run, name string) *results.CDF {
	for k := range r.CDFs {
		if r.CDFs[k].Name == name && len(r.CDFs[k].X) > 0 {
			return &r.CDFs[k]
		}
	}
	return nil
}

// tailEnd is where the drawings of tails end.
const tailEnd = 0.9999

func (d *design) cdfPlots(name string, f facet) []template.HTML {
	var all, tail extent
	unit := ""
	for _, i := range f.runs {
		if c := findCDF(&d.runs[i], name); c != nil {
			unit = symbol(c.Unit)
			all.add(c.X...)
			for k := range c.X {
				if c.F[k] >= 0.9 {
					tail.add(c.X[k])
					if c.F[k] >= tailEnd {
						break
					}
				}
			}
		}
	}
	if !all.any {
		return nil
	}
	shares := scale{kind: linear, lo: 0, hi: 1, unit: "%"}
	full := newPlot(470, 270, join(pretty(name), f.title), pretty(name), "share", valueScale(&all, unit), shares)
	zoom := newPlot(470, 270, join(pretty(name)+", tail", f.title), pretty(name), "share", valueScale(&tail, unit), scale{kind: nines, lo: 0.9, hi: tailEnd})
	for _, i := range f.runs {
		c := findCDF(&d.runs[i], name)
		if c == nil {
			continue
		}
		for _, p := range []*plot{full, zoom} {
			p.cdf(d.look[i], d.labels[i], c)
		}
	}
	return []template.HTML{full.svg(), zoom.svg()}
}

// valueScale is logarithmic where linear would hide most of what is there.
func valueScale(e *extent, unit string) scale {
	if e.lo > 0 && e.hi/e.lo > 30 {
		return e.log(unit)
	}
	if e.lo > 0 && e.lo > e.hi/2 {
		pad := max((e.hi-e.lo)*0.05, e.hi*1e-3)
		return scale{kind: linear, lo: e.lo - pad, hi: e.hi + pad, unit: unit}
	}
	return e.linearFrom(unit)
}

// pretty makes a name such as queue_bytes or fct_seconds readable; the unit
// stands beside it.
func pretty(name string) string {
	for _, unit := range []string{"_seconds", "_bytes", "_bps", "_share", "_total"} {
		name = strings.TrimSuffix(name, unit)
	}
	switch name {
	case "fct":
		return "completion time"
	case "rtt":
		return "network RTT"
	}
	return strings.ReplaceAll(name, "_", " ")
}

// sweeps draws the scalars as bars.
func (d *design) sweeps() *section {
	if len(d.groups) < 2 {
		return nil
	}
	kinds := d.barKinds()
	s := &section{ID: "bars", Title: "In numbers", Class: "three", Note: "Bars begin at zero. Where a run was repeated with other seeds the bar is the mean and each dot a seed."}
	if len(kinds) > 1 {
		s.Legend = legend(kinds)
	}
	for _, m := range results.MeasuresOf(d.runs) {
		if !barred[m.Name] {
			continue
		}
		c := &barChart{title: m.FullLabel(), unit: unitOf(m.Name), groups: d.groups, kinds: kinds, xName: d.axis}
		if len(kinds) == 1 && d.axis == "" {
			c.looks = d.groupLooks()
		}
		some := false
		for range d.groups {
			c.values = append(c.values, make([][]float64, len(kinds)))
		}
		for i := range d.runs {
			if v, ok := d.runs[i].Values[m.Name]; ok {
				some = some || v != 0
				cell := &c.values[d.groupOf[i]][d.kindOf[i]]
				*cell = append(*cell, v)
			}
		}
		if some {
			s.Plots = append(s.Plots, c.draw(310, 230).svg())
		}
	}
	if len(s.Plots) == 0 {
		return nil
	}
	return s
}

// barKinds are the kinds of a sweep as bars show them.
func (d *design) barKinds() []entry {
	var kinds []entry
	for i := range d.runs {
		if k := d.kindOf[i]; k == len(kinds) {
			name := d.labels[i]
			if d.axis != "" {
				name = d.besides(&d.runs[i])
			}
			kinds = append(kinds, entry{look: styleOf(k, "b"+fmt.Sprint(k)), name: name, fill: true})
		}
	}
	return kinds
}

// barred are the scalars that a drawing is worth.
var barred = map[string]bool{
	"slowdown_mean": true, "slowdown_p50": true, "slowdown_p99": true, "slowdown_p99.9": true,
	"fct_mean_seconds": true, "fct_p99_seconds": true, "rtt_p99_seconds": true,
	"queue_p50_bytes": true, "queue_p99_bytes": true, "queue_max_bytes": true,
	"goodput_bps": true, "utilisation_share": true, "jain_index": true,
	"pauses_total": true, "pause_share": true, "drops_total": true, "retransmissions_total": true,
}

// groupLooks gives each group of runs of one name the look of its first run.
func (d *design) groupLooks() []style {
	looks := make([]style, len(d.groups))
	for i := len(d.runs) - 1; i >= 0; i-- {
		looks[d.groupOf[i]] = d.look[i]
	}
	return looks
}
