package report

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"gswitch/fabric/results"
)

const curveWidth vg.Length = 1.2

// line draws points from left to right. shape says what is between them:
// results.ShapeStep holds each value until the next point, ShapeMean draws
// each value over the time before it, ShapeLine joins the points.
// At most columns places across the plot are drawn in full; where more points
// share one, its first, smallest, largest and last are (thin).
func (f *figure) line(look draw.LineStyle, x, y []float64, shape string, columns int) {
	x, y = thin(x, y, columns, &f.x)
	if len(x) == 0 {
		return
	}
	f.plot.Add(&plotter.Line{XYs: corners(x, y, shape, f.x.lo), LineStyle: look})
}

// corners are those of a curve.
func corners(x, y []float64, shape string, from float64) plotter.XYs {
	var p plotter.XYs
	to := func(x, y float64) { p = append(p, plotter.XY{X: x, Y: y}) }
	switch shape {
	case results.ShapeStep:
		for i := range x {
			if i > 0 {
				to(x[i], y[i-1])
			}
			to(x[i], y[i])
		}
	case results.ShapeMean:
		// Where the first interval begins is not known; it is drawn as long as the second.
		start := x[0]
		if len(x) > 1 {
			start = max(x[0]-(x[1]-x[0]), from)
		}
		for i := range x {
			to(start, y[i])
			to(x[i], y[i])
			start = x[i]
		}
	default:
		for i := range x {
			to(x[i], y[i])
		}
	}
	return p
}

// cdf draws a distribution as the stairs that it is: the share jumps at each
// observation. It begins on the lower edge. On an axis of nines it ends at the
// largest share below one: the sample says nothing beyond it.
func (f *figure) cdf(look draw.LineStyle, c *results.CDF) {
	if len(c.X) == 0 {
		return
	}
	p := plotter.XYs{{X: c.X[0], Y: f.y.lo}}
	for i := range c.X {
		p = append(p, plotter.XY{X: c.X[i], Y: p[len(p)-1].Y})
		if c.F[i] > f.y.hi {
			break // the rest is above the plot
		}
		p = append(p, plotter.XY{X: c.X[i], Y: c.F[i]})
	}
	if f.y.kind != nines {
		p = append(p, plotter.XY{X: f.x.hi, Y: c.F[len(c.F)-1]})
	}
	f.plot.Add(&plotter.Line{XYs: p, LineStyle: look})
}

// dots draws a mark at each point.
func (f *figure) dots(look style, x, y []float64, radius vg.Length) {
	p := make(plotter.XYs, 0, len(x))
	for i := range x {
		p = append(p, plotter.XY{X: x[i], Y: y[i]})
	}
	f.plot.Add(marks{p, draw.GlyphStyle{Color: look.color, Radius: radius, Shape: draw.CircleGlyph{}}})
}

// marks are glyphs that do not widen the plot.
type marks struct {
	plotter.XYs
	look draw.GlyphStyle
}

// Plot is plot.Plotter's.
func (m marks) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, at := range m.XYs {
		if math.IsNaN(at.X) || math.IsNaN(at.Y) {
			continue
		}
		c.DrawGlyphNoClip(m.look, vg.Point{X: x(at.X), Y: y(at.Y)})
	}
}

// thin keeps of the points that share one of the columns the
// first, the smallest, the largest and the last, in their order: no peak and
// no trough of a long series is lost, and none is made up.
func thin(x, y []float64, columns int, s *scale) (tx, ty []float64) {
	if len(x) <= 4*columns {
		return x, y
	}
	column := func(v float64) int { return int(s.norm(v) * float64(columns)) }
	for i := 0; i < len(x); {
		first, low, high := i, i, i
		c := column(x[i])
		for ; i < len(x) && column(x[i]) == c; i++ {
			if y[i] < y[low] {
				low = i
			}
			if y[i] > y[high] {
				high = i
			}
		}
		last := -1
		for _, k := range []int{first, min(low, high), max(low, high), i - 1} {
			if k > last {
				tx, ty = append(tx, x[k]), append(ty, y[k])
				last = k
			}
		}
	}
	return tx, ty
}
