package scheduler

import (
	"math/bits"

	"gswitch/frame"
)

// RateClock says when a link of a given rate is free again. It is exact: one
// byte takes 8e9/rate ns, kept as a reduced fraction, and the part of a
// nanosecond that a frame leaves over is carried to the next. The zero value
// is a link without a rate, which is always free.
type RateClock struct {
	free     frame.Time // the link is free from free + rem/den ns on
	rem      uint64     // less than den
	num, den uint64     // a byte takes num/den ns; den 0 = no rate
	drop     uint64     // bits of rem that are not carried: none, or all
	less     uint64     // 1 where whole nanoseconds are short of the exact time
}

// SetRate changes the rate to bit/s; 0 takes the rate away. What was charged
// before stays charged, up to the fraction of a nanosecond.
func (c *RateClock) SetRate(rate uint64) {
	c.rem = 0
	if rate == 0 {
		c.num, c.den = 0, 0
		return
	}
	const nsBitsPerByte = 8e9
	g := gcd(nsBitsPerByte, rate)
	c.num, c.den = nsBitsPerByte/g, rate/g
}

// WholeNs says whether frames take whole nanoseconds as in ns-3, whose links
// are so much faster than their rate: each takes the largest whole number
// below its exact time (1048 bytes at 100 Gb/s 83 and not 83.84 ns), and
// nothing is carried on. It is below, not at it, where the exact time is
// whole: 650 bytes at 25 Gb/s take 207 and not 208 ns, since ns-3 converts from
// binary fractions of a second and cuts off.
func (c *RateClock) WholeNs(on bool) {
	c.drop, c.less = 0, 0
	if on {
		c.drop, c.less, c.rem = ^uint64(0), 1, 0
	}
}

// Limited reports whether the link has a rate.
func (c *RateClock) Limited() bool { return c.den != 0 }

// Free returns the instant, rounded down to a nanosecond, at which the link
// can start the next frame.
func (c *RateClock) Free() frame.Time { return c.free }

// Idle says that the link did nothing before t: it cannot be free earlier.
func (c *RateClock) Idle(t frame.Time) {
	if c.free < t {
		c.free, c.rem = t, 0
	}
}

// Charge occupies the link for n bytes.
func (c *RateClock) Charge(n uint32) {
	if c.den == 0 || n == 0 {
		return
	}
	x := uint64(n)*c.num + c.rem - c.less
	switch {
	case c.den == 1:
		c.free += frame.Time(x)
	case (x|c.den)>>32 == 0: // the narrow division is several times cheaper
		d := uint32(c.den)
		c.free += frame.Time(uint32(x) / d)
		c.rem = uint64(uint32(x)%d) &^ c.drop
	default:
		c.free += frame.Time(x / c.den)
		c.rem = x % c.den &^ c.drop
	}
}

// Span returns how long n bytes, at most MaxBurst, take, rounded down to a nanosecond.
func (c *RateClock) Span(n uint32) frame.Time {
	if c.den == 0 || n == 0 {
		return 0
	}
	return frame.Time((uint64(n)*c.num - c.less) / c.den)
}

// Slowed returns how long a frame of n bytes and the gap behind it take where the rate is
// divided by 2^stage (Gentle Flow Control): the first whole nanosecond behind both. stage
// is at most 15.
func (c *RateClock) Slowed(n uint32, stage uint8) frame.Time { return c.Span(n<<stage) + 1 }

// Bytes returns how many bytes the link sends in t, a rated one's.
func (c *RateClock) Bytes(t frame.Time) uint64 {
	hi, lo := bits.Mul64(uint64(t), c.den)
	n, _ := bits.Div64(hi, lo, c.num)
	return n
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
