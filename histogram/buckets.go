package histogram

import (
	"math/bits"

	"gswitch/frame"
)

// Bin returns the bucket of v where there are 2^precision of them to each power
// of two: below 2^(precision+1) one for each value, then by the leading bits.
func Bin(v uint64, precision uint) int {
	e := uint(max(bits.Len64(v), int(precision)+1)) - precision - 1
	return int(uint64(e)<<precision + v>>e)
}

// Range returns the values from lo up to but excluding hi that a bucket counts.
func Range(bin int, precision uint) (lo, hi uint64) {
	bound := func(i int) uint64 {
		if i < 2<<precision {
			return uint64(i)
		}
		e := i>>precision - 1
		return uint64(i-e<<precision) << e
	}
	return bound(bin), bound(bin + 1)
}

const (
	precision = 3
	most      = 37 // log2 of the first value beyond the last bucket

	// N is the number of buckets, up to 2^37 ns = 137 s.
	N = (most - precision + 1) << precision
)

// Buckets counts spans of time, a bucket being at most 1/8 wide relative to its
// lower bound. Spans beyond the range fall into the last bucket.
type Buckets struct {
	Count [N]uint64
}

// Observe counts t, negative spans as zero.
func (h *Buckets) Observe(t frame.Time) { h.ObserveAll(t, 1) }

// ObserveAll counts the same time n times.
func (h *Buckets) ObserveAll(t frame.Time, n uint64) {
	v := uint64(max(t, 0))
	if v>>most != 0 {
		v = 1<<most - 1
	}
	h.Count[uint(Bin(v, precision))%N] += n
}

// Bounds returns the spans from lo up to but excluding hi that bucket i of
// Buckets counts.
func Bounds(i int) (lo, hi frame.Time) {
	a, b := Range(i, precision)
	return frame.Time(a), frame.Time(b)
}

// Total returns how many spans were counted.
func (h *Buckets) Total() uint64 {
	var n uint64
	for _, c := range h.Count {
		n += c
	}
	return n
}

// Quantile returns the upper bound of the bucket in which the q-th part (0 to
// 1) of the counted spans is reached, 0 if nothing was counted.
func (h *Buckets) Quantile(q float64) frame.Time {
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
			_, hi := Bounds(i)
			return hi - 1
		}
	}
	return 0
}

// Mean returns the mean of the spans, each taken for the middle of its bucket, 0
// if nothing was counted.
func (h *Buckets) Mean() float64 {
	total, sum := uint64(0), 0.0
	for i, n := range h.Count {
		if n > 0 {
			lo, hi := Bounds(i)
			sum += float64(n) * (float64(lo) + float64(hi)) / 2
			total += n
		}
	}
	return sum / float64(max(total, 1))
}
