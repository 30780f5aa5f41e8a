package report

import (
	"fmt"
	"math"
	"strings"

	"gswitch/fabric/results"
)

// line draws points from left to right. shape says what is between them:
// results.ShapeStep holds each value until the next point, ShapeMean draws
// each value over the time before it, ShapeLine joins the points.
// At most columns places across the plot are drawn in full; where more points
// share one, its first, smallest, largest and last are (thin).
func (p *plot) line(look style, tip string, x, y []float64, shape string, columns int) {
	x, y = thin(x, y, columns, &p.x)
	if len(x) == 0 {
		return
	}
	var d pen
	switch shape {
	case results.ShapeStep:
		d.move(p.x.at(x[0]), p.y.at(y[0]))
		for i := 1; i < len(x); i++ {
			d.across(p.x.at(x[i]))
			d.down(p.y.at(y[i]))
		}
	case results.ShapeMean:
		// The first interval begins where nobody knows; it is drawn as long as the second.
		start := x[0]
		if len(x) > 1 {
			start = max(x[0]-(x[1]-x[0]), p.x.lo)
		}
		d.move(p.x.at(start), p.y.at(y[0]))
		for i := range x {
			d.down(p.y.at(y[i]))
			d.across(p.x.at(x[i]))
		}
	default:
		d.move(p.x.at(x[0]), p.y.at(y[0]))
		for i := 1; i < len(x); i++ {
			d.to(p.x.at(x[i]), p.y.at(y[i]))
		}
	}
	p.path(look, tip, d.String())
}

// cdf draws a distribution as the stairs that it is: the share jumps at each
// observation. It begins on the lower edge.
func (p *plot) cdf(look style, tip string, c *results.CDF) {
	if len(c.X) == 0 {
		return
	}
	var d pen
	d.move(p.x.at(c.X[0]), p.y.a)
	for i := range c.X {
		d.across(p.x.at(c.X[i]))
		d.down(p.y.at(c.F[i]))
		if c.F[i] > p.y.hi {
			break // the rest is above the plot
		}
	}
	if n := len(c.X); c.F[n-1] <= p.y.hi {
		d.across(p.x.b)
	}
	p.path(look, tip, d.String())
}

func (p *plot) path(look style, tip, d string) {
	fmt.Fprintf(&p.marks, `<path %s d="%s"><title>%s</title></path>`, look.attr("l"), d, esc(tip))
}

// dot draws a mark at a point.
func (p *plot) dot(look style, tip string, x, y float64) {
	fmt.Fprintf(&p.marks, `<circle %s cx="%s" cy="%s" r="3"><title>%s</title></circle>`, look.attr("m"), px(p.x.at(x)), px(p.y.at(y)), esc(tip))
}

// pen writes a path with relative moves, in tenths of a pixel: a third shorter
// than absolute ones, and rounding does not add up.
type pen struct {
	strings.Builder
	x, y int // tenths
}

func tenths(v float64) int { return int(math.Round(v * 10)) }

func (d *pen) move(x, y float64) {
	d.x, d.y = tenths(x), tenths(y)
	fmt.Fprintf(d, "M%s %s", px(float64(d.x)/10), px(float64(d.y)/10))
}

func (d *pen) across(x float64) {
	if v := tenths(x); v != d.x {
		fmt.Fprintf(d, "h%s", px(float64(v-d.x)/10))
		d.x = v
	}
}

func (d *pen) down(y float64) {
	if v := tenths(y); v != d.y {
		fmt.Fprintf(d, "v%s", px(float64(v-d.y)/10))
		d.y = v
	}
}

func (d *pen) to(x, y float64) {
	if a, b := tenths(x), tenths(y); a != d.x || b != d.y {
		fmt.Fprintf(d, "l%s %s", px(float64(a-d.x)/10), px(float64(b-d.y)/10))
		d.x, d.y = a, b
	}
}

// thin keeps of the points that share one of the columns the
// first, the smallest, the largest and the last, in their order: no peak and
// no trough of a long series is lost, and none is made up.
func thin(x, y []float64, columns int, s *scale) (tx, ty []float64) {
	if len(x) <= 4*columns {
		return x, y
	}
	column := func(v float64) int {
		return int((s.at(v) - s.a) / (s.b - s.a) * float64(columns))
	}
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
