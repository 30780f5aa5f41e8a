package pipeline

import "math/bits"

// Odd constants with about half of their bits set, from the fractional part of
// the golden ratio and of the square roots of small primes; any would do.
const (
	mix0 = 0x9e3779b97f4a7c15
	mix1 = 0x6a09e667f3bcc909
	mix2 = 0xbb67ae8584caa73b
	mix3 = 0x3c6ef372fe94f82b
	mix4 = 0xa54ff53a5f1d36f1
	mix5 = 0x510e527fade682d1
	mix6 = 0x9b05688c2b3e6c1f
	mix7 = 0x1f83d9abfb41bd6b
)

// fold multiplies to 128 bits and folds the halves: every bit of the result
// depends on every bit of both arguments.
func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// mix64 hashes one word.
func mix64(x uint64) uint64 { return fold(x^mix0, mix1) }
