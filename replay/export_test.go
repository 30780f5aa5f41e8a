package replay

// Entries returns what a segment holds, NewSegment one that holds b.
func Entries(s *Segment) []byte    { return s.b }
func NewSegment(b []byte) *Segment { return &Segment{b: b, Last: 1e9} }
