package frame

// Rand is a small seeded generator (xorshift64*, Vigna 2016) that is handed to
// whatever needs randomness, so that a run repeats to the bit.
type Rand struct{ s uint64 }

// NewRand returns a generator for seed.
func NewRand(seed uint64) Rand {
	// splitmix64, so that near seeds give unrelated streams and zero is legal.
	z := seed + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	if z == 0 {
		z = 1
	}
	return Rand{z}
}

// Uint64 returns 64 random bits.
func (r *Rand) Uint64() uint64 {
	r.s ^= r.s >> 12
	r.s ^= r.s << 25
	r.s ^= r.s >> 27
	return r.s * 2685821657736338717
}

// Uint32n returns a number in [0, n). n must not be zero.
func (r *Rand) Uint32n(n uint32) uint32 {
	return uint32(uint64(uint32(r.Uint64()>>32)) * uint64(n) >> 32)
}

// Float64 returns a number in [0, 1).
func (r *Rand) Float64() float64 { return float64(float64(r.Uint64()>>11) / (1 << 53)) }
