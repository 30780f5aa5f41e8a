package dataplane

import (
	"gswitch/frame"
	"gswitch/histogram"
)

// delayLine is an emulated link: frames with the instants at which their last bit
// reaches the far end, on which none overtakes another.
type delayLine struct {
	arrivalQueue
	delay frame.Time
	last  frame.Time
}

func newDelayLine(delay frame.Time, frames int) *delayLine {
	return &delayLine{arrivalQueue: newArrivalQueue(frames), delay: delay}
}

// send puts r, whose last bit leaves at depart, on the cable and returns its arrival time.
func (d *delayLine) send(r frame.Ref, depart frame.Time) frame.Time {
	d.last = max(d.last, depart+d.delay)
	d.at[d.tail&d.mask], d.ref[d.tail&d.mask] = d.last, r // behind all others: inlined, which push is not here
	d.tail++
	return d.last
}

// arrived moves the frames that have arrived by now to out, and records how late that is.
func (d *delayLine) arrived(now frame.Time, out []frame.Ref, late *histogram.Histogram) int {
	n := 0
	for n < len(out) && d.first() <= now {
		late.Observe(now - d.first())
		out[n] = d.pop()
		n++
	}
	return n
}
