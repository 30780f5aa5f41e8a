package tcp

import "strings"

// Flags of a segment (RFC 9293 section 3.1).
type Flags uint8

const (
	FIN Flags = 1 << iota
	SYN
	RST
	PSH
	ACK
	URG
	ECE
	CWR
)

// String returns the names of the flags that are set.
func (f Flags) String() string {
	var v []string
	for i, name := range [...]string{"FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"} {
		if f>>i&1 != 0 {
			v = append(v, name)
		}
	}
	return strings.Join(v, ",")
}

// Segment is a segment of TCP with what the connection needs of the IP header.
type Segment struct {
	Seq, Ack uint32
	Flags    Flags
	Window   uint16
	Options  Options
	// Len is the length of the payload. Data holds it, or is nil where only lengths
	// matter, as in virtual time.
	Len  int
	Data []byte
	// ECT says that routers may mark the packet, CE that one did (RFC 3168).
	ECT, CE bool
}

// span is how many sequence numbers the segment takes.
func (s *Segment) span() uint32 {
	n := uint32(s.Len)
	if s.Flags&SYN != 0 {
		n++
	}
	if s.Flags&FIN != 0 {
		n++
	}
	return n
}
