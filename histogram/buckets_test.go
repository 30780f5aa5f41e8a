package histogram

import (
	"testing"

	"gswitch/frame"
)

func TestBuckets(t *testing.T) {
	prev := frame.Time(0)
	for i := 0; i < N; i++ {
		lo, hi := Bounds(i)
		if lo != prev || hi <= lo {
			t.Fatalf("bucket %d: [%d,%d) after %d", i, lo, hi, prev)
		}
		if lo >= 8 && float64(hi-lo) > float64(lo)/8 {
			t.Fatalf("bucket %d: [%d,%d) is too wide", i, lo, hi)
		}
		for _, v := range []frame.Time{lo, hi - 1} {
			var h Buckets
			if h.Observe(v); h.Count[i] != 1 {
				t.Fatalf("%d is not in bucket %d [%d,%d)", v, i, lo, hi)
			}
		}
		prev = hi
	}
	if prev != 1<<most {
		t.Fatalf("range ends at %d", prev)
	}
	var h Buckets
	h.Observe(-5)
	h.Observe(frame.Never)
	if h.Count[0] != 1 || h.Count[N-1] != 1 {
		t.Fatal("out of range")
	}
}

func TestQuantile(t *testing.T) {
	var h Buckets
	if h.Quantile(0.5) != 0 {
		t.Fatal("empty")
	}
	for v := frame.Time(1); v <= 100000; v++ {
		h.Observe(v)
	}
	for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.99, 0.999, 1} {
		got, want := float64(h.Quantile(q)), q*100000
		if got < want || got > want*1.13+1 {
			t.Errorf("quantile %v: %v", q, got)
		}
	}
	if h.Total() != 100000 {
		t.Fatal("total")
	}
}
