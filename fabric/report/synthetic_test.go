package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gswitch/fabric/results"
)

// synthetic returns made-up results with the shapes of real ones. Nothing was
// measured: the numbers come from formulas and a seeded generator.
func synthetic(loads []string, algorithms ...string) *results.File {
	f := &results.File{
		Format: results.Format, Scenario: "synthetic", Title: "Synthetic: tail latency of short flows", Version: "test",
		Figure: "Not a figure of any paper: made-up numbers that exercise every drawing of a report, under loads of " + fmt.Sprint(loads) + ".",
		Params: []results.Param{{Name: "topology", Value: "fat-tree, 320 hosts, 100 Gb/s"}, {Name: "workload", Value: "FB_Hadoop"}, {Name: "duration", Value: "10 ms"}},
		Checks: []results.Check{{Text: "slowdown_p99(hpcc) < slowdown_p99(dcqcn)", OK: true, Got: 0.31}},
	}
	for li, load := range loads {
		for ai, name := range algorithms {
			params := map[string]string{"cc": name, "host_rate": "100Gbps"}
			label := name
			if len(loads) > 1 {
				params["load"] = load
				label += ", load=" + load
			}
			f.Runs = append(f.Runs, syntheticRun(label, params, ai, 1+float64(li)))
		}
	}
	return f
}

func syntheticRun(name string, params map[string]string, k int, heavy float64) results.Run {
	rng := rand.New(rand.NewPCG(uint64(k), uint64(heavy*1000)))
	bad := heavy * (1 + 0.8*float64(k))
	r := results.Run{
		Name: name, Params: params, Engine: "sim", Seed: 1, Digest: fmt.Sprintf("%016x", rng.Uint64()),
		VirtualTime: 0.01, WallTime: 2.5 * bad, Events: 40_000_000, FrameHops: 9_000_000, Values: map[string]float64{},
	}
	sizes := []uint64{324, 400, 500, 600, 700, 1000, 7000, 46_000, 120_000, 10_000_000}
	var queue, weight []float64
	for id := range 4000 {
		size := sizes[rng.IntN(len(sizes))] - uint64(rng.IntN(300))
		ideal := 5e-6 + float64(size)*8e-11
		slow := 1 + 0.05*bad*rng.ExpFloat64() + math.Pow(rng.Float64(), 30)*6*bad*rng.ExpFloat64()
		flow := results.Flow{ID: id, Src: "h1", Dst: "h2", Bytes: size, Start: float64(id) * 2.5e-6, Ideal: ideal, FCT: ideal * slow, Slowdown: slow}
		r.Flows = append(r.Flows, flow)
		queue, weight = append(queue, math.Floor(max(0, rng.ExpFloat64()-1)*9*bad)*1048), append(weight, 1+rng.Float64())
	}
	slow := results.Slowdowns(r.Flows)
	results.Summarize(r.Values, "slowdown", "", slow)
	slices.Sort(queue)
	results.Summarize(r.Values, "queue", "bytes", queue)
	for name, v := range map[string]float64{
		"flows_total": 4000, "pause_share": 0.002 * float64(k), "pauses_total": math.Floor(431 * float64(k)), "drops_total": 0, "retransmissions_total": float64(17 * k), "goodput_bps": 5.6e10 / bad, "utilisation_share": 0.93 / bad, "own_measure_seconds": 3.2e-5 * bad,
	} {
		r.Values[name] = v
	}
	r.Buckets = results.Buckets(r.Flows, sizes)
	r.CDFs = []results.CDF{results.NewCDF("slowdown", "", slow), results.WeightedCDF("queue_bytes", "bytes", queue, weight)}
	r.Series = syntheticSeries(rng, bad)
	r.Checks = []results.Check{{Text: "queue_p99_bytes < 60KB", OK: k == 0, Got: r.Values["queue_p99_bytes"], Why: "the queue was longer"}}
	return r
}

func syntheticSeries(rng *rand.Rand, bad float64) []results.Series {
	var all []results.Series
	queue := results.Series{Name: "queue", Object: "leaf1:17", Unit: "bytes"}
	depth := 0.0
	for i := range 20_000 {
		depth = max(0, depth+(rng.Float64()-0.505)*4000*bad)
		queue.T, queue.V = append(queue.T, float64(i)*5e-7), append(queue.V, math.Floor(depth/1048)*1048)
	}
	all = append(all, queue)
	for flow := range 4 {
		s := results.Series{Name: "goodput", Object: fmt.Sprintf("flow %d", flow+1), Unit: "bps", Shape: results.ShapeMean}
		for i := flow * 20; i < 100; i++ {
			share := 9.5e10 / float64(min(i/20, 3)+1)
			s.T, s.V = append(s.T, float64(i+1)*1e-4), append(s.V, share*(1+0.1*bad*(rng.Float64()-0.5)))
		}
		all = append(all, s)
	}
	u := results.Series{Name: "cc_U", Object: "flow 1", Shape: results.ShapeLine}
	for i := range 200 {
		u.T, u.V = append(u.T, float64(i)*5e-5), append(u.V, 0.95+0.3*bad*math.Exp(-float64(i)/40)*math.Sin(float64(i)/6))
	}
	return append(all, u)
}
