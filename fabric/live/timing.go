package live

import (
	"fmt"
	"math"
	"time"

	"gswitch/dataplane"
	"gswitch/fabric"
	"gswitch/fabric/results"
	"gswitch/fabric/vnet"
	"gswitch/frame"
	"gswitch/histogram"
	"gswitch/sim"
)

// ProcessTiming is how well one process kept time.
type ProcessTiming struct {
	Workers   []dataplane.WorkerStats
	RingDrops uint64
	ClockRead time.Duration
	End       frame.Time // when time stopped
	Passages  []Passage  // of links to other processes
}

// Passage holds the times that one end of a link recorded.
type Passage struct {
	Link       int
	Way        sim.Way // the direction in which this end sends
	Left, Came *dataplane.Passages
}

// ProcessTiming returns how well the process kept time. It is complete after Halt.
func (e *Engine) ProcessTiming() *ProcessTiming {
	v := &ProcessTiming{ClockRead: e.clock, End: e.end}
	if e.final == nil {
		return v
	}
	v.Workers, v.RingDrops = e.final.Workers, ringDrops(e.final)
	for i := range e.links {
		for way, p := range e.links[i].ports {
			if p == nil || e.links[i].ports[1-way] != nil {
				continue
			}
			left, came := p.Passages()
			v.Passages = append(v.Passages, Passage{i, sim.Way(way), left, came})
		}
	}
	return v
}

// Timing returns how well the run kept time. It is complete after Halt.
func (e *Engine) Timing() *results.Timing {
	return Timing(e.spec, e.dp.Dilation(), e.cfg.Bound, e.cfg.Poll, []*ProcessTiming{e.ProcessTiming()})
}

// Timing merges the timings of a run's processes. bound is that of Config.
func Timing(spec *vnet.EngineSpec, dilation int64, bound frame.Time, poll dataplane.PollMode, all []*ProcessTiming) *results.Timing {
	t := &results.Timing{
		Scale:   float64(dilation),
		BaseRTT: spec.BaseRTT.Seconds(),
		Frame:   frameTime(spec),
		Bound:   Bound(spec, bound).Seconds(),
	}
	if len(all) > 1 {
		t.Processes = len(all)
	}
	var late, transit histogram.Histogram
	halted := false
	for _, v := range all {
		t.ClockRead = max(t.ClockRead, v.ClockRead.Seconds())
		t.RingDrops += v.RingDrops
		for i := range v.Workers {
			halted = true
			addWorker(t, &v.Workers[i], &late, &transit)
		}
		if len(v.Workers) > 0 && v.Workers[0].Stopped > 0 {
			w := &v.Workers[0]
			t.StoppedShare = float64(w.Stopped) / float64(w.Stopped+v.End)
			t.StoppedMax = w.StoppedMax.Seconds() * t.Scale
		}
	}
	if !halted {
		return t
	}
	between(all, &transit)
	t.LateP50, t.LateP99, t.LateMax = lateness(&late)
	t.TransitP50, t.TransitP99, t.TransitMax = lateness(&transit)
	t.OverFrame = late.Above(frame.Time(math.Round(t.Frame * 1e9)))
	t.OverRTT = late.Above(spec.BaseRTT)
	judge(t, poll)
	return t
}

// Bound returns the largest lateness of a valid run: that of Config, or a quarter of T.
func Bound(spec *vnet.EngineSpec, bound frame.Time) frame.Time {
	if bound == 0 {
		return spec.BaseRTT / 4
	}
	return bound
}

func addWorker(t *results.Timing, w *dataplane.WorkerStats, all, transit *histogram.Histogram) {
	late := w.Lateness
	late.Merge(&w.FrameLateness)
	all.Merge(&late)
	transit.Merge(&w.Transit)
	row := results.Worker{Name: w.Name, CPU: -1, Poll: w.Poll.String(), Nodes: w.Nodes - 1, Busy: w.BusyShare()}
	if w.Pin {
		row.CPU = w.CPU
	}
	row.LateP50, row.LateP99, row.LateMax = lateness(&late)
	t.Workers = append(t.Workers, row)
}

// between adds the transit times between processes: of each direction of a link, one
// process knows when frames left and another when they arrived.
func between(all []*ProcessTiming, transit *histogram.Histogram) {
	type direction struct {
		link int
		way  sim.Way
	}
	left := map[direction]*dataplane.Passages{}
	for _, v := range all {
		for _, p := range v.Passages {
			left[direction{p.Link, p.Way}] = p.Left
		}
	}
	for _, v := range all {
		for _, p := range v.Passages {
			if l := left[direction{p.Link, sim.Forth + sim.Back - p.Way}]; l != nil && p.Came != nil {
				dataplane.Transit(l, p.Came, transit)
			}
		}
	}
}

// lateness returns quantiles in seconds.
func lateness(h *histogram.Histogram) (p50, p99, most float64) {
	return float64(h.Quantile(0.5)) / 1e9, float64(h.Quantile(0.99)) / 1e9, float64(h.Max) / 1e9
}

