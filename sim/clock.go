package sim

import (
	"math/bits"

	"gswitch/frame"
)

// clock is a node's own time as an affine function of the engine's.
type clock struct {
	from frame.Time // engine's time at which the node's was base
	base frame.Time
	rate uint64 // ns of the node in 1e9 ns of the engine
}

const (
	ppb      = 1_000_000_000
	maxDrift = ppb / 2
)

func newClock(now, base frame.Time, drift int64) *clock {
	return &clock{from: now, base: base, rate: uint64(ppb + drift)}
}

// local returns the node's time at t, rounded down.
func (c *clock) local(t frame.Time) frame.Time {
	if t <= c.from {
		return c.base
	}
	hi, lo := bits.Mul64(uint64(t-c.from), c.rate)
	q, _ := bits.Div64(hi, lo, ppb)
	return c.base + frame.Time(q)
}

// engine returns the first instant of the engine at which the node's time is t
// or later. Before the clock was set there is none.
func (c *clock) engine(t frame.Time) frame.Time {
	if t <= c.base {
		return c.from
	}
	// The least x with floor(x*rate/1e9) >= t-base, so x = ceil((t-base)*1e9/rate).
	hi, lo := bits.Mul64(uint64(t-c.base), ppb)
	if hi >= c.rate {
		return frame.Never
	}
	q, r := bits.Div64(hi, lo, c.rate)
	if r != 0 {
		q++
	}
	return c.from + frame.Time(q)
}
