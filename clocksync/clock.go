package clocksync

import (
	"math"

	"gswitch/frame"
)

// Forever is an uncertainty without bound: a clock that never was synchronised,
// or that knows that it is broken.
const Forever frame.Time = math.MaxInt64

// Clock is synchronised time as a function of a node's own. The zero value was
// never synchronised.
type Clock struct {
	offset frame.Time // synchronised less own time
	synced bool
	last   frame.Time // own time at which it was last synchronised to the root
	base   frame.Time // uncertainty at that instant
	drift  int64      // parts in 10^9 by which oscillators may differ
	exact  bool       // the root itself: no uncertainty
}

// Drift is what the paper assumes of any two oscillators within 100 ppm of the
// truth: 200 ns of difference in a millisecond (section 3.3.3).
const Drift = 200_000 // parts in 10^9

// At returns synchronised time at the node's time now.
func (c *Clock) At(now frame.Time) frame.Time { return now + c.offset }

// Lead is by how much synchronised time is ahead of the node's own, and whether it is
// known; 0 if not.
func (c *Clock) Lead() (by frame.Time, known bool) {
	if !c.synced {
		return 0, false
	}
	return c.offset, true
}

// Uncertainty is the largest difference to the root's clock at the node's time
// now (equation 3.1): what it was when the clock was last synchronised, and what
// an oscillator may have drifted since.
func (c *Clock) Uncertainty(now frame.Time) frame.Time {
	switch {
	case c.exact:
		return 0
	case !c.synced:
		return Forever
	}
	return c.base + c.drifted(now-c.last)
}

// drifted rounds up. Spans of more than two hours are taken apart so that the
// product fits.
func (c *Clock) drifted(span frame.Time) frame.Time {
	if span <= 0 {
		return 0
	}
	seconds, rest := span/frame.Second, span%frame.Second
	return seconds*frame.Time(c.drift) + (rest*frame.Time(c.drift)+1e9-1)/1e9
}

// correct sets the clock to `to` at the node's time now.
func (c *Clock) correct(now, to frame.Time) {
	c.offset = to - now
	c.synced, c.last = true, now
}