// frameTime returns how long a full frame takes on the fastest link of a host, in
// seconds.
func frameTime(spec *vnet.EngineSpec) float64 {
	t, best := spec.Plan.Topology, math.Inf(1)
	for i := range t.Links {
		l := &t.Links[i]
		if l.Rate > 0 && (t.Nodes[l.A.Node].Kind == fabric.Host || t.Nodes[l.B.Node].Kind == fabric.Host) {
			best = min(best, float64(spec.Frame+int(spec.Overhead))*8/float64(l.Rate))
		}
	}
	if math.IsInf(best, 1) {
		return 0
	}
	return best
}

// mostStopped is the share of a run during which the nodes' clock may be stopped before a
// larger scale is advised, which would take as long.
const mostStopped = 0.5

// judge decides whether the run was on time and, if not, why, and what would help.
//
// A stopped clock does not invalidate a run, whatever its share of the time. From one
// loop to the next the clock advances by at most Step, a quarter of a frame, or to the
// next instant that is due. If one worker has all nodes, nothing else acts on them, so
// whatever is due is late by at most Step, and the kernel, whose time does not stop, only
// appears faster to the nodes. What the nodes would notice is a kernel that is slow while
// nothing is due and time runs. Transit measures that. With several workers, Transit also
// covers what Lateness misses: frames that waited for a worker without timers.
func judge(t *results.Timing, poll dataplane.PollMode) {
	tooLate := t.LateP99 > t.Bound
	if tooLate {
		t.Why = append(t.Why, fmt.Sprintf("the 99th percentile of lateness is %v, above the bound of %v (T is %v)", span(t.LateP99), span(t.Bound), span(t.BaseRTT)))
	}
	if t.RingDrops > 0 {
		t.Why = append(t.Why, fmt.Sprintf("%d frames were lost in AF_XDP rings or devices, where no emulated queue is", t.RingDrops))
	}
	if t.TransitP99 > t.Bound {
		tooLate = true
		t.Why = append(t.Why, fmt.Sprintf("the 99th percentile of what frames take from node to node besides the emulated link is %v, above the bound of %v (T is %v)", span(t.TransitP99), span(t.Bound), span(t.BaseRTT)))
	}
	t.Valid = len(t.Why) == 0
	stopped := 1.0
	if t.StoppedShare > mostStopped && t.StoppedShare < 1 {
		stopped = math.Ceil(1 / (1 - t.StoppedShare))
	}
	if t.Valid {
		if stopped > 1 {
			t.Remedies = append(t.Remedies, fmt.Sprintf("a scale of %.0f would have taken as long: the clock of the nodes was stopped for %.0f %% of the time", t.Scale*stopped, 100*t.StoppedShare))
		}
		return
	}
	times := max(2.0, stopped)
	if tooLate && t.Bound > 0 {
		times = max(stopped, math.Ceil(2*max(t.LateP99, t.TransitP99)/t.Bound))
	}
	t.Remedies = append(t.Remedies, fmt.Sprintf("a larger scale: %.0f instead of %.0f", t.Scale*times, t.Scale))
	busy := 0.0
	for i := range t.Workers {
		busy = max(busy, t.Workers[i].Busy)
	}
	if cpus := processors(); busy > 0.5 && len(t.Workers) < cpus {
		t.Remedies = append(t.Remedies, fmt.Sprintf("more workers: a worker is busy %.0f %% of the time, and the machine has %d processors", 100*busy, cpus))
	}
	if busy > 0.5 {
		t.Remedies = append(t.Remedies, "fewer nodes or less load")
	}
	if poll != dataplane.Spin && len(t.Workers) < processors() {
		t.Remedies = append(t.Remedies, "poll mode spin, with a processor for each worker")
	}
	t.Remedies = append(t.Remedies, "nothing else on the machine while it runs")
}

func span(seconds float64) time.Duration { return time.Duration(math.Round(seconds * 1e9)) }

// clockCost measures the real time that reading the clock takes.
func clockCost(dp *dataplane.Engine) time.Duration {
	const reads = 1000
	best := time.Duration(math.MaxInt64)
	var sink frame.Time
	for range 5 { // the minimum, to exclude interruptions
		began := time.Now()
		for range reads {
			sink += dp.Now()
		}
		best = min(best, time.Since(began)/reads)
	}
	_ = sink
	return best
}

// JudgePosts also judges how late flows were posted, if other processes post them than
// the one that schedules them.
func JudgePosts(t *results.Timing) {
	if t.PostP99 <= t.Bound {
		return
	}
	t.Valid = false
	t.Why = append(t.Why, fmt.Sprintf("flows were posted %v late (99th percentile), above the bound of %v (T is %v)", span(t.PostP99), span(t.Bound), span(t.BaseRTT)))
	t.Remedies = append(t.Remedies, fmt.Sprintf("a larger scale: %.0f instead of %.0f; or all nodes in one process (--processes one)", t.Scale*math.Ceil(2*t.PostP99/t.Bound), t.Scale))
}
