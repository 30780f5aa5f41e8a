package histogram

import (
	"testing"

	"gswitch/frame"
)

// Histograms of several workers make one.
func TestMerge(t *testing.T) {
	var a, b, all Histogram
	for v := range frame.Time(1000) {
		h := &a
		if v%3 == 0 {
			h = &b
		}
		h.Observe(v)
		all.Observe(v)
	}
	a.Merge(&b)
	if a != all {
		t.Error("the sum is not what one alone counts")
	}
	if a.Total() != 1000 || a.Max != 999 || a.Sum != 499500 {
		t.Errorf("%d values, largest %d, sum %d", a.Total(), a.Max, a.Sum)
	}
	if q := a.Quantile(0.5); q < 500 || q > 563 {
		t.Errorf("median %d of 0..999", q)
	}
	if q := a.Quantile(1); q != 999 {
		t.Errorf("the longest is %d, not 999", q)
	}
	// 512 begins a bucket, so 511 ends one.
	if got, want := a.Above(511), 0.488; got != want {
		t.Errorf("above 511: %v, want %v", got, want)
	}
	if (&Histogram{}).Above(0) != 0 || a.Above(1<<36) != 0 {
		t.Error("above nothing, or everything")
	}
}

// Buckets of any precision follow each other without a gap, and are as narrow as
// they say.
func TestBins(t *testing.T) {
	for _, precision := range []uint{2, 3, 8} {
		next := uint64(0)
		for bin := 0; next < 1<<40; bin++ {
			lo, hi := Range(bin, precision)
			if lo != next || Bin(lo, precision) != bin || Bin(hi-1, precision) != bin || Bin(hi, precision) != bin+1 {
				t.Fatalf("precision %d, bucket %d: [%d,%d) after %d", precision, bin, lo, hi, next)
			}
			if hi-lo > 1 && hi-lo > lo>>precision {
				t.Fatalf("precision %d: [%d,%d) is too wide", precision, lo, hi)
			}
			next = hi
		}
	}
}
