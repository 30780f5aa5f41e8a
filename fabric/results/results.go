// Package results holds what a run of a scenario measured, the same from every
// engine, and its files.
package results

// File is results.json: the runs of one scenario.
type File struct {
	Format   int    `json:"format"` // version of this format: 1
	Scenario string `json:"scenario"`
	Title    string `json:"title,omitempty"`
	Version  string `json:"version"` // of gfabric
	Runs     []Run  `json:"runs"`
	// Checks are expectations that compare runs with each other.
	Checks []Check `json:"checks,omitempty"`
}

// Run is one variant of a scenario with one seed.
type Run struct {
	Name   string            `json:"name"`             // of the variant, such as "hpcc" or "dcqcn, load 50%"
	Params map[string]string `json:"params,omitempty"` // what the sweep set
	Engine string            `json:"engine"`           // sim or netns
	Seed   uint64            `json:"seed"`
	Digest string            `json:"digest,omitempty"` // of the event history, sim only

	VirtualTime float64 `json:"virtual_seconds"`
	WallTime    float64 `json:"wall_seconds"`
	Events      uint64  `json:"events"`
	FrameHops   uint64  `json:"frame_hops"`

	// Values are scalars by name, with the unit as the last part of the name:
	// slowdown_p99, queue_p95_bytes, pause_share, drops_total, goodput_bps ...
	Values map[string]float64 `json:"values"`
	// Buckets are slowdowns by flow size.
	Buckets []Bucket `json:"buckets,omitempty"`
	// CDFs are distributions by name, such as slowdown, fct_seconds, queue_bytes, rtt_seconds.
	CDFs   []CDF    `json:"cdfs,omitempty"`
	Series []Series `json:"series,omitempty"`
	Checks []Check  `json:"checks,omitempty"`

	Flows []Flow `json:"-"` // flows.csv beside results.json
}

// Flow is one finished (or unfinished) message of the workload.
type Flow struct {
	ID       int
	Src, Dst string
	Group    string  // of the workload entry that made it
	Bytes    uint64  // payload
	Start    float64 // seconds
	FCT      float64 // seconds; 0 = unfinished at the end of the run
	Ideal    float64 // seconds alone in the network
	Slowdown float64
	Retrans  uint32 // frames sent again
}

// Bucket holds flows of similar size.
type Bucket struct {
	Label     string             `json:"label"`
	MaxBytes  uint64             `json:"max_bytes"`
	N         int                `json:"n"`
	Mean      float64            `json:"mean"`
	Quantiles map[string]float64 `json:"quantiles"` // "p50" ... of the slowdown
}

// CDF is a distribution: F[i] is the share of observations up to X[i].
type CDF struct {
	Name string    `json:"name"`
	Unit string    `json:"unit"`
	X    []float64 `json:"x"`
	F    []float64 `json:"f"`
}

// Series is a quantity over time, at an object such as "leaf1:2" or "flow 7".
type Series struct {
	Name   string    `json:"name"` // queue, goodput, cc_U ...
	Object string    `json:"object"`
	Unit   string    `json:"unit"`
	T      []float64 `json:"t"` // seconds
	V      []float64 `json:"v"`
}

// Check is an expectation and whether it held.
type Check struct {
	Text string  `json:"text"` // as written in the scenario
	OK   bool    `json:"ok"`
	Got  float64 `json:"got"`
	Why  string  `json:"why,omitempty"`
}
