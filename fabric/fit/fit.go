// Package fit searches for the smallest dilation at which a machine keeps time,
// doubling until a piece of a scenario is valid, then bisecting, and says which
// of those that were valid takes the least real time. The two differ where the
// clock of the nodes may be stopped (results.Timing.StoppedShare): a small scale is
// valid then, and takes as long as a larger one.
package fit

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"gswitch/fabric/results"
	"gswitch/table"
)

// Try is a piece of a scenario that was run at some scale. Times are of the
// nodes.
type Try struct {
	Scale     int      `json:"scale"`
	Valid     bool     `json:"valid"`
	Run       string   `json:"run"` // the one that was latest, or the first that was not valid
	LateP50   float64  `json:"late_p50_seconds"`
	LateP99   float64  `json:"late_p99_seconds"`
	LateMax   float64  `json:"late_max_seconds"`
	Transit   float64  `json:"transit_p99_seconds"`
	Bound     float64  `json:"late_bound_seconds"`
	Stopped   float64  `json:"stopped_share"` // largest share of real time in which the nodes' clock was stopped
	RingDrops uint64   `json:"ring_drops_total"`
	Why       []string `json:"why,omitempty"`
}

// Add takes the timing of a run of the piece. It reports whether it is worth
// going on with the next.
func (t *Try) Add(run string, g *results.Timing) bool {
	if t.Run == "" {
		t.Valid = true
	}
	if t.Run == "" || !g.Valid || max(g.LateP99, g.TransitP99)*t.Bound > t.worst()*g.Bound {
		t.Run, t.LateP50, t.LateP99, t.LateMax, t.Transit, t.Bound = run, g.LateP50, g.LateP99, g.LateMax, g.TransitP99, g.Bound
	}
	t.Stopped = max(t.Stopped, g.StoppedShare)
	t.RingDrops += g.RingDrops
	if !g.Valid {
		t.Valid, t.Why = false, g.Why
	}
	return t.Valid
}

// worst is the larger of what has to be within the bound.
func (t *Try) worst() float64 { return max(t.LateP99, t.Transit) }

// Takes is how many real seconds one of the nodes took: the clock was stopped for
// Stopped of the time, so that they had the rest.
func (t *Try) Takes() float64 {
	if t.Stopped >= 1 {
		return math.Inf(1)
	}
	return float64(t.Scale) / (1 - max(0, t.Stopped))
}

// quickest returns the scale that took the least real time among those that
// were valid, 0 if there is none or time was always stopped. Of two that took the same within what runs
// differ by, it is the one whose clock was stopped for less.
func quickest(tries []Try) int {
	least := math.Inf(1)
	for i := range tries {
		if tries[i].Valid {
			least = min(least, tries[i].Takes())
		}
	}
	var best *Try
	for i := range tries {
		t := &tries[i]
		if !t.Valid || math.IsInf(least, 1) || t.Takes() > alike*least {
			continue
		}
		if best == nil || t.Stopped < best.Stopped || t.Stopped == best.Stopped && t.Scale < best.Scale {
			best = t
		}
	}
	if best == nil {
		return 0
	}
	return best.Scale
}

// alike is by how much two runs of one scale may differ in real time on a
// machine that has other work.
const alike = 1.1

// Result is how a search ended.
type Result struct {
	Scenario string `json:"scenario"`
	Scale    int    `json:"scale"`       // smallest that was valid; 0: none
	Quickest int    `json:"quickest"`    // of those that were valid, what took the least real time
	Use      int    `json:"recommended"` // with room for what the piece did not show
	Pace     int    `json:"pace"`        // real time for each of the nodes at Quickest, with the time that their clock was stopped
	Command  string `json:"command,omitempty"`
	Tries    []Try  `json:"tries"`
}

// room is by how much the recommended scale is above the smallest: a piece is
// not the whole, and the machine may have more to do later.
const room = 1.5

// fine is how near the search goes to the smallest scale.
const fine = 1.2

