package dataplane

import (
	"golang.org/x/sys/unix"

	"gswitch/frame"
)

// Changing is implemented by nodes that can be changed from outside while they run, for
// instance by new tables, and that adopt the change in their next Advance.
type Changing interface {
	// Changed reports whether the next Advance adopts a change.
	Changed() bool
}

// advance calls the node's Advance. If that adopts a change, frames wait for it, so its
// processor time is recorded, including that of the timers that are due.
func (w *Worker) advance(now frame.Time, n *node) {
	if n.changing == nil || !n.changing.Changed() {
		n.Advance(now)
		return
	}
	before := processorTime()
	n.Advance(now)
	w.stats.Adoption.Observe(processorTime() - before)
}

// processorTime returns how long the calling thread has run. Unlike a clock it does not
// advance while other threads have the processor.
func processorTime() frame.Time {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return frame.Time(t.Nano())
}
