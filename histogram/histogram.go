package histogram

import "gswitch/frame"

// Histogram is Buckets with the sum and the largest of what was counted.
type Histogram struct {
	Buckets
	Sum, Max uint64
}

// Observe counts t, negative spans as zero.
func (h *Histogram) Observe(t frame.Time) {
	h.Buckets.Observe(t)
	v := uint64(max(t, 0))
	h.Sum += v
	h.Max = max(h.Max, v)
}

// Merge adds what o counted.
func (h *Histogram) Merge(o *Histogram) {
	h.Sum += o.Sum
	h.Max = max(h.Max, o.Max)
	for i, n := range o.Count {
		h.Count[i] += n
	}
}

// Above returns the share of spans that were longer than v, to the width of a
// bucket, or 0 if nothing was counted.
func (h *Histogram) Above(v frame.Time) float64 {
	above, total := uint64(0), uint64(0)
	for i, n := range h.Count {
		if total += n; n > 0 {
			if lo, _ := Bounds(i); lo > v {
				above += n
			}
		}
	}
	return float64(above) / float64(max(total, 1))
}

// Quantile returns an upper bound of the q-quantile (0 to 1), at most Max, or 0
// if nothing was counted.
func (h *Histogram) Quantile(q float64) frame.Time {
	return min(h.Buckets.Quantile(q), frame.Time(h.Max))
}
