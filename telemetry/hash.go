package telemetry

import "math/bits"

// Keys are what a seed gives: constants of mixing steps.
type Keys [4]uint64

// NewKeys returns the keys of a seed.
func NewKeys(seed uint64) (k Keys) {
	for i := range k {
		// splitmix64 (Steele, Lea, Flood 2014): near seeds give unrelated keys.
		seed += 0x9e3779b97f4a7c15
		z := (seed ^ seed>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		k[i] = z ^ z>>31
	}
	return k
}

// Fold is a mixing step: the two halves of a product.
func Fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// Multipliers give each of a key's cells a mixing step of its own. With one
// multiplier for all, the cells would lie at the same distances for every key.
var Multipliers = func() (m [8]uint64) {
	k := [...]Keys{NewKeys(1), NewKeys(2)}
	for j := range m {
		m[j] = k[j/4][j%4] | 1
	}
	return m
}()
