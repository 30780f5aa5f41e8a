package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"gswitch/dataplane"
	"gswitch/scheduler"
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

func delayHistogram(d *prometheus.Desc, h *scheduler.Histogram, labels []string) prometheus.Metric {
	b, total, sum := bounds(), uint64(0), 0.0
	for i, n := range h.Count {
		if n == 0 {
			continue
		}
		lo, hi := scheduler.BucketBounds(i)
		observe(b, uint64(hi), n)
		total += n
		sum += float64(n) * (lo.Seconds() + hi.Seconds()) / 2
	}
	return prometheus.MustNewConstHistogram(d, total, sum, b, labels...)
}

func lateHistogram(h *dataplane.Histogram, labels ...string) prometheus.Metric {
	b := bounds()
	for i, n := range h.Buckets {
		if n > 0 {
			observe(b, h.Upper(i), n)
		}
	}
	return prometheus.MustNewConstHistogram(workerLate, h.Count, float64(h.Sum)/1e9, b, labels...)
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
