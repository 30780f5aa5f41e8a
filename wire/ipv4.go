package wire

import (
	"net/netip"

	"gswitch/frame"
)

// Lengths of an IPv4 header, in bytes (RFC 791).
const (
	IPv4Len    = 20
	IPv4MaxLen = 60
)

// IP protocol and next-header numbers (IANA).
const (
	ProtoHopByHop uint8 = 0
	ProtoICMP     uint8 = 1
	ProtoIPv4     uint8 = 4 // IPv4 in IP
	ProtoTCP      uint8 = 6
	ProtoUDP      uint8 = 17
	ProtoIPv6     uint8 = 41 // IPv6 in IP
	ProtoRouting  uint8 = 43
	ProtoFragment uint8 = 44
	ProtoGRE      uint8 = 47
	ProtoESP      uint8 = 50
	ProtoAH       uint8 = 51
	ProtoICMPv6   uint8 = 58
	ProtoNoNext   uint8 = 59
	ProtoDstOpts  uint8 = 60
	ProtoMobility uint8 = 135
)

// ECN codepoints (RFC 3168 section 5).
const (
	NotECT uint8 = 0
	ECT1   uint8 = 1
	ECT0   uint8 = 2
	CE     uint8 = 3
)

// Bits of the IPv4 flags and fragment offset word (RFC 791).
const (
	IPv4DontFragment  uint16 = 0x4000
	IPv4MoreFragments uint16 = 0x2000
	IPv4OffsetMask    uint16 = 0x1fff // in units of 8 bytes
)

// IPv4 is a view of an IPv4 header.
type IPv4 []byte

func (h IPv4) Version() uint8      { return h[0] >> 4 }
func (h IPv4) HeaderLen() int      { return int(h[0]&0xf) * 4 }
func (h IPv4) TOS() uint8          { return h[1] }
func (h IPv4) DSCP() uint8         { return h[1] >> 2 }
func (h IPv4) ECN() uint8          { return h[1] & 3 }
func (h IPv4) TotalLen() uint16    { return be.Uint16(h[2:4]) }
func (h IPv4) ID() uint16          { return be.Uint16(h[4:6]) }
func (h IPv4) FlagsOffset() uint16 { return be.Uint16(h[6:8]) }
func (h IPv4) TTL() uint8          { return h[8] }
func (h IPv4) Proto() uint8        { return h[9] }
func (h IPv4) Checksum() uint16    { return be.Uint16(h[10:12]) }
func (h IPv4) Src() [4]byte        { return [4]byte(h[12:16]) }
func (h IPv4) Dst() [4]byte        { return [4]byte(h[16:20]) }
func (h IPv4) SrcUint32() uint32   { return be.Uint32(h[12:16]) }
func (h IPv4) DstUint32() uint32   { return be.Uint32(h[16:20]) }
func (h IPv4) SrcAddr() netip.Addr { return netip.AddrFrom4(h.Src()) }
func (h IPv4) DstAddr() netip.Addr { return netip.AddrFrom4(h.Dst()) }
func (h IPv4) Options() []byte     { return h[IPv4Len:h.HeaderLen()] }

// DontFragment reports whether routers must not fragment the packet.
func (h IPv4) DontFragment() bool { return h.FlagsOffset()&IPv4DontFragment != 0 }

// IsFragment reports whether the packet is a fragment, first or later.
func (h IPv4) IsFragment() bool {
	return h.FlagsOffset()&(IPv4MoreFragments|IPv4OffsetMask) != 0
}

// The setters leave the checksum alone: call UpdateChecksum when done, or use
// the edits (SetDSCP, MarkCE, DecTTL), which patch it.
func (h IPv4) SetTOS(v uint8)          { h[1] = v }
func (h IPv4) SetTotalLen(v uint16)    { be.PutUint16(h[2:4], v) }
func (h IPv4) SetID(v uint16)          { be.PutUint16(h[4:6], v) }
func (h IPv4) SetFlagsOffset(v uint16) { be.PutUint16(h[6:8], v) }
func (h IPv4) SetTTL(v uint8)          { h[8] = v }
func (h IPv4) SetProto(v uint8)        { h[9] = v }
func (h IPv4) SetChecksum(v uint16)    { be.PutUint16(h[10:12], v) }
func (h IPv4) SetSrc(ip [4]byte)       { copy(h[12:16], ip[:]) }
func (h IPv4) SetDst(ip [4]byte)       { copy(h[16:20], ip[:]) }

// UpdateChecksum computes the header checksum afresh.
func (h IPv4) UpdateChecksum() {
	h.SetChecksum(0)
	h.SetChecksum(Checksum(h[:h.HeaderLen()]))
}

// ChecksumOK reports whether the header checksum is right.
func (h IPv4) ChecksumOK() bool { return Checksum(h[:h.HeaderLen()]) == 0 }

// IPv4Fields is an IPv4 header. The length of Options is a multiple of 4, at
// most 40.
type IPv4Fields struct {
	TOS         uint8 // DSCP 6 bits, ECN 2 bits
	TotalLen    uint16
	ID          uint16
	FlagsOffset uint16
	TTL         uint8
	Proto       uint8
	Checksum    uint16
	Src, Dst    [4]byte
	Options     []byte
}

// HeaderLen returns the encoded length.
func (f *IPv4Fields) HeaderLen() int { return IPv4Len + len(f.Options) }

// Encode writes f as it stands; options that are too long or no multiple of 4
// give 0.
func (f *IPv4Fields) Encode(b []byte) int {
	n := f.HeaderLen()
	if len(b) < n || n > IPv4MaxLen || n%4 != 0 {
		return 0
	}
	h := IPv4(b)
	h[0] = 4<<4 | uint8(n/4)
	h.SetTOS(f.TOS)
	h.SetTotalLen(f.TotalLen)
	h.SetID(f.ID)
	h.SetFlagsOffset(f.FlagsOffset)
	h.SetTTL(f.TTL)
	h.SetProto(f.Proto)
	h.SetChecksum(f.Checksum)
	h.SetSrc(f.Src)
	h.SetDst(f.Dst)
	copy(h[IPv4Len:n], f.Options)
	return n
}

// Decode checks version and header length. TotalLen and Checksum are the
// caller's to judge.
func (f *IPv4Fields) Decode(b []byte) (int, frame.Reason) {
	if len(b) < IPv4Len {
		return 0, frame.ParseShortIPv4
	}
	h := IPv4(b)
	if h.Version() != 4 {
		return 0, frame.ParseIPv4Version
	}
	n := h.HeaderLen()
	if n < IPv4Len || n > len(b) {
		return 0, frame.ParseIPv4HeaderLen
	}
	*f = IPv4Fields{h.TOS(), h.TotalLen(), h.ID(), h.FlagsOffset(), h.TTL(), h.Proto(), h.Checksum(), h.Src(), h.Dst(), b[IPv4Len:n:n]}
	return n, frame.Keep
}
