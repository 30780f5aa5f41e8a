package results

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
)

// Buckets sorts the finished flows by size and summarises their slowdowns:
// bucket i holds those above edges[i-1] and up to edges[i] bytes. Flows above
// the last edge get a bucket of their own, which ends at the largest. Empty buckets stay, with N = 0, so
// that runs can be put side by side.
func Buckets(flows []Flow, edges []uint64) []Bucket {
	edges = slices.Clone(edges)
	slices.Sort(edges)
	edges = slices.Compact(edges)
	in := make([][]float64, len(edges)+1)
	for i := range flows {
		f := &flows[i]
		if f.FCT > 0 {
			k := sort.Search(len(edges), func(k int) bool { return f.Bytes <= edges[k] })
			in[k] = append(in[k], f.Slowdown)
		}
	}
	var out []Bucket
	var low, largest uint64
	for i := range flows {
		largest = max(largest, flows[i].Bytes)
	}
	for k, x := range in {
		b := Bucket{MaxBytes: largest, Label: "> " + bytesLabel(low), N: len(x), Quantiles: map[string]float64{}}
		if k < len(edges) {
			b.MaxBytes, b.Label = edges[k], "<= "+bytesLabel(edges[k])
			low = edges[k]
		} else if len(x) == 0 {
			break
		}
		if len(x) > 0 {
			slices.Sort(x)
			b.Mean = Mean(x)
			for _, p := range Percentiles {
				b.Quantiles[Percentile(p)] = Quantile(x, p/100)
			}
		}
		out = append(out, b)
	}
	return out
}

// Edges returns the sizes that part flows into n buckets of nearly as many
// flows each, as the axes of slowdown plots are often divided (HPCC, SIGCOMM
// 2019, figure 10). Frequent sizes may make it fewer.
func Edges(flows []Flow, n int) []uint64 {
	if len(flows) == 0 || n < 1 {
		return nil
	}
	sizes := make([]uint64, len(flows))
	for i := range flows {
		sizes[i] = flows[i].Bytes
	}
	slices.Sort(sizes)
	edges := make([]uint64, 0, n)
	for i := 1; i <= n; i++ {
		edges = append(edges, sizes[rank(len(sizes), float64(i)/float64(n))])
	}
	return slices.Compact(edges)
}

// bytesLabel writes a size as sizes of flows are written: 300, 6.7K, 30M, with
// K = 1000.
func bytesLabel(v uint64) string {
	x, unit := float64(v), ""
	for _, u := range []string{"K", "M", "G", "T"} {
		if x < 1000 {
			break
		}
		x, unit = x/1000, u
	}
	return fmt.Sprint(strconv.FormatFloat(x, 'g', 4, 64), unit)
}
