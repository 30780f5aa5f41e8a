package report

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"gswitch/fabric/results"
)

// barChart is groups of bars: values[g][k] are what group g has of kind k,
// one per seed.
type barChart struct {
	name   string // of its files
	title  string
	xName  string
	unit   string
	groups []string
	kinds  []entry
	looks  []style // of groups, if they are not to look alike
	values [][][]float64
}

// draw draws the bars from zero. Several seeds become a bar at their mean with
// a dot for each and, from three on, the interval that holds the mean of all
// seeds with 95 %.
func (c *barChart) draw(width, height vg.Length) *figure {
	var e extent
	for _, g := range c.values {
		for _, v := range g {
			e.add(v...)
			if half := results.Confidence(v); half > 0 {
				e.add(results.Mean(v) + half)
			}
		}
	}
	y := e.linearFrom(c.unit)
	f := newFigure(c.name, width, height, c.title, c.xName, "", scale{kind: ordinal, names: c.groups}, y)
	// The unit and its prefix stand above the axis.
	if _, unit := f.y.ticks(f.y.marks); unit != "" && unit != "count" {
		f.title = fmt.Sprintf("%s (%s)", f.title, unit)
	}
	f.plot.Y.Label.Text = ""
	if len(c.kinds) > 1 {
		f.legend = c.kinds
	}
	slot := 0.8 / float64(len(c.kinds))
	for g := range c.groups {
		for k, kind := range c.kinds {
			v := c.values[g][k]
			if len(v) == 0 {
				continue
			}
			look := kind.look
			if c.looks != nil {
				look = c.looks[g]
			}
			left, mean := float64(g)-0.4+slot*float64(k), results.Mean(v)
			b := bar{look, left + slot*0.05, left + slot*0.95, mean}
			f.bars = append(f.bars, b)
			f.plot.Add(b)
			if len(v) > 1 {
				f.seeds(left+slot/2, v)
			}
		}
	}
	return f
}

// seeds draws a dot for each value, and the interval around their mean.
func (f *figure) seeds(x float64, v []float64) {
	at := make([]float64, len(v))
	for i := range at {
		at[i] = x
	}
	f.dots(style{color: ink}, at, v, 1.3)
	if half := results.Confidence(v); half > 0 {
		f.plot.Add(&plotter.YErrorBars{XYs: plotter.XYs{{X: x, Y: results.Mean(v)}}, YErrors: plotter.YErrors{{Low: half, High: half}},
			LineStyle: draw.LineStyle{Color: ink, Width: 0.8}, CapWidth: 5})
	}
}

// bar is a bar from zero to v.
type bar struct {
	look        style
	left, right float64
	v           float64
}

// Plot is plot.Plotter's.
func (b bar) Plot(c draw.Canvas, p *plot.Plot) {
	if math.IsNaN(b.v) {
		return
	}
	x, y := p.Transforms(&c)
	l, r, lo, hi := x(b.left), x(b.right), y(min(b.v, 0)), y(max(b.v, 0))
	c.FillPolygon(b.look.color, []vg.Point{{X: l, Y: lo}, {X: r, Y: lo}, {X: r, Y: hi}, {X: l, Y: hi}})
}
