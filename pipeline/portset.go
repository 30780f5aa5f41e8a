package pipeline

import "math/bits"

// MaxPorts is how many ports a PortSet can hold.
const MaxPorts = 256

const portWords = MaxPorts / 64

// PortSet is a set of ports, one bit each.
type PortSet = [portWords]uint64

// nth returns the position of bit k of the n that are set in w, from 0. The
// loop goes by n, which the processor can foresee, and not by k, which is
// random: groups are small.
func nth(w uint64, k, n uint32) int {
	for i := uint32(1); i < n; i++ {
		next := w & (w - 1)
		if i <= k {
			w = next
		}
	}
	return bits.TrailingZeros64(w)
}
