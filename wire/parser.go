package wire

import (
	"encoding/binary"
	"math/bits"

	"gswitch/frame"
)

// Parser fills the parser's part of frame.Meta. It is the only one in the
// switch. It has no state but the hash's keys and may be shared. The zero Parser is
// for nodes that choose by no hash: Meta.Hash is 0 for every frame.
type Parser struct {
	hash Hasher
}

// NewParser returns a parser that fills Meta.Hash by h.
func NewParser(h Hasher) *Parser { return &Parser{hash: h} }

// parserFlags are the bits of Meta.Flags that belong to the parser.
const parserFlags = frame.MarkCE - 1

// ecnFlags holds the flags for each ECN codepoint.
var ecnFlags = [4]uint32{NotECT: 0, ECT1: frame.IsECT, ECT0: frame.IsECT, CE: frame.IsCE}

// Parse fills Flags, EtherType, TCI, L3, L4, L3Inner, L4Inner, INT, Proto,
// ProtoIn, DSCP, TTL, SrcPort, DstPort, Hash and Reason of the frames in v.
// Flags of later stages stay.
//
// A telemetry header is looked for outside of tunnels only: switches on the
// way stamp what they can see without taking an envelope off.
//
// Reason is frame.Keep or the way in which the frame contradicts itself; the
// fields of the layers below the bad one are filled, the others zero, and Hash
// is taken over the deepest good layer.
//
// Lengths in headers are checked against Meta.Wire, so a frame of which only
// the headers are materialised is good; the headers themselves must lie in the
// first chunk.
func (p *Parser) Parse(a *frame.Arena, v []frame.Ref) {
	var last hashed
	for _, r := range v {
		m, b := a.Meta(r), a.Bytes(r)
		if !p.plain(m, b, &last) {
			p.general(m, b)
		}
	}
}

// hashed is the five-tuple of a packet over IPv4 and its hash: frames of one flow
// come in trains. Ports and protocol are never all 0.
type hashed struct {
	addrs uint64
	ports uint32
	proto uint8
	hash  uint32
}

// Guess returns the hash that Parse will give a frame which is IPv4 without
// tags and options, and false for any other. It checks nothing else.
func (p *Parser) Guess(b []byte) (uint32, bool) {
	if len(b) < EthernetLen+IPv4Len+4 {
		return 0, false
	}
	h := (*[EthernetLen + IPv4Len + 4]byte)(b)
	if be.Uint32(h[12:16])>>8 != uint32(EtherTypeIPv4)<<8|0x45 {
		return 0, false
	}
	return p.hash.IPv4(be.Uint64(h[26:34]), be.Uint32(h[34:38]), h[23]), true
}

// plain parses what nearly all traffic is: unicast, at most one C-tag, perhaps
// slack, IPv4 without options or IPv6 without extension headers, no fragment, TCP or UDP,
// and nothing wrong with it. It returns false, having written nothing, for
// everything else.
func (p *Parser) plain(m *frame.Meta, b []byte, last *hashed) bool {
	if len(b) < EthernetLen+IPv4Len+UDPLen || b[0]&1 != 0 {
		return false
	}
	l3, tci, flags := EthernetLen, uint16(0), uint32(0)
	et := be.Uint16(b[12:14])
	if et == EtherTypeVLAN {
		tci, et = be.Uint16(b[14:16]), be.Uint16(b[16:18])
		l3, flags = EthernetLen+VLANLen, frame.HasVLAN
	}
	if int(m.Wire) > len(b) && m.Next == frame.Nil {
		flags |= frame.Truncated
	}
	switch et {
	case EtherTypeIPv4:
		if !p.plain4(m, b, l3, flags, last) {
			return false
		}
	case EtherTypeIPv6:
		if !p.plain6(m, b, l3, flags) {
			return false
		}
	case EtherTypeNSH:
		if et = BehindSlack(b[l3:]); et == 0 {
			return false
		}
		l3 += NSHLen
		if et == EtherTypeIPv4 && !p.plain4(m, b, l3, flags, last) || et == EtherTypeIPv6 && !p.plain6(m, b, l3, flags) {
			return false
		}
	default:
		return false
	}
	m.EtherType, m.TCI = et, tci
	m.L3, m.L3Inner = uint16(l3), uint16(l3)
	m.Reason = frame.Keep
	return true
}

