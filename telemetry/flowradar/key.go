package flowradar

import "math/bits"

// Key is a flow's five-tuple: 104 bits. IPv6 addresses stand as 32-bit hashes.
// Fragments carry no ports and have 0 in their place at every switch.
type Key struct {
	Addrs uint64 // source, destination
	Rest  uint64 // source port << 24 | destination port << 8 | protocol
}

// NewKey returns the key of a five-tuple. ports is the source port in the upper
// half, the destination port in the lower.
func NewKey(addrs uint64, ports uint32, proto uint8) Key {
	return Key{addrs, uint64(ports)<<8 | uint64(proto)}
}

// restMask are the bits that a key can have.
const restMask = 1<<40 - 1

func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// secrets are what a seed gives: each switch has its own, without which two
// switches would be stuck on the same flows (section 4.4.2).
type secrets [4]uint64

func newSecrets(seed uint64) (k secrets) {
	for i := range k {
		// splitmix64 (Steele, Lea, Flood 2014): near seeds give unrelated numbers.
		seed += 0x9e3779b97f4a7c15
		z := (seed ^ seed>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		k[i] = z ^ z>>31
	}
	return k
}

// hash returns two independent words of a key, for the filter and for the cells.
func (k *secrets) hash(f Key) (filter, cells uint64) {
	x := fold(f.Addrs^k[0], f.Rest^k[1])
	return fold(x^k[2], k[3]|1), fold(x^k[3], k[2]|1)
}

// multipliers give each cell of a flow a mixing step of its own.
var multipliers = func() (m [maxCellHashes]uint64) {
	a, b := newSecrets(1), newSecrets(2)
	for j := range m {
		m[j] = append(a[:], b[:]...)[j] | 1
	}
	return m
}()
