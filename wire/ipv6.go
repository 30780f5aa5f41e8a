package wire

import (
	"net/netip"

	"gswitch/frame"
)

// IPv6Len is the length of the fixed IPv6 header, in bytes (RFC 8200).
const IPv6Len = 40

// IPv6 is a view of a fixed IPv6 header.
type IPv6 []byte

func (h IPv6) Version() uint8      { return h[0] >> 4 }
func (h IPv6) TrafficClass() uint8 { return h[0]<<4 | h[1]>>4 }
func (h IPv6) DSCP() uint8         { return h.TrafficClass() >> 2 }
func (h IPv6) ECN() uint8          { return h[1] >> 4 & 3 }
func (h IPv6) FlowLabel() uint32   { return be.Uint32(h[0:4]) & 0xfffff }
func (h IPv6) PayloadLen() uint16  { return be.Uint16(h[4:6]) }
func (h IPv6) NextHeader() uint8   { return h[6] }
func (h IPv6) HopLimit() uint8     { return h[7] }
func (h IPv6) Src() [16]byte       { return [16]byte(h[8:24]) }
func (h IPv6) Dst() [16]byte       { return [16]byte(h[24:40]) }
func (h IPv6) SrcAddr() netip.Addr { return netip.AddrFrom16(h.Src()) }
func (h IPv6) DstAddr() netip.Addr { return netip.AddrFrom16(h.Dst()) }

func (h IPv6) SetTrafficClass(v uint8) {
	h[0] = h[0]&0xf0 | v>>4
	h[1] = h[1]&0x0f | v<<4
}
func (h IPv6) SetPayloadLen(v uint16) { be.PutUint16(h[4:6], v) }
func (h IPv6) SetNextHeader(v uint8)  { h[6] = v }
func (h IPv6) SetHopLimit(v uint8)    { h[7] = v }
func (h IPv6) SetSrc(ip [16]byte)     { copy(h[8:24], ip[:]) }
func (h IPv6) SetDst(ip [16]byte)     { copy(h[24:40], ip[:]) }

// IPv6Fields is a fixed IPv6 header.
type IPv6Fields struct {
	TrafficClass uint8  // DSCP 6 bits, ECN 2 bits
	FlowLabel    uint32 // 20 bits
	PayloadLen   uint16
	NextHeader   uint8
	HopLimit     uint8
	Src, Dst     [16]byte
}

func (f *IPv6Fields) Encode(b []byte) int {
	if len(b) < IPv6Len {
		return 0
	}
	be.PutUint32(b, 6<<28|uint32(f.TrafficClass)<<20|f.FlowLabel&0xfffff)
	h := IPv6(b)
	h.SetPayloadLen(f.PayloadLen)
	h.SetNextHeader(f.NextHeader)
	h.SetHopLimit(f.HopLimit)
	h.SetSrc(f.Src)
	h.SetDst(f.Dst)
	return IPv6Len
}

func (f *IPv6Fields) Decode(b []byte) (int, frame.Reason) {
	if len(b) < IPv6Len {
		return 0, frame.ParseShortIPv6
	}
	h := IPv6(b)
	if h.Version() != 6 {
		return 0, frame.ParseIPv6Version
	}
	*f = IPv6Fields{h.TrafficClass(), h.FlowLabel(), h.PayloadLen(), h.NextHeader(), h.HopLimit(), h.Src(), h.Dst()}
	return IPv6Len, frame.Keep
}
