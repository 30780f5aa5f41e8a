package measure

import (
	"math"

	"gswitch/fabric/results"
	"gswitch/histogram"
)

// Hist is a histogram of whole numbers with weights: exact below 512, from
// there in bins.
type Hist struct {
	w     []float64
	total float64
	sum   float64 // of value times weight
	max   uint64
}

// precision makes bins of less than 0.4 % of the value.
const precision = 8

func binOf(v uint64) int { return histogram.Bin(v, precision) }

// binTop is the largest value of a bin.
func binTop(b int) uint64 {
	_, end := histogram.Range(b, precision)
	return end - 1
}

// Add counts v with weight w.
func (h *Hist) Add(v uint64, w float64) {
	b := binOf(v)
	for len(h.w) <= b {
		h.w = append(h.w, make([]float64, b+1-len(h.w))...)
	}
	h.w[b] += w
	h.total += w
	h.sum += float64(float64(v) * w)
	h.max = max(h.max, v)
}

// Empty says whether nothing was counted.
func (h *Hist) Empty() bool { return h.total == 0 }

// Mean returns the weighted mean, NaN if nothing was counted.
func (h *Hist) Mean() float64 { return h.sum / h.total }

// Max returns the largest value.
func (h *Hist) Max() uint64 { return h.max }

// Zero returns the share of the weight that is at 0.
func (h *Hist) Zero() float64 {
	if len(h.w) == 0 {
		return math.NaN()
	}
	return h.w[0] / h.total
}

// Quantile returns the value that a share p of the weight does not exceed.
func (h *Hist) Quantile(p float64) float64 {
	if h.Empty() {
		return math.NaN()
	}
	below := 0.0
	for b, w := range h.w {
		if below += w; w > 0 && below >= p*h.total*(1-1e-12) {
			return float64(min(binTop(b), h.max))
		}
	}
	return float64(h.max)
}

// CDF returns the distribution of the values times scale.
func (h *Hist) CDF(name, unit string, scale float64) results.CDF {
	var x, w []float64
	for b, weight := range h.w {
		if weight > 0 {
			x, w = append(x, float64(min(binTop(b), h.max))*scale), append(w, weight)
		}
	}
	return results.WeightedCDF(name, unit, x, w)
}

// Values adds mean, percentiles and maximum, times scale, under a name.
func (h *Hist) Values(put func(string, float64), name, unit string, scale float64) {
	if h.Empty() {
		return
	}
	put(name+"_mean_"+unit, h.Mean()*scale)
	for _, p := range results.Percentiles {
		put(name+"_"+results.Percentile(p)+"_"+unit, h.Quantile(p/100)*scale)
	}
	put(name+"_max_"+unit, float64(h.Max())*scale)
}
