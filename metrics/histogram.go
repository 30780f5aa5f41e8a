package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"gswitch/histogram"
)

// The histograms inside are log-linear with hundreds of buckets. Outside they
// have a bound for every factor of four from 2^8 ns (256 ns) to 2^30 ns
// (1.07 s): powers of two, so that the counts are exact.
const (
	firstBound = 8
	lastBound  = 30
	boundStep  = 2
)

// bounds returns empty buckets and the bound that a span of ns nanoseconds
// falls under, or false if it is beyond all.
func bounds() map[float64]uint64 {
	b := map[float64]uint64{}
	for e := firstBound; e <= lastBound; e += boundStep {
		b[float64(uint64(1)<<e)/1e9] = 0
	}
	return b
}

// observe adds n spans of at most ns nanoseconds to every bucket they fit in.
func observe(b map[float64]uint64, ns, n uint64) {
	for e := firstBound; e <= lastBound; e += boundStep {
		if ns <= 1<<e {
			b[float64(uint64(1)<<e)/1e9] += n
		}
	}
}

// delayHistogram exposes spans whose sum is computed from the buckets.
func delayHistogram(d *prometheus.Desc, h *histogram.Buckets, labels ...string) prometheus.Metric {
	return spanHistogram(d, h, float64(h.Total())*h.Mean()/1e9, labels)
}

// spanHistogram exposes spans that add up to sum seconds.
func spanHistogram(d *prometheus.Desc, h *histogram.Buckets, sum float64, labels []string) prometheus.Metric {
	b := bounds()
	for i, n := range h.Count {
		if n > 0 {
			_, hi := histogram.Bounds(i)
			observe(b, uint64(hi), n)
		}
	}
	return prometheus.MustNewConstHistogram(d, h.Total(), sum, b, labels...)
}

func vectorHistogram(count []uint64, labels ...string) prometheus.Metric {
	b, total, sum := map[float64]uint64{}, uint64(0), uint64(0)
	for le := 1; le <= 64; le *= 2 {
		b[float64(le)] = 0
	}
	for n, times := range count {
		if n == 0 {
			continue
		}
		total += times
		sum += uint64(n) * times
		for le := 1; le <= 64; le *= 2 {
			if n <= le {
				b[float64(le)] += times
			}
		}
	}
	return prometheus.MustNewConstHistogram(workerVector, total, float64(sum), b, labels...)
}
