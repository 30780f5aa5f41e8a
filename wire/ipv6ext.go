package wire

import "gswitch/frame"

// MaxIPv6ExtHeaders is how many extension headers the parser follows.
const MaxIPv6ExtHeaders = 8

// IsIPv6Ext reports whether proto is an extension header that the parser
// walks: hop-by-hop, routing, fragment, destination options, AH, mobility.
func IsIPv6Ext(proto uint8) bool {
	switch proto {
	case ProtoHopByHop, ProtoRouting, ProtoFragment, ProtoAH, ProtoDstOpts, ProtoMobility:
		return true
	}
	return false
}

// ipv6ExtLen returns the length of the extension header of kind proto whose
// second byte is l: units of 8 bytes beyond the first 8 (RFC 8200 section 4),
// for AH units of 4 bytes minus 2 (RFC 4302 section 2.2), 8 for a fragment.
func ipv6ExtLen(proto, l uint8) int {
	switch proto {
	case ProtoFragment:
		return IPv6FragmentLen
	case ProtoAH:
		return (int(l) + 2) * 4
	}
	return (int(l) + 1) * 8
}

// IPv6ExtFields is any extension header. Kind, which the header before it
// gives, must be set before Decode. Body is what follows the two first bytes:
// options, routing data, fragment words, or the AH fields.
type IPv6ExtFields struct {
	Kind       uint8
	NextHeader uint8
	Len        uint8 // the header's own length byte; reserved in a fragment header
	Body       []byte
}

func (f *IPv6ExtFields) Encode(b []byte) int {
	n := 2 + len(f.Body)
	if len(b) < n || n != ipv6ExtLen(f.Kind, f.Len) {
		return 0
	}
	b[0], b[1] = f.NextHeader, f.Len
	copy(b[2:], f.Body)
	return n
}

func (f *IPv6ExtFields) Decode(b []byte) (int, frame.Reason) {
	if len(b) < 8 {
		return 0, frame.ParseIPv6ExtHeader
	}
	n := ipv6ExtLen(f.Kind, b[1])
	if n > len(b) {
		return 0, frame.ParseIPv6ExtHeader
	}
	f.NextHeader, f.Len, f.Body = b[0], b[1], b[2:n:n]
	return n, frame.Keep
}

// IPv6FragmentLen is the length of a fragment header, in bytes.
const IPv6FragmentLen = 8

// IPv6Fragment is a view of a fragment header (RFC 8200 section 4.5).
type IPv6Fragment []byte

func (h IPv6Fragment) NextHeader() uint8 { return h[0] }
func (h IPv6Fragment) Offset() int       { return int(be.Uint16(h[2:4]) &^ 7) } // in bytes
func (h IPv6Fragment) More() bool        { return h[3]&1 != 0 }
func (h IPv6Fragment) ID() uint32        { return be.Uint32(h[4:8]) }

// IsFragment is false for an atomic fragment, which is whole (RFC 6946).
func (h IPv6Fragment) IsFragment() bool { return be.Uint16(h[2:4])&0xfff9 != 0 }

// IPv6FragmentFields is a fragment header.
type IPv6FragmentFields struct {
	NextHeader uint8
	Reserved   uint8
	OffsetMore uint16 // offset 13 bits in units of 8 bytes, reserved 2, more 1
	ID         uint32
}

func (f *IPv6FragmentFields) Encode(b []byte) int {
	if len(b) < IPv6FragmentLen {
		return 0
	}
	b[0], b[1] = f.NextHeader, f.Reserved
	be.PutUint16(b[2:4], f.OffsetMore)
	be.PutUint32(b[4:8], f.ID)
	return IPv6FragmentLen
}

func (f *IPv6FragmentFields) Decode(b []byte) (int, frame.Reason) {
	if len(b) < IPv6FragmentLen {
		return 0, frame.ParseIPv6ExtHeader
	}
	*f = IPv6FragmentFields{b[0], b[1], be.Uint16(b[2:4]), be.Uint32(b[4:8])}
	return IPv6FragmentLen, frame.Keep
}
