package tcp

// stream is a part of a byte stream in a ring: what was written and not yet
// acknowledged, or received and not yet read. Where only lengths matter it keeps
// none.
type stream struct {
	ring  []byte // nil: lengths only
	limit int
	start uint64 // offset of the first byte that is kept
	n     int    // bytes from there on in order
}

func newStream(limit int, lengths bool) stream {
	s := stream{limit: limit}
	if !lengths {
		s.ring = make([]byte, min(limit, 64<<10))
	}
	return s
}

// need makes the ring hold n bytes from start on, of which `used` may hold
// something.
func (s *stream) need(n, used int) {
	if s.ring == nil || n <= len(s.ring) {
		return
	}
	size := len(s.ring)
	for size < n {
		size *= 2
	}
	ring := make([]byte, min(size, max(s.limit, n)))
	for i := 0; i < used; {
		from := s.at(s.start+uint64(i), used-i)
		at := int((s.start + uint64(i)) % uint64(len(ring)))
		k := copy(ring[at:], from)
		i += k
	}
	s.ring = ring
}

// at returns bytes from an offset on, up to n and the ring's end.
func (s *stream) at(off uint64, n int) []byte {
	i := int(off % uint64(len(s.ring)))
	return s.ring[i:min(i+n, len(s.ring))]
}

// put writes bytes at an offset; the ring holds them.
func (s *stream) put(off uint64, b []byte) {
	for s.ring != nil && len(b) > 0 {
		k := copy(s.at(off, len(b)), b)
		off += uint64(k)
		b = b[k:]
	}
}

// get copies bytes from an offset to b.
func (s *stream) get(off uint64, b []byte) {
	for s.ring != nil && len(b) > 0 {
		k := copy(b, s.at(off, len(b)))
		off += uint64(k)
		b = b[k:]
	}
}

func (s *stream) drop(n int) {
	s.start += uint64(n)
	s.n -= n
}
