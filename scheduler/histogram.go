package scheduler

import (
	"math/bits"

	"gswitch/frame"
)

// Histogram counts spans of time in log-linear buckets: eight to each power
// of two, so a bucket is at most 1/8 wide relative to its lower bound. Spans
// beyond the range fall into the last bucket. The words are plain: they are
// read by their owner.
type Histogram struct {
	Count [HistogramBuckets]uint64
}

const (
	histSub = 3 // log2 of the buckets in a power of two
	histMax = 37

	// HistogramBuckets is the number of buckets, up to 2^37 ns = 137 s.
	HistogramBuckets = (histMax - histSub + 1) << histSub
)

// Observe counts t, negative spans as zero.
func (h *Histogram) Observe(t frame.Time) {
	v := uint64(max(t, 0))
	if v>>histMax != 0 {
		v = 1<<histMax - 1
	}
	// Below 2^histSub a bucket per nanosecond, then the leading bits.
	e := uint(max(bits.Len64(v), histSub+1)) - histSub - 1
	h.Count[(uint64(e)<<histSub+v>>e)%HistogramBuckets]++
}

// BucketBounds returns the spans from lo up to but excluding hi that bucket i
// counts.
func BucketBounds(i int) (lo, hi frame.Time) {
	bound := func(i int) frame.Time {
		if i < 2<<histSub {
			return frame.Time(i)
		}
		e := i>>histSub - 1
		return frame.Time(i-e<<histSub) << e
	}
	return bound(i), bound(i + 1)
}

// Total returns how many spans were counted.
func (h *Histogram) Total() uint64 {
	var n uint64
	for _, c := range h.Count {
		n += c
	}
	return n
}

// Quantile returns the upper bound of the bucket in which the q-th part (0 to
// 1) of the counted spans is reached, 0 if nothing was counted.
func (h *Histogram) Quantile(q float64) frame.Time {
	total := h.Total()
	if total == 0 {
		return 0
	}
	want := uint64(q * float64(total))
	if want >= total {
		want = total - 1
	}
	var n uint64
	for i, c := range h.Count {
		if n += c; n > want {
			_, hi := BucketBounds(i)
			return hi - 1
		}
	}
	return 0
}
