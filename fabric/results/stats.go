package results

import (
	"math"
	"slices"
	"strconv"
)

// Percentiles are those of every report and of Bucket.Quantiles.
var Percentiles = []float64{50, 95, 99, 99.9}

// Percentile returns the name of a percentile as used in keys: "p50", "p99.9".
func Percentile(p float64) string { return "p" + strconv.FormatFloat(p, 'f', -1, 64) }

// rank is the index of the p-quantile, 0 <= p <= 1, among n sorted
// observations by the nearest rank: a[ceil(n*p)-1]. What ceil would round up
// only because n*p is no exact binary number is taken back.
func rank(n int, p float64) int {
	x := float64(float64(n) * p)
	return min(max(int(math.Ceil(x-float64(1e-9*x)))-1, 0), n-1)
}

// Quantile returns the p-quantile, 0 <= p <= 1, of sorted observations: the
// smallest that at least the share p of them does not exceed (nearest rank, no
// interpolation, so it is always one that was observed). NaN without any.
func Quantile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[rank(len(sorted), p)]
}

// Mean returns the arithmetic mean, NaN without observations.
func Mean(x []float64) float64 { return sum(x) / float64(len(x)) }

// Deviation returns the standard deviation of observations that are all there is
// (divided by their number), NaN without observations.
func Deviation(x []float64) float64 {
	mean := Mean(x)
	squares := make([]float64, len(x))
	for i, v := range x {
		squares[i] = (v - mean) * (v - mean)
	}
	return math.Sqrt(Mean(squares))
}

// student are the quantiles 0.975 of Student's t distribution with 2 to 30
// degrees of freedom.
var student = []float64{4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
	2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042}

// leastInterval is how many values an interval is of at least: of two it is
// twelve times as wide as they are apart.
const leastInterval = 3

// Confidence returns half of the interval around their mean that holds the mean
// of all there could be with 95 %; 0 where there are fewer than three values.
func Confidence(v []float64) float64 {
	n := len(v)
	if n < leastInterval {
		return 0
	}
	mean, sum := Mean(v), 0.0
	for _, x := range v {
		sum += float64((x - mean) * (x - mean))
	}
	t := 1.960
	if n-3 < len(student) {
		t = student[n-3]
	}
	return t * math.Sqrt(sum/float64(n-1)/float64(n))
}

// sum adds with compensation (Neumaier), so that the order of the flows of a
// long run does not show.
func sum(x []float64) float64 {
	var s, lost float64
	for _, v := range x {
		t := s + v
		if math.Abs(s) >= math.Abs(v) {
			lost += s - t + v
		} else {
			lost += v - t + s
		}
		s = t
	}
	return s + lost
}

// Jain returns the fairness index of Jain, Chiu and Hawe (DEC TR-301, 1984):
// (sum x)^2 / (n * sum x^2), from 1/n (one has all) to 1 (all have the same).
// NaN if all have nothing.
func Jain(x []float64) float64 {
	var total, squares float64
	for _, v := range x {
		total += v
		squares += float64(v * v)
	}
	return total * total / (float64(len(x)) * squares)
}

// Slowdowns returns the slowdowns of the finished flows, sorted.
func Slowdowns(flows []Flow) []float64 {
	var x []float64
	for i := range flows {
		if flows[i].FCT > 0 {
			x = append(x, flows[i].Slowdown)
		}
	}
	slices.Sort(x)
	return x
}

// Summarize adds name_mean, name_p50 ... name_p99.9 and name_max of sorted
// observations to values; nothing without observations. A unit goes behind:
// Summarize(v, "queue", "bytes", x) adds queue_p50_bytes.
func Summarize(values map[string]float64, name, unit string, sorted []float64) {
	if len(sorted) == 0 {
		return
	}
	if unit != "" {
		unit = "_" + unit
	}
	values[name+"_mean"+unit] = Mean(sorted)
	values[name+"_max"+unit] = sorted[len(sorted)-1]
	for _, p := range Percentiles {
		values[name+"_"+Percentile(p)+unit] = Quantile(sorted, p/100)
	}
}
