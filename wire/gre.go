package wire

import "gswitch/frame"

// GRELen is the length of a GRE header without options, in bytes (RFC 2784).
const GRELen = 4

// Bits of the first GRE word (RFC 2784, RFC 2890; routing: RFC 1701).
const (
	GREChecksum uint16 = 0x8000
	GRERouting  uint16 = 0x4000
	GREKey      uint16 = 0x2000
	GRESequence uint16 = 0x1000
	greVersion  uint16 = 0x0007
)

// GRE is a view of a GRE header.
type GRE []byte

func (h GRE) Flags() uint16    { return be.Uint16(h[0:2]) }
func (h GRE) Version() uint8   { return h[1] & 7 }
func (h GRE) Protocol() uint16 { return be.Uint16(h[2:4]) }

// HeaderLen returns the header's length by its checksum, key and sequence
// bits, 4 bytes each.
func (h GRE) HeaderLen() int { return greLen(h.Flags()) }

func greLen(flags uint16) int {
	return GRELen + 4*int(flags>>15+flags>>13&1+flags>>12&1)
}

// GREFields is a GRE header. Which options are on the wire is reported by Flags;
// Reserved1 belongs to the checksum.
type GREFields struct {
	Flags     uint16 // with version 0
	Protocol  uint16
	Checksum  uint16
	Reserved1 uint16
	Key       uint32
	Sequence  uint32
}

func (f *GREFields) Encode(b []byte) int {
	n := greLen(f.Flags)
	if len(b) < n {
		return 0
	}
	be.PutUint16(b[0:2], f.Flags)
	be.PutUint16(b[2:4], f.Protocol)
	o := GRELen
	if f.Flags&GREChecksum != 0 {
		be.PutUint16(b[o:], f.Checksum)
		be.PutUint16(b[o+2:], f.Reserved1)
		o += 4
	}
	if f.Flags&GREKey != 0 {
		be.PutUint32(b[o:], f.Key)
		o += 4
	}
	if f.Flags&GRESequence != 0 {
		be.PutUint32(b[o:], f.Sequence)
	}
	return n
}

// Decode takes version 0 without source routes.
func (f *GREFields) Decode(b []byte) (int, frame.Reason) {
	if len(b) < GRELen {
		return 0, frame.ParseShortGRE
	}
	h := GRE(b)
	flags := h.Flags()
	if flags&(greVersion|GRERouting) != 0 {
		return 0, frame.ParseGREVersion
	}
	n := greLen(flags)
	if len(b) < n {
		return 0, frame.ParseShortGRE
	}
	*f = GREFields{Flags: flags, Protocol: h.Protocol()}
	o := GRELen
	if flags&GREChecksum != 0 {
		f.Checksum, f.Reserved1 = be.Uint16(b[o:]), be.Uint16(b[o+2:])
		o += 4
	}
	if flags&GREKey != 0 {
		f.Key = be.Uint32(b[o:])
		o += 4
	}
	if flags&GRESequence != 0 {
		f.Sequence = be.Uint32(b[o:])
	}
	return n, frame.Keep
}
