package results

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestQuantileIsNearestRank(t *testing.T) {
	a := make([]float64, 100)
	for i := range a {
		a[i] = float64(i + 1)
	}
	for _, c := range []struct{ p, want float64 }{{0, 1}, {0.01, 1}, {0.011, 2}, {0.07, 7}, {0.5, 50}, {0.95, 95}, {0.99, 99}, {0.999, 100}, {1, 100}} {
		if got := Quantile(a, c.p); got != c.want {
			t.Errorf("p=%v: %v, want %v", c.p, got, c.want)
		}
	}
	if got := Quantile([]float64{7}, 0.5); got != 7 {
		t.Errorf("of one: %v", got)
	}
	if got := Quantile([]float64{1, 2}, 0.5); got != 1 {
		t.Errorf("of two: %v", got)
	}
	if !math.IsNaN(Quantile(nil, 0.5)) {
		t.Error("of none is a number")
	}
}

func TestJain(t *testing.T) {
	for _, c := range []struct {
		x    []float64
		want float64
	}{{[]float64{5, 5, 5}, 1}, {[]float64{1, 0, 0, 0}, 0.25}, {[]float64{1, 2}, 0.9}} {
		if got := Jain(c.x); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v: %v, want %v", c.x, got, c.want)
		}
	}
	if !math.IsNaN(Jain(nil)) {
		t.Error("of nobody is a number")
	}
}

func TestSumIsCompensated(t *testing.T) {
	if got := sum([]float64{1, 1e100, 1, -1e100}); got != 2 {
		t.Errorf("%v, want 2", got)
	}
}

func TestSummarize(t *testing.T) {
	v := map[string]float64{}
	Summarize(v, "queue", "bytes", []float64{1, 2, 9})
	for k, want := range map[string]float64{"queue_mean_bytes": 4, "queue_p50_bytes": 2, "queue_p99.9_bytes": 9, "queue_max_bytes": 9} {
		if v[k] != want {
			t.Errorf("%s: %v, want %v", k, v[k], want)
		}
	}
	Summarize(v, "slowdown", "", []float64{3})
	if v["slowdown_p95"] != 3 {
		t.Error("slowdown_p95:", v["slowdown_p95"])
	}
	n := len(v)
	if Summarize(v, "none", "", nil); len(v) != n {
		t.Error("values of no observations")
	}
}

func TestBuckets(t *testing.T) {
	flows := []Flow{
		{Bytes: 100, FCT: 1, Slowdown: 2}, {Bytes: 1000, FCT: 1, Slowdown: 4}, {Bytes: 1001, FCT: 1, Slowdown: 8},
		{Bytes: 50, Slowdown: 99}, // unfinished
		{Bytes: 9_000_000, FCT: 1, Slowdown: 1},
	}
	b := Buckets(flows, []uint64{6700, 1000, 1000, 10_000})
	var n []int
	var labels []string
	for i := range b {
		n, labels = append(n, b[i].N), append(labels, b[i].Label)
	}
	if !slices.Equal(n, []int{2, 1, 0, 1}) || !slices.Equal(labels, []string{"<= 1K", "<= 6.7K", "<= 10K", "> 10K"}) {
		t.Fatalf("%v %v", n, labels)
	}
	if b[0].Mean != 3 || b[0].Quantiles["p50"] != 2 || b[0].Quantiles["p99.9"] != 4 || b[3].MaxBytes != 9_000_000 {
		t.Errorf("%+v", b)
	}
	if b := Buckets(flows[:2], []uint64{1000}); len(b) != 1 {
		t.Errorf("a bucket for no large flows: %+v", b)
	}
}

// Every finished flow is in exactly one bucket, and Edges divides evenly where sizes differ.
func TestBucketsOfEdges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.Uint64Range(1, 1e6), 1, 300).Draw(t, "sizes")
		n := rapid.IntRange(1, 20).Draw(t, "n")
		flows := make([]Flow, len(sizes))
		for i, s := range sizes {
			flows[i] = Flow{Bytes: s, FCT: 1, Slowdown: 1}
		}
		edges := Edges(flows, n)
		if len(edges) > n || edges[len(edges)-1] != slices.Max(sizes) {
			t.Fatalf("edges %v of %v", edges, sizes)
		}
		total := 0
		for _, b := range Buckets(flows, edges) {
			total += b.N
		}
		if total != len(flows) {
			t.Fatalf("%d of %d flows", total, len(flows))
		}
	})
}

func TestWeightedCDF(t *testing.T) {
	c := WeightedCDF("queue", "bytes", []float64{10, 0, 10, 5, math.NaN(), 7}, []float64{1, 6, 1, 2, 1, 0})
	if !slices.Equal(c.X, []float64{0, 5, 10}) || !slices.Equal(c.F, []float64{0.6, 0.8, 1}) {
		t.Errorf("%v %v", c.X, c.F)
	}
	if c.At(-1) != 0 || c.At(0) != 0.6 || c.At(9) != 0.8 || c.At(99) != 1 || c.Quantile(0.7) != 5 {
		t.Error("reading it off")
	}
	if e := NewCDF("", "", nil); len(e.X) != 0 || !math.IsNaN(e.Quantile(0.5)) {
		t.Error("of nothing")
	}
}

// What compression promises holds at every point of the full distribution.
func TestCompressedCDF(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(401, 30_000).Draw(t, "n")
		shape := rapid.Float64Range(0.1, 8).Draw(t, "shape")
		x := make([]float64, n)
		for i := range x {
			x[i] = math.Pow(float64(i+1)/float64(n), shape) * 1000
		}
		c := NewCDF("x", "", x)
		if len(c.X) > maxPoints || c.X[0] != x[0] || c.X[len(c.X)-1] != x[n-1] || c.check() != nil {
			t.Fatalf("%d points from %v to %v", len(c.X), c.X[0], c.X[len(c.X)-1])
		}
		for i, v := range x {
			full, got := float64(i+1)/float64(n), c.At(v)
			if i+1 < n && x[i+1] == v {
				continue
			}
			if got > full+1e-12 || got < full-0.006 {
				t.Fatalf("F(%v) = %v, not %v", v, got, full)
			}
			if tail := 1 - full; full >= 0.9 && tail > 1e-6 && 1-got > tail*1.06+1e-12 {
				t.Fatalf("tail at %v is %v, not %v", v, 1-got, tail)
			}
		}
	})
}

func TestKS(t *testing.T) {
	a := NewCDF("", "", []float64{1, 2, 3, 4})
	b := NewCDF("", "", []float64{3, 4, 5, 6})
	if got := KS(&a, &b); got != 0.5 {
		t.Errorf("%v, want 0.5", got)
	}
	if KS(&a, &a) != 0 {
		t.Error("of itself")
	}
	none := CDF{}
	if !math.IsNaN(KS(&a, &none)) {
		t.Error("of nothing is a number")
	}
}

// Student's intervals, by hand: 1, 2, 3 have the standard error 1/sqrt(3).
func TestConfidence(t *testing.T) {
	for _, c := range []struct {
		v    []float64
		want float64
	}{{[]float64{1}, 0}, {[]float64{1, 2}, 0}, {[]float64{1, 2, 3}, 4.303 / math.Sqrt(3)}, {[]float64{5, 5, 5, 5}, 0}} {
		if got := Confidence(c.v); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v: %v, want %v", c.v, got, c.want)
		}
	}
}
