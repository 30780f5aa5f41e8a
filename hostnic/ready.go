package hostnic

import "math/bits"

// readySet is the set of a class's queue pairs that may send now: a bitmap with two
// levels of summary bitmaps above it, so that the next one after the last served is found
// in a few steps, however many there are.
type readySet struct {
	word [3][]uint64
	last uint32 // served last
	// burst is the queue pair whose segment, or turn, is in progress: it continues until
	// that is over.
	burst uint32
}

// grow makes room for queue pairs below n.
func (s *readySet) grow(n int) {
	for l := range s.word {
		n = (n + 63) / 64
		for len(s.word[l]) < n {
			s.word[l] = append(s.word[l], 0)
		}
	}
}

func (s *readySet) empty() bool { return len(s.word[2]) == 0 || s.top() < 0 }

// top returns the first word of the uppermost level that is not empty, -1 if
// there is none. There are 64^3 queue pairs to a word.
func (s *readySet) top() int {
	for i, w := range s.word[2] {
		if w != 0 {
			return i
		}
	}
	return -1
}

func (s *readySet) has(i uint32) bool {
	return int(i>>6) < len(s.word[0]) && s.word[0][i>>6]>>(i&63)&1 != 0
}

func (s *readySet) set(i uint32) {
	s.word[0][i>>6] |= 1 << (i & 63)
	s.word[1][i>>12] |= 1 << (i >> 6 & 63)
	s.word[2][i>>18] |= 1 << (i >> 12 & 63)
}

func (s *readySet) clear(i uint32) {
	if s.word[0][i>>6] &^= 1 << (i & 63); s.word[0][i>>6] != 0 {
		return
	}
	if s.word[1][i>>12] &^= 1 << (i >> 6 & 63); s.word[1][i>>12] != 0 {
		return
	}
	s.word[2][i>>18] &^= 1 << (i >> 12 & 63)
}

// next returns the queue pair whose turn it is: the first after the last served, wrapping
// around. The set must not be empty.
func (s *readySet) next() uint32 {
	if s.burst != noNode {
		if s.has(s.burst) {
			return s.burst
		}
	}
	return s.following(s.last)
}

// following returns the queue pair after i, wrapping around. The set must not be empty.
func (s *readySet) following(i uint32) uint32 {
	if len(s.word[0]) == 1 { // room for 64, as most hosts have no more
		m := s.word[0][0]
		if above := m &^ (2<<(i&63) - 1); above != 0 {
			m = above
		}
		return uint32(bits.TrailingZeros64(m))
	}
	if next, ok := s.after(i); ok {
		return next
	}
	i, _ = s.from(2, uint32(s.top()), s.word[2][s.top()])
	return i
}

// after returns the first above i.
func (s *readySet) after(i uint32) (uint32, bool) {
	for l := range s.word {
		w := i >> 6
		if int(w) >= len(s.word[l]) {
			return 0, false
		}
		if m := s.word[l][w] &^ (2<<(i&63) - 1); m != 0 {
			return s.from(l, w, m)
		}
		i = w
	}
	for w := int(i) + 1; w < len(s.word[2]); w++ {
		if m := s.word[2][w]; m != 0 {
			return s.from(2, uint32(w), m)
		}
	}
	return 0, false
}

// from descends from the lowest bit of m, which is word w of level l.
func (s *readySet) from(l int, w uint32, m uint64) (uint32, bool) {
	i := w<<6 | uint32(bits.TrailingZeros64(m))
	for l--; l >= 0; l-- {
		i = i<<6 | uint32(bits.TrailingZeros64(s.word[l][i]))
	}
	return i, true
}