func (p *Parser) plain4(m *frame.Meta, b []byte, l3 int, flags uint32, last *hashed) bool {
	le := binary.LittleEndian
	if len(b) < l3+IPv4Len+UDPLen {
		return false
	}
	ip := (*[IPv4Len + UDPLen]byte)(b[l3:])

	// The header as three words, first byte lowest: one comparison for version,
	// header length and fragmentation, two additions with carry for the
	// checksum. A word added to itself with its halves swapped has in the upper
	// half the sum of both, with the carry brought round.
	w0, w1, w2 := le.Uint64(ip[0:8]), le.Uint64(ip[8:16]), le.Uint32(ip[16:20])
	if w0&0xff3f_0000_0000_00ff != 0x45 {
		return false
	}
	s, c := bits.Add64(w0, w1, 0)
	s, c = bits.Add64(s, uint64(w2), c)
	s += c
	half := uint32((s + bits.RotateLeft64(s, 32)) >> 32)
	if (half+bits.RotateLeft32(half, 16))>>16 != 0xffff {
		return false
	}
	total, proto := int(be.Uint16(ip[2:4])), ip[9]
	if total < IPv4Len || l3+total > int(m.Wire) {
		return false
	}
	l4 := l3 + IPv4Len
	ports, length := be.Uint32(ip[20:24]), int(be.Uint16(ip[24:26]))
	transport := frame.HasUDP // most often it is, and neither telemetry nor short
	switch port := uint16(ports); {
	case proto == ProtoUDP && length >= UDPLen && IPv4Len+length <= total && port-RoCEv2Port > INTPort-RoCEv2Port:
	case proto == ProtoUDP && length >= UDPLen && IPv4Len+length <= total && port == RoCEv2Port && wholeRoCE(b, l4+UDPLen, l4+length):
		transport |= frame.HasRoCE
	default:
		if transport = plainTransport(m, b, l4, l3+total, proto); transport == 0 {
			return false
		}
	}
	m.Flags = m.Flags&^parserFlags | flags | transport | frame.HasIPv4 | ecnFlags[ip[1]&3]
	m.L4, m.L4Inner = uint16(l4), uint16(l4)
	m.Proto, m.ProtoIn = proto, proto
	m.DSCP, m.TTL = ip[1]>>2, ip[8]
	m.SrcPort, m.DstPort = uint16(ports>>16), uint16(ports)
	hash := last.hash
	if addrs := be.Uint64(ip[12:20]); p.hash.keyed() && (addrs != last.addrs || ports != last.ports || proto != last.proto) {
		hash = p.hash.IPv4(addrs, ports, proto)
		*last = hashed{addrs, ports, proto, hash}
	}
	m.Hash = hash
	return true
}

func (p *Parser) plain6(m *frame.Meta, b []byte, l3 int, flags uint32) bool {
	if len(b) < l3+IPv6Len+UDPLen {
		return false
	}
	ip := (*[IPv6Len + UDPLen]byte)(b[l3:])
	l4 := l3 + IPv6Len
	end, proto := l4+int(be.Uint16(ip[4:6])), ip[6]
	if ip[0]>>4 != 6 || end > int(m.Wire) {
		return false
	}
	transport := plainTransport(m, b, l4, end, proto)
	if transport == 0 {
		return false
	}
	ports := be.Uint32(ip[40:44])
	class := ip[0]<<4 | ip[1]>>4
	m.Flags = m.Flags&^parserFlags | flags | transport | frame.HasIPv6 | frame.InnerIPv6 | ecnFlags[class&3]
	m.L4, m.L4Inner = uint16(l4), uint16(l4)
	m.Proto, m.ProtoIn = proto, proto
	m.DSCP, m.TTL = class>>2, ip[7]
	m.SrcPort, m.DstPort = uint16(ports>>16), uint16(ports)
	m.Hash = p.hash.IPv6(be.Uint32(ip[0:4]), (*[32]byte)(ip[8:40]), ports, proto)
	return true
}

// plainTransport returns the flags of a good TCP or UDP header at off in a
// packet that ends at end, or 0 for anything else. Meta.INT is written where
// there is telemetry; elsewhere it is 0 already, since a header that leaves a
// frame takes its offset along.
func plainTransport(m *frame.Meta, b []byte, off, end int, proto uint8) uint32 {
	limit := min(len(b), end)
	switch proto {
	case ProtoUDP:
		if off+UDPLen > limit {
			return 0
		}
		h := (*[UDPLen]byte)(b[off:])
		n := int(be.Uint16(h[4:6]))
		if n < UDPLen || off+n > end {
			return 0
		}
		port := be.Uint16(h[2:4])
		if port-RoCEv2Port > INTPort-RoCEv2Port { // neither RoCEv2 nor telemetry
			return frame.HasUDP
		}
		if port != RoCEv2Port {
			return plainTelemetry(m, b, off+UDPLen, off+n, port)
		}
		if wholeRoCE(b, off+UDPLen, off+n) {
			return frame.HasUDP | frame.HasRoCE
		}
	case ProtoTCP:
		if off+TCPLen > limit {
			return 0
		}
		if n := int(b[off+12]>>4) * 4; n >= TCPLen && off+n <= limit {
			return frame.HasTCP
		}
	}
	return 0
}

// plainTelemetry is plainTransport for what follows a UDP header to one of the
// ports of telemetry.
func plainTelemetry(m *frame.Meta, b []byte, off, end int, port uint16) uint32 {
	flags, why := telemetry(b, off, end, port)
	if why != frame.Keep {
		return 0
	}
	if flags&frame.HasINT != 0 {
		m.INT = uint16(off)
	}
	return frame.HasUDP | flags
}

// telemetry returns the flags of the telemetry header and the RoCEv2 headers
// behind it in a datagram to port, whose payload is at off and ends at end on
// the wire.
func telemetry(b []byte, off, end int, port uint16) (uint32, frame.Reason) {
	n, inner, why := TelemetryLen(b, off, min(len(b), end), port)
	switch {
	case n == 0:
		return 0, why
	case inner != RoCEv2Port:
		return frame.HasINT, frame.Keep
	case !wholeRoCE(b, off+n, end):
		return 0, frame.ParseShortRoCE
	}
	return frame.HasINT | frame.HasRoCE, frame.Keep
}

// wholeRoCE reports whether BTH and extended headers at off lie in b and
// before end.
func wholeRoCE(b []byte, off, end int) bool {
	limit := min(len(b), end)
	return off+BTHLen <= limit && off+RoCEHeaderLen(b[off]) <= limit
}