// Search looks for the smallest scale from which on try is valid: it doubles,
// beginning with from, up to most, halves where from is valid already, and then
// bisects until it knows the scale to a fifth. try is called once for each
// scale; its error ends the search.
func Search(from, most int, try func(scale int) (Try, error)) (*Result, error) {
	r := &Result{Tries: []Try{}}
	run := func(scale int) (bool, error) {
		t, err := try(scale)
		if err != nil {
			return false, err
		}
		t.Scale = scale
		r.Tries = append(r.Tries, t)
		if t.Valid {
			r.Scale = scale
		}
		return t.Valid, nil
	}
	low, high := 0, 0 // the largest that is not valid, the smallest that is
	for scale := min(max(1, from), most); high == 0 || low == 0 && high > 1; {
		ok, err := run(scale)
		if err != nil {
			return r, err
		}
		if ok {
			high = scale
			scale = max(1, scale/2)
		} else {
			low = scale
			if scale == most {
				return r, nil
			}
			scale = min(2*scale, most)
		}
	}
	for low > 0 && float64(high) > fine*float64(low) && high > low+1 {
		mid := int(math.Sqrt(float64(low) * float64(high)))
		mid = min(max(mid, low+1), high-1)
		ok, err := run(mid)
		if err != nil {
			return r, err
		}
		if ok {
			high = mid
		} else {
			low = mid
		}
	}
	r.Scale, r.Quickest = high, quickest(r.Tries)
	if r.Quickest == 0 {
		r.Quickest = high
	}
	r.Pace = r.pace(r.Quickest)
	r.Use = max(r.Quickest, roomy(high, most))
	if r.stands() {
		r.Use = roomy(r.Pace, most)
	}
	return r, nil
}

// pace is the dilation that the try at a scale came to. Where one worker has
// all nodes, their clock stands while it works: it keeps time at any scale, and
// takes as long as it takes.
func (r *Result) pace(scale int) int {
	for i := range r.Tries {
		if t := &r.Tries[i]; t.Scale == scale && t.Stopped < 1 {
			return int(math.Ceil(t.Takes()))
		}
	}
	return scale
}

// stands says whether at the quickest scale the clock was stopped for most of the
// time. That scale says nothing of the machine then, and a larger one costs
// nothing.
func (r *Result) stands() bool { return r.Pace > 2*r.Quickest }

// roomy leaves room above a scale and rounds up to two digits.
func roomy(scale, most int) int {
	if scale == 1 {
		return 1
	}
	want := math.Ceil(float64(scale) * room)
	unit := math.Pow(10, max(0, math.Floor(math.Log10(want))-1))
	return min(int(math.Ceil(want/unit)*unit), most)
}

// Text writes what was tried, and what to do with it.
func (r *Result) Text(w io.Writer) error {
	var b strings.Builder
	if r.Scale > 0 {
		fmt.Fprintf(&b, "recommended, with room to spare: --scale %d\n", r.Use)
		if r.Command != "" {
			fmt.Fprintf(&b, "  %s\n", r.Command)
		}
		b.WriteByte('\n')
	}
	tries := table.New("SCALE", "KEPT TIME", "LATE P50", "P99", "TRANSIT P99", "MAY BE", "LATE MAX", "REAL P99", "STOOD", "TAKES", "RING DROPS", "LATEST RUN")
	for i := range r.Tries {
		t := &r.Tries[i]
		word := "no"
		if t.Valid {
			word = "yes"
		}
		tries.Rowf("%d\t%s\t%v\t%v\t%v\t%v\t%v\t%v\t%.0f %%\t%.3g x\t%d\t%s", t.Scale, word, span(t.LateP50), span(t.LateP99), span(t.Transit), span(t.Bound), span(t.LateMax),
			span(t.worst()*float64(t.Scale)), 100*t.Stopped, t.Takes(), t.RingDrops, t.Run)
	}
	tries.Print(&b)
	if r.Scale == 0 {
		fmt.Fprintf(&b, "this machine keeps time at none of these scales\n")
	} else {
		fmt.Fprintf(&b, "smallest scale that kept time: %d; least real time: %d\n", r.Scale, r.Quickest)
		if r.stands() {
			fmt.Fprintf(&b, "at %d the nodes' clock was stopped for most of the time: a scale of %d takes as long, and frames come when they are due\n", r.Quickest, r.Pace)
		}
	}
	// As all tables on terminals; durations of Go write µs.
	_, err := io.WriteString(w, strings.ReplaceAll(b.String(), "µs", "us"))
	return err
}

// span writes a time with three digits.
func span(seconds float64) time.Duration {
	d := time.Duration(seconds * 1e9)
	for unit := time.Duration(1); ; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit)
		}
	}
}
