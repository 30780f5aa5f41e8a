package transport

import "math/bits"

// bitmap is a ring of bits, indexed by sequence number modulo its size, a
// power of two of at least 64.
type bitmap []uint64

// ringSize returns the least ring size that holds n entries.
func ringSize(n uint64) int {
	if n <= 64 {
		return 64
	}
	return 1 << bits.Len64(n-1)
}

// recycle returns an empty bitmap of n bits in b's memory if it suffices.
func (b bitmap) recycle(n int) bitmap {
	if cap(b) < n/64 {
		return make(bitmap, n/64)
	}
	b = b[:n/64]
	clear(b)
	return b
}

// grow returns a bitmap of n bits with those of b from seq first up to end.
func (b bitmap) grow(n int, first, end uint64) bitmap {
	g := make(bitmap, n/64)
	for s := first; s < end; s++ {
		if b.has(s) {
			g.set(s)
		}
	}
	return g
}

func (b bitmap) word(seq uint64) *uint64 { return &b[seq>>6&uint64(len(b)-1)] }

func (b bitmap) has(seq uint64) bool { return *b.word(seq)>>(seq&63)&1 != 0 }
func (b bitmap) set(seq uint64)      { *b.word(seq) |= 1 << (seq & 63) }

// zero returns the first sequence number in [from, to) whose bit is 0, or to.
func (b bitmap) zero(from, to uint64) uint64 {
	for from < to {
		if w := ^*b.word(from) >> (from & 63); w != 0 {
			return min(from+uint64(bits.TrailingZeros64(w)), to)
		}
		from = from | 63 + 1
	}
	return to
}

// nthBelow returns the n-th set bit counted down from seq top, which counts,
// to seq floor; false if there are fewer.
func (b bitmap) nthBelow(top, floor uint64, n int) (uint64, bool) {
	for s := top; ; {
		base := s &^ 63
		w := *b.word(s) & (^uint64(0) >> (63 - s&63))
		if floor > base {
			w &= ^uint64(0) << (floor & 63)
		}
		if c := bits.OnesCount64(w); c >= n {
			for ; n > 1; n-- {
				w &^= 1 << (63 - bits.LeadingZeros64(w))
			}
			return base + uint64(63-bits.LeadingZeros64(w)), true
		} else if base <= floor {
			return 0, false
		} else {
			n -= c
		}
		s = base - 1
	}
}

// clearRange clears the bits of [from, to).
func (b bitmap) clearRange(from, to uint64) {
	for from < to {
		mask := ^uint64(0) << (from & 63)
		next := from | 63 + 1
		if next > to {
			mask &= 1<<(to&63) - 1
		}
		*b.word(from) &^= mask
		from = next
	}
}
