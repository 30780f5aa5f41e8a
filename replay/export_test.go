package replay

// Comparable clears what a replay cannot have of a frame whose payload is
// zeros: checksums over the payload, and what an ICMP error quotes of one.
func Comparable(b []byte) []byte {
	h := scan(b)
	if h.sum != 0 {
		b[h.sum], b[h.sum+1] = 0, 0
	}
	if h.icmp && len(b) > h.l4 && quotes(b[h.l4], b[h.l3]>>4) {
		clear(b[h.l4+2:])
	}
	return b
}

// Entries returns what a segment holds, NewSegment one that holds b.
func Entries(s *Segment) []byte    { return s.b }
func NewSegment(b []byte) *Segment { return &Segment{b: b, Last: 1e9} }

// ImageOf returns the image with which a record begins.
func ImageOf(r *Reader) ([]byte, error) {
	_, err := r.next()
	return r.image, err
}

// Available returns how many chunks are free.
func Available(p *Player) int { return p.pool.Available() }
