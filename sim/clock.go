package sim

import (
	"math/bits"

	"gswitch/frame"
)

// Oscillator is a node's own time as an affine function of the engine's.
type Oscillator struct {
	from frame.Time // engine's time at which the node's was base
	base frame.Time
	rate uint64 // ns of the node in 1e9 ns of the engine
}

const (
	ppb = 1_000_000_000
	// MaxDrift is by how many parts in 10^9 an oscillator may be fast or slow.
	MaxDrift = ppb / 2
)

// NewOscillator returns the own time of a node that is base at the engine's instant
// now, and faster from then on by drift parts in 10^9, at most MaxDrift.
func NewOscillator(now, base frame.Time, drift int64) *Oscillator {
	return &Oscillator{from: now, base: base, rate: uint64(ppb + drift)}
}

// Local returns the node's time at t, rounded down.
func (c *Oscillator) Local(t frame.Time) frame.Time {
	if t <= c.from {
		return c.base
	}
	hi, lo := bits.Mul64(uint64(t-c.from), c.rate)
	q, _ := bits.Div64(hi, lo, ppb)
	return c.base + frame.Time(q)
}

// Engine returns the first instant of the engine at which the node's time is t
// or later. Before the clock was set there is none.
func (c *Oscillator) Engine(t frame.Time) frame.Time {
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
