package cc

import "math"

// power is x to the a for x and a of 0 or more, the same on every machine:
// math.Pow multiplies and adds at once where a processor can, and rates must
// not depend on that. The whole part of a is done by squaring, and each bit of
// the rest by one more square root, which IEEE 754 rounds alike everywhere.
func power(x, a float64) float64 {
	whole := math.Floor(a)
	rest, p := a-whole, 1.0
	for n, square := uint64(whole), x; n > 0; n >>= 1 {
		if n&1 == 1 {
			p *= square
		}
		square *= square
	}
	for root := x; rest > 0; {
		root = math.Sqrt(root)
		if rest *= 2; rest >= 1 {
			p *= root
			rest--
		}
		if root == 1 { // no further root changes it
			break
		}
	}
	return p
}
