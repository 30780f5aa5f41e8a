package dataplane

import (
	"gswitch/frame"
	"gswitch/histogram"
)

// delayLine is an emulated link: a FIFO of frames with the instants at which
// their last bit reaches the far end. Its memory is allocated once.
type delayLine struct {
	delay      frame.Time
	at         []frame.Time
	ref        []frame.Ref
	mask       uint32
	head, tail uint32
	last       frame.Time
}

func newDelayLine(delay frame.Time, frames int) *delayLine {
	size := 1
	for size < frames {
		size <<= 1
	}
	return &delayLine{delay: delay, at: make([]frame.Time, size), ref: make([]frame.Ref, size), mask: uint32(size - 1)}
}

// room returns how many more frames fit.
func (d *delayLine) room() int { return len(d.ref) - int(d.tail-d.head) }

// push puts r, whose last bit leaves at depart, on the cable and returns its arrival
// time. Frames never overtake each other.
func (d *delayLine) push(r frame.Ref, depart frame.Time) frame.Time {
	d.last = max(d.last, depart+d.delay)
	d.at[d.tail&d.mask], d.ref[d.tail&d.mask] = d.last, r
	d.tail++
	return d.last
}

// pop moves the frames that have arrived by now to out, and records how late that is.
func (d *delayLine) pop(now frame.Time, out []frame.Ref, late *histogram.Histogram) int {
	n := 0
	for n < len(out) && d.head != d.tail && d.at[d.head&d.mask] <= now {
		late.Observe(now - d.at[d.head&d.mask])
		out[n] = d.ref[d.head&d.mask]
		d.head++
		n++
	}
	return n
}

// wake returns when the next frame arrives.
func (d *delayLine) wake() frame.Time {
	if d.head == d.tail {
		return frame.Never
	}
	return d.at[d.head&d.mask]
}

// release frees the frames on the cable.
func (d *delayLine) release(p *frame.Pool) {
	for ; d.head != d.tail; d.head++ {
		p.Free(d.ref[d.head&d.mask])
	}
}
