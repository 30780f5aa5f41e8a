package run

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"gswitch/frame"
)

// progress is the progress of a run. The run writes it and the reporter reads it.
type progress struct {
	name   string
	end    frame.Time
	open   bool // the run ends with its last flow, which may be long before its end time
	now    atomic.Int64
	events atomic.Uint64
	state  atomic.Int32

	late  atomic.Int64 // on real frames: 99th percentile of lateness so far, plus 1; 0: unknown
	asked time.Time    // when the engine was last asked for it
}

// States of a run.
const (
	waiting int32 = iota
	running
	finished
)

func (p *progress) set(now frame.Time, events uint64) {
	p.now.Store(int64(now))
	p.events.Store(events)
}

// length returns how long a run takes in virtual time.
func (p *progress) length() string {
	if p.open {
		return fmt.Sprintf("at most %v", p.end.Duration())
	}
	return p.end.Duration().String()
}

// ask asks the engine for its lateness so far, if it measures that. It asks no more often
// than the value is read, since the answer costs the workers time.
func (p *progress) ask(engine any) {
	e, ok := engine.(interface{ Late() float64 })
	if !ok || time.Since(p.asked) < interval/2 {
		return
	}
	p.asked = time.Now()
	p.late.Store(1 + int64(e.Late()*1e9))
}

// reporter writes the progress of runs, one line at a time.
type reporter struct {
	w     io.Writer
	runs  []*progress
	began time.Time
	stop  chan struct{}
	done  sync.WaitGroup
}

// interval is how often the reporter writes.
const interval = 5 * time.Second

func newReporter(w io.Writer, runs []*progress) *reporter {
	r := &reporter{w: w, runs: runs, began: time.Now(), stop: make(chan struct{})}
	if w == nil {
		return r
	}
	r.done.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		var last uint64
		for {
			select {
			case <-r.stop:
				return
			case <-tick.C:
				last = r.report(last, time.Since(r.began))
			}
		}
	})
	return r
}

func (r *reporter) close() {
	close(r.stop)
	r.done.Wait()
}

// report writes which runs are active, and estimates when all will be done from the share
// of virtual time that is over and the real time that it took. There is no estimate while
// the end of some runs is unknown. last is the number of events at the last report.
func (r *reporter) report(last uint64, took time.Duration) (events uint64) {
	share, over, known := 0.0, 0, true
	text := ""
	for _, p := range r.runs {
		part := float64(p.now.Load()) / float64(p.end)
		events += p.events.Load()
		switch p.state.Load() {
		case finished:
			share++
			over++
		case waiting:
			known = known && !p.open
		case running:
			share += part
			known = known && !p.open
			text += fmt.Sprintf("  %s %s of %s", p.name, frame.Time(p.now.Load()).Duration().Round(time.Microsecond), p.length())
			if late := p.late.Load(); late > 0 {
				text += fmt.Sprintf(", p99 of lateness %v", time.Duration(late-1))
			}
		}
	}
	left := ""
	if share > 0 && known {
		d := time.Duration(float64(took) * (float64(len(r.runs)) - share) / share)
		left = fmt.Sprintf(", about %v left", d.Round(time.Second))
	}
	speed := ""
	if events > 0 { // not counted on real frames
		speed = fmt.Sprintf(", %.2f M events/s", float64(events-last)/interval.Seconds()/1e6)
	}
	fmt.Fprintf(r.w, "%d of %d runs done%s%s%s\n", over, len(r.runs), speed, left, text)
	return events
}
