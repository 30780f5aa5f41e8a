package pipeline

import "math/bits"

// MaxPorts is how many ports a PortSet can hold.
const MaxPorts = 256

const portWords = MaxPorts / 64

// PortSet is a set of ports, one bit each.
type PortSet = [portWords]uint64

// nth returns the position of bit k of those that are set in w, from 0.
func nth(w uint64, k uint32) int {
	for ; k > 0; k-- { // groups are small: k is a few
		w &= w - 1
	}
	return bits.TrailingZeros64(w)
}
