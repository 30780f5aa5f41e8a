package dataplane

import (
	"golang.org/x/sys/unix"

	"gswitch/frame"
)

// Changing is implemented by nodes that are changed from outside while they run, as by
// new tables, and take a change over in their next Advance.
type Changing interface {
	// Changed reports whether the next Advance takes over a change.
	Changed() bool
}

// advance is node.Advance, which frames wait for: where it takes over a change, its time is counted,
// with that of the timers which are due.
func (w *Worker) advance(now frame.Time, n *node) {
	if n.changing == nil || !n.changing.Changed() {
		n.Advance(now)
		return
	}
	before := processorTime()
	n.Advance(now)
	w.stats.Adoption.Observe(processorTime() - before)
}

// processorTime returns for how long the calling thread has run. Unlike a clock it stands
// still while others have the processor.
func processorTime() frame.Time {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return frame.Time(t.Nano())
}
