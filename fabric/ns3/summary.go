package ns3

import (
	"math"
	"slices"

	"gswitch/frame"
)

// Summary is what a list of completion times comes to. Its JSON keys are
// stable.
type Summary struct {
	Flows        int     `json:"flows"` // that ended
	SlowMean     float64 `json:"slow_mean"`
	SlowP50      float64 `json:"slow_p50"`
	SlowP95      float64 `json:"slow_p95"`
	SlowP99      float64 `json:"slow_p99"`
	Bands        []Band  `json:"bands"`          // by size; those without flows are left out
	LastFinishUS float64 `json:"last_finish_us"` // end of the last flow, from Base
}

// Band holds the flows of a range of sizes.
type Band struct {
	Label    string  `json:"label"`
	MaxBytes uint64  `json:"max_bytes"` // 0 = no bound
	N        int     `json:"n"`
	Mean     float64 `json:"mean"`
	P50      float64 `json:"p50"`
	P95      float64 `json:"p95"`
	P99      float64 `json:"p99"`
}

// Base is the instant at which published flow files begin: two seconds, while
// the simulator sets itself up.
const Base = 2 * frame.Second

var bands = []Band{{Label: "<=3KB", MaxBytes: 3000}, {Label: "3-100KB", MaxBytes: 100_000}, {Label: "0.1-1MB", MaxBytes: 1_000_000}, {Label: ">1MB"}}

// Summarize works out means and percentiles of the slowdown: of all flows and
// by size. Percentile p of n values is the one at index int(n*p) in order, as
// the simulator's scripts take it.
func Summarize(flows []FCT) Summary {
	s := Summary{Flows: len(flows), Bands: []Band{}}
	var all []float64
	by := make([][]float64, len(bands))
	for i := range flows {
		f := &flows[i]
		all = append(all, f.Slowdown())
		b := slices.IndexFunc(bands, func(b Band) bool { return f.Bytes <= b.MaxBytes || b.MaxBytes == 0 })
		by[b] = append(by[b], f.Slowdown())
		s.LastFinishUS = math.Max(s.LastFinishUS, float64(f.Start+f.Time-Base)/1000)
	}
	t := statistics(all)
	s.SlowMean, s.SlowP50, s.SlowP95, s.SlowP99 = t.Mean, t.P50, t.P95, t.P99
	for i, b := range bands {
		if len(by[i]) == 0 {
			continue
		}
		t := statistics(by[i])
		t.Label, t.MaxBytes = b.Label, b.MaxBytes
		s.Bands = append(s.Bands, t)
	}
	return s
}

// statistics sorts v.
func statistics(v []float64) (b Band) {
	if b.N = len(v); b.N == 0 {
		return b
	}
	slices.Sort(v)
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	at := func(p float64) float64 { return v[int(float64(len(v))*p)] }
	b.Mean, b.P50, b.P95, b.P99 = sum/float64(len(v)), at(0.5), at(0.95), at(0.99)
	return b
}

// Report is what gfabric ns3 prints; its JSON keys are stable.
type Report struct {
	Algorithm string `json:"cc"`
	Seed      uint64 `json:"seed"`
	Summary
	Offered       int     `json:"offered"`    // flows of the file
	Unfinished    int     `json:"unfinished"` // of them, those that had not ended
	PFCEvents     uint64  `json:"pfc_events"` // pauses and their ends, renewals left out
	Drops         uint64  `json:"drops"`
	DropReasons   []Drop  `json:"drop_reasons"`
	Retransmitted uint64  `json:"retransmitted"` // frames sent again
	Unsteered     int     `json:"unsteered"`     // flows on another of several equal paths than in the simulator
	WallS         float64 `json:"wall_s"`        // of the run, without reading files and building the network
	Events        uint64  `json:"events"`
	FrameHops     uint64  `json:"frame_hops"` // frames that crossed a link
	FrameHopsPerS float64 `json:"frame_hops_per_s"`
	Digest        string  `json:"digest"` // of the history of events: the same for the same input, seed and version
}

// Drop is how many frames were lost for one reason.
type Drop struct {
	Reason string `json:"reason"`
	Frames uint64 `json:"frames"`
}

// Report sums up a run.
func (r *Result) Report(algorithm string, seed uint64) Report {
	x := Report{Algorithm: algorithm, Seed: seed, Summary: Summarize(r.Flows), Offered: r.Offered, Unfinished: r.Unfinished,
		PFCEvents: r.Pauses.Requests + r.Pauses.XON, DropReasons: []Drop{}, Retransmitted: r.Retrans, Unsteered: r.Unsteered,
		WallS: r.Wall.Seconds(), Events: r.Events, FrameHops: r.FrameHops, Digest: r.Digest}
	for reason, n := range r.Drops {
		if n > 0 {
			x.Drops += n
			x.DropReasons = append(x.DropReasons, Drop{frame.Reason(reason).String(), n})
		}
	}
	if x.WallS > 0 {
		x.FrameHopsPerS = float64(x.FrameHops) / x.WallS
	}
	return x
}
