package report

import (
	"html/template"
	"slices"
	"strings"

	"gswitch/fabric/results"
)

// section is one subject of the page.
type section struct {
	ID, Title, Note string
	Class           string // how many drawings stand side by side: two, three
	Own             bool   // each drawing has a legend of its own
	Legend          template.HTML
	Figures         []*figure
}

// sections are the subjects of the page, in its order.
func (d *design) sections() (all []*section) {
	for _, s := range append([]*section{d.bySize(), d.cdfs(), d.sweeps()}, d.series()...) {
		if s != nil && len(s.Figures) > 0 {
			s.legend()
			all = append(all, s)
		}
	}
	return all
}

// legend puts one legend above the drawings, where all of them have the same.
func (s *section) legend() {
	entries := s.Figures[0].legend
	for _, f := range s.Figures {
		if !slices.EqualFunc(f.legend, entries, func(a, b entry) bool { return a.name == b.name }) {
			s.Own = true
			return
		}
	}
	if len(entries) > 1 {
		s.Legend = legend(entries)
	}
}

// bySize draws the slowdown over flow size, a drawing per percentile.
func (d *design) bySize() *section {
	s := &section{ID: "size", Title: "Slowdown by flow size", Class: "two",
		Note: "Completion time over the time alone in the network. Each point is one bucket of flows, named by its largest size; buckets stand in order of size, not to scale. A percentile is drawn where a bucket has flows enough: 20 for p95, 100 for p99, 1000 for p99.9."}
	for k, f := range d.facets {
		var runs []results.Run
		for _, i := range f.runs {
			runs = append(runs, d.runs[i])
		}
		buckets := bucketLabels(runs)
		if len(buckets) < 2 { // the bars say it all
			continue
		}
		for _, p := range results.Percentiles {
			if pl := d.sizeFigure(k, buckets, p); pl != nil {
				s.Figures = append(s.Figures, pl)
			}
		}
	}
	return s
}

func (d *design) sizeFigure(k int, buckets []string, percentile float64) *figure {
	f, name := d.facets[k], results.Percentile(percentile)
	points := func(i int) (x, y []float64) {
		for k, label := range buckets {
			if b := findBucket(&d.runs[i], label); b != nil && enough(percentile, float64(b.N)) {
				if v, ok := b.Quantiles[name]; ok {
					x, y = append(x, float64(k)), append(y, v)
				}
			}
		}
		return x, y
	}
	var e extent
	for _, i := range f.runs {
		_, y := points(i)
		e.add(y...)
	}
	if !e.any {
		return nil
	}
	e.add(1) // alone in the network
	names := make([]string, len(buckets))
	for i, label := range buckets {
		names[i] = strings.TrimPrefix(label, "<= ")
	}
	p := newFigure(d.fileName("size-"+name, k), wide, tall, join(name+" slowdown", f.title), "flow size (bytes)", "slowdown", scale{kind: ordinal, names: names}, e.log(""))
	p.legend = f.legend
	for _, i := range f.runs {
		x, y := points(i)
		p.line(d.look[i].line(curveWidth), x, y, results.ShapeLine, len(x)+1)
		p.dots(d.look[i], x, y, 1.6)
	}
	return p
}

// fileName names the files of a drawing of a facet.
func (d *design) fileName(name string, k int) string {
	if len(d.facets) > 1 {
		name += "-" + results.FileName(d.facets[k].title)
	}
	return name
}

func join(a, b string) string {
	if b == "" {
		return a
	}
	return a + ", " + b
}

// cdfs draws each distribution as a whole and its tail.
func (d *design) cdfs() *section {
	s := &section{ID: "cdf", Title: "Distributions", Class: "two",
		Note: "Left the share of observations up to a value; right the same for the largest tenth, to 99.99 %, each further step of the axis a tenth of the one before. A tail ends at the largest share that its observations can give."}
	for _, name := range d.cdfNames() {
		for k := range d.facets {
			s.Figures = append(s.Figures, d.cdfFigures(name, k)...)
		}
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

func (d *design) cdfFigures(name string, k int) []*figure {
	f := d.facets[k]
	var all, tail extent
	unit := ""
	for _, i := range f.runs {
		if c := findCDF(&d.runs[i], name); c != nil {
			unit = symbol(c.Unit)
			all.add(c.X...)
			for k := range c.X {
				if c.F[k] >= 0.9 && c.F[k] < 1 {
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
	file := d.fileName("cdf-"+results.FileName(name), k)
	figures := []*figure{newFigure(file, wide, tall, join(pretty(name), f.title), pretty(name), "share", valueScale(&all, unit), shares)}
	if tail.any {
		figures = append(figures, newFigure(file+"-tail", wide, tall, join(pretty(name)+", tail", f.title), pretty(name), "share", valueScale(&tail, unit), scale{kind: nines, lo: 0.9, hi: tailEnd}))
	}
	for _, p := range figures {
		p.legend = f.legend
		for _, i := range f.runs {
			if c := findCDF(&d.runs[i], name); c != nil {
				p.cdf(d.look[i].line(curveWidth), p.within(c))
			}
		}
	}
	return figures
}

// within leaves out what a tail cannot show: the largest observation, beyond
// which the sample has none.
func (f *figure) within(c *results.CDF) *results.CDF {
	if f.y.kind != nines {
		return c
	}
	n := len(c.F)
	for n > 0 && c.F[n-1] >= 1 {
		n--
	}
	return &results.CDF{X: c.X[:n], F: c.F[:n]}
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
	if len(d.groups) < 2 && len(d.kinds) < 2 {
		return nil
	}
	s := &section{ID: "bars", Title: "In numbers", Class: "three", Note: "Bars begin at zero. Where a run was repeated with other seeds the bar is the mean and each dot a seed; from three seeds on the whiskers hold the mean of all seeds with 95 % (Student's t)."}
	kinds := make([]entry, len(d.kinds))
	for k, name := range d.kinds {
		kinds[k] = entry{look: styleOf(k).solid(), name: name, fill: true}
	}
	for _, m := range results.MeasuresOf(d.runs) {
		if !barred[m.Name] {
			continue
		}
		c := &barChart{name: "bars-" + results.FileName(m.Name), title: m.FullLabel(), unit: unitOf(m.Name), groups: d.groups, kinds: kinds, xName: d.axis}
		if d.axis == "" {
			c.looks = d.groupLooks()
		}
		some := false
		for range d.groups {
			c.values = append(c.values, make([][]float64, len(kinds)))
		}
		for i := range d.runs {
			if v, ok := d.runs[i].Values[m.Name]; ok && enoughFlows(&d.runs[i], m.Name) {
				some = some || v != 0
				cell := &c.values[d.groupOf[i]][d.kindOf[i]]
				*cell = append(*cell, v)
			}
		}
		if some {
			s.Figures = append(s.Figures, c.draw(narrow, short))
		}
	}
	return s
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
		looks[d.groupOf[i]] = d.look[i].solid()
	}
	return looks
}
