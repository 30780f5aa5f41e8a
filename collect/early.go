package collect

import (
	"gswitch/frame"
	"gswitch/telemetry/lossradar"
)

// early pairs the digests of a link as they arrive. What a batch lost is known when both
// ends have reported it; the cause is known ten batches later.
type early struct {
	*lossradar.Pairer
	timing  lossradar.Timing
	shape   lossradar.Shape
	workers [2]int
}

const (
	// earlyAhead is how many batches the digests of one end may be ahead of what both
	// have reported, and earlyBehind how many behind: less than half of the batch numbers
	// that packets carry. Digests that are farther apart are left to the slower analysis
	// of causes.
	earlyAhead  = 64
	earlyBehind = 8
)

// addEarly pairs a digest with those of the other end of its link.
func (a *Analysis) addEarly(l *link, d *lossradar.Report) {
	if l.from == nil || l.to == nil {
		return
	}
	both := min(l.from.reportedTo, l.to.reportedTo)
	e := l.early
	if !d.Meter.Down && (e == nil || e.shape != d.Shape || e.workers != l.shards()) {
		period := (d.To - d.From) / frame.Time(d.Merged+1)
		timing := lossradar.Timing{Period: period, Timeout: 2 * period}
		if period > longestBatch || timing.Validate() != nil {
			return
		}
		e = &early{timing: timing, shape: d.Shape, workers: l.shards()}
		e.Pairer = lossradar.NewPairer(timing, period, []lossradar.Segment{l.segment(e.workers)})
		// What the other end has already reported is not available here.
		e.Missed(farEnd, max(d.To, l.to.reportedTo)+2*period)
		l.early = e
	}
	if e == nil || d.To > both+earlyAhead*e.timing.Period || d.To < both-earlyBehind*e.timing.Period {
		return
	}
	e.Add(d.To, d)
}

// judgeEarly judges the batches that both ends of a link have reported.
func (a *Analysis) judgeEarly(l *link) {
	e := l.early
	if e == nil || l.from == nil || l.to == nil {
		return
	}
	e.Missed(farEnd, l.to.missedUntil(e.timing.Period))
	e.Seen(farEnd, l.to.reportedTo)
	for _, o := range e.Advance(min(l.from.reportedTo, l.to.reportedTo)) {
		lost := o.Net + int64(len(o.Extra))
		if o.Unknown || lost <= 0 || o.Revision > 0 {
			continue // packets that arrive later are left to the report of the cause
		}
		event := Event{Kind: Lossy, What: "lost", Where: l.name, At: wall(o.From), Until: wall(o.To), Packets: uint64(lost)}
		event.name(l.name, o.From)
		a.out = append(a.out, event)
	}
}
