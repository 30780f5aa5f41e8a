// Package results holds what a run of a scenario measured, the same from every
// engine, its files, and the statistics that all compute alike.
//
// A results directory holds:
//
//	results.json          File: everything but the flows
//	flows.csv             one line per flow: FlowColumns, variant, engine, seed, and a column for each swept key
//	values.csv            one line per value of a run, with values.parquet
//	summary.csv           one line per value of a variant over its seeds, with summary.parquet
//	slots.csv             and other files of systems, see NewFilePart
//	series/RUN-NAME.csv   one line per point: t (seconds), object, value
//	cdf/RUN-NAME.csv      one line per point: x, f (the share of observations up to x)
//
// The series and distributions are in results.json too, so that it can be read
// alone; the other files are there for spreadsheets, R, pandas and DuckDB.
//
// The same File gives the same bytes: keys are sorted and numbers are written
// in the shortest form that reads back exactly. JSON has no infinity and no
// "not a number": such a scalar, point or quantile is left out, and such a
// Check.Got is null.
package results

import "gswitch/fabric/pauses"

// Format is the version of results.json that this package writes and reads.
const Format = 1

// File is results.json: the runs of one scenario.
type File struct {
	Format   int    `json:"format"` // version of this format: 1
	Scenario string `json:"scenario"`
	Title    string `json:"title,omitempty"`
	Version  string `json:"version"` // of gfabric
	// Figure says which figure of which paper the scenario reproduces, and what it shows.
	Figure string `json:"figure,omitempty"`
	// Params are the settings all runs share, in the order they are to be shown.
	Params []Param `json:"params,omitempty"`
	Runs   []Run   `json:"runs"`
	// Checks are expectations that compare runs with each other, or are about the mean of
	// several seeds.
	Checks []Check `json:"checks,omitempty"`
}

// Param is a setting, such as {"topology", "fat-tree, 320 hosts"}.
type Param struct {
	Name  string `json:"name"`
	Value string `json:"value"`
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

	// Warnings say what of the run is possible, and seldom meant.
	Warnings []string `json:"warnings,omitempty"`

	// Record is the file of what its nodes were given, on real frames (gfabric replay).
	Record string `json:"record,omitempty"`

	// Timing is how well real time was kept, nil in virtual time.
	Timing *Timing `json:"timing,omitempty"`

	// Pauses say which port paused which, where that was recorded.
	Pauses *pauses.Trace `json:"pauses,omitempty"`

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

	// Parts are what systems add, by key: see Part. In results.json they stand before the
	// values.
	Parts map[string]any `json:"-"`
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

// Shapes of a series: what is known between its points.
const (
	ShapeStep = ""     // V[i] holds from T[i] until T[i+1], as a queue's depth does
	ShapeMean = "mean" // V[i] is the mean of the time from T[i-1] to T[i], as of goodput
	ShapeLine = "line" // V[i] are samples of something that changes smoothly
)

// Series is a quantity over time, at an object such as "leaf1:2" or "flow 7".
type Series struct {
	Shape  string    `json:"shape,omitempty"` // ShapeStep, ShapeMean or ShapeLine
	Name   string    `json:"name"`            // queue, goodput, cc_U ...
	Object string    `json:"object"`
	Unit   string    `json:"unit"`
	T      []float64 `json:"t"` // seconds
	V      []float64 `json:"v"`
}

// Check is an expectation and whether it held.
type Check struct {
	Text string `json:"text"` // as written in the scenario
	// Run is the run whose seeds' mean it is about, "" of one that stands with its run
	// or compares runs.
	Run string `json:"run,omitempty"`
	// Deviates marks a claim of a paper that is known not to hold here, and
	// says why: OK then says that it still does not.
	Deviates string  `json:"deviates,omitempty"`
	OK       bool    `json:"ok"`
	Got      float64 `json:"got"` // NaN if nothing was measured
	Why      string  `json:"why,omitempty"`
	// Values are those that the claim names, over their seeds; none where each is of one
	// seed.
	Values []Estimate `json:"values,omitempty"`
}

// Estimate is a value over seeds.
type Estimate struct {
	Name  string  `json:"name"` // as the claim has it
	Seeds int     `json:"seeds"`
	Mean  float64 `json:"mean"`
	// Low and High bound the interval that holds the mean of all seeds with 95 %, as in
	// summary.csv; nil for fewer than three.
	Low  *float64 `json:"low,omitempty"`
	High *float64 `json:"high,omitempty"`
}

// NewEstimate returns that of a value's seeds.
func NewEstimate(name string, v []float64) Estimate {
	e := Estimate{Name: name, Seeds: len(v), Mean: Mean(v)}
	if len(v) >= leastInterval {
		half := Confidence(v)
		low, high := e.Mean-half, e.Mean+half
		e.Low, e.High = &low, &high
	}
	return e
}
