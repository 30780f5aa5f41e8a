package results

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// maxPoints bounds the points of a compressed distribution.
const maxPoints = 400

// NewCDF returns the distribution of observations, compressed to at most 400
// points as WeightedCDF does. It leaves x as it is.
func NewCDF(name, unit string, x []float64) CDF {
	return WeightedCDF(name, unit, x, nil)
}

// WeightedCDF returns the distribution of x where x[i] counts w[i], such as
// the depths of a queue weighted by how long they lasted; nil weighs all
// alike. Observations without a positive weight and those that are no finite
// number do not count.
//
// It is compressed to at most 400 points, all of which are points of the full
// distribution: the smallest and the largest, every half percent up to 90 %,
// and from there 40 to each power of ten of 1-F, down to 1e-6. So a share that
// is read off is at most 0.006 too low, and a tail 1-F at most 6 % too high.
func WeightedCDF(name, unit string, x, w []float64) CDF {
	type point struct{ x, w float64 }
	points := make([]point, 0, len(x))
	for i, v := range x {
		weight := 1.0
		if w != nil {
			weight = w[i]
		}
		if isFinite(v) && weight > 0 && isFinite(weight) {
			points = append(points, point{v, weight})
		}
	}
	slices.SortFunc(points, func(a, b point) int { return cmp.Compare(a.x, b.x) })
	weights := make([]float64, len(points))
	for i := range points {
		weights[i] = points[i].w
	}
	total := sum(weights)

	c := CDF{Name: name, Unit: unit}
	var below float64
	for i, p := range points {
		below += p.w
		if i+1 < len(points) && points[i+1].x == p.x {
			continue
		}
		c.X = append(c.X, p.x)
		c.F = append(c.F, min(below/total, 1))
	}
	if n := len(c.F); n > 0 {
		c.F[n-1] = 1 // whatever rounding left
	}
	c.compress()
	return c
}

// levels are the shares at which a compressed distribution keeps a point.
var levels = func() []float64 {
	var l []float64
	for i := 1; i <= 180; i++ {
		l = append(l, float64(i)/200)
	}
	tail := 0.1
	for range 200 { // forty to each power of ten
		tail = float64(tail * 0.9440608762859234) // 10^(-1/40)
		l = append(l, 1-tail)
	}
	return l
}()

// compress keeps the first and the last point and those that reach a level first.
func (c *CDF) compress() {
	n := len(c.X)
	if n <= maxPoints {
		return
	}
	x, f := []float64{c.X[0]}, []float64{c.F[0]}
	kept := 0
	for _, l := range levels {
		i := sort.SearchFloat64s(c.F, l)
		if i > kept && i < n {
			x, f = append(x, c.X[i]), append(f, c.F[i])
			kept = i
		}
	}
	if kept < n-1 {
		x, f = append(x, c.X[n-1]), append(f, c.F[n-1])
	}
	c.X, c.F = x, f
}

// At returns the share of observations up to x.
func (c *CDF) At(x float64) float64 {
	i := sort.Search(len(c.X), func(i int) bool { return c.X[i] > x })
	if i == 0 {
		return 0
	}
	return c.F[i-1]
}

// Quantile returns the smallest point whose share reaches p, NaN if there is none.
func (c *CDF) Quantile(p float64) float64 {
	i := sort.SearchFloat64s(c.F, p)
	if i == len(c.F) {
		return math.NaN()
	}
	return c.X[i]
}

// KS returns the statistic of Kolmogorov and Smirnov: the largest difference
// between the shares of two distributions, 0 (the same) to 1. NaN if one is empty.
func KS(a, b *CDF) float64 {
	if len(a.X) == 0 || len(b.X) == 0 {
		return math.NaN()
	}
	var d float64
	for _, c := range []*CDF{a, b} {
		for _, x := range c.X {
			d = max(d, math.Abs(a.At(x)-b.At(x)))
		}
	}
	return d
}
