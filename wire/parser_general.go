package wire

import "gswitch/frame"

// MaxIPDepth is how many nested IP headers the parser follows, the outer one
// included.
const MaxIPDepth = 4

// general parses every frame. It is the specification; plain is a short cut
// for some.
func (p *Parser) general(m *frame.Meta, b []byte) {
	m.Flags &^= parserFlags
	m.EtherType, m.TCI = 0, 0
	m.L3, m.L4, m.L3Inner, m.L4Inner, m.INT = 0, 0, 0, 0, 0
	m.Proto, m.ProtoIn, m.DSCP, m.TTL = 0, 0, 0, 0
	m.SrcPort, m.DstPort, m.Hash = 0, 0, 0
	if int(m.Wire) > len(b) && m.Next == frame.Nil {
		m.Flags |= frame.Truncated
	}
	m.Reason = p.link(m, b)
}

func (p *Parser) link(m *frame.Meta, b []byte) frame.Reason {
	if len(b) < EthernetLen {
		return frame.ParseShortEthernet
	}
	e := Ethernet(b)
	dst, src := e.DstUint64(), e.SrcUint64()
	if b[0]&1 != 0 {
		m.Flags |= frame.IsMulticast
		if dst == 1<<48-1 {
			m.Flags |= frame.IsBroadcast
		}
	}
	off, et, why := skipTags(b, EthernetLen, e.EtherType())
	tagged := off > EthernetLen
	if et == EtherTypeNSH {
		if inner := BehindSlack(b[off:]); inner != 0 {
			et = inner
			off += NSHLen
		}
	}
	m.EtherType = et
	m.Hash = p.hash.Ethernet(dst, src, et)
	if tagged {
		m.Flags |= frame.HasVLAN
		m.TCI = VLAN(b[EthernetLen:]).TCI()
	}
	if why != frame.Keep {
		return why
	}
	m.L3, m.L3Inner = uint16(off), uint16(off)

	switch et {
	case EtherTypeIPv4, EtherTypeIPv6:
		return p.network(m, b, off, et)
	case EtherTypeARP:
		m.Flags |= frame.IsARP
		if len(b) < off+ARPLen || !ARP(b[off:]).isEthernetIPv4() {
			return frame.ParseShortARP
		}
	case EtherTypeMACControl:
		// The MAC control sublayer lies below tagging: a tagged frame is not its.
		if off == EthernetLen {
			m.Flags |= frame.IsMACControl
			return checkAnyMACControl(b)
		}
	}
	return frame.Keep
}

// skipTags walks the VLAN tags at off, where et is the EtherType before it. It
// returns the offset after the last whole tag and the EtherType there.
func skipTags(b []byte, off int, et uint16) (int, uint16, frame.Reason) {
	for tags := 0; IsTPID(et); tags++ {
		if tags == 2 {
			return off, et, frame.ParseTooManyTags
		}
		if len(b) < off+VLANLen {
			return off, et, frame.ParseShortVLAN
		}
		et = VLAN(b[off:]).EtherType()
		off += VLANLen
	}
	return off, et, frame.Keep
}

func checkAnyMACControl(b []byte) frame.Reason {
	if len(b) < EthernetLen+2 {
		return frame.ParseShortMACControl
	}
	params, ok := KnownMACControl(MACControl(b).Opcode())
	switch {
	case !ok:
		return frame.ParseMACControlOp
	case len(b) < EthernetLen+2+params:
		return frame.ParseShortMACControl
	}
	return frame.Keep
}

// network walks IP header after IP header, the first at off, to the innermost.
func (p *Parser) network(m *frame.Meta, b []byte, off int, et uint16) frame.Reason {
	end := max(int(m.Wire), len(b))
	copied := false // inside ERSPAN: a copy may be cut or wrong, its envelope is good
	for depth := 0; ; depth++ {
		var ip layer
		why := frame.ParseTunnelDepth
		if depth < MaxIPDepth {
			why = ip.read(b, off, end, et, depth == 0)
		}
		if why == frame.Keep {
			if depth == 0 {
				fillOuter(m, &ip)
			}
			p.fillInner(m, b, &ip, depth)
			off, et, end = ip.l4, 0, ip.end
			switch {
			case ip.fragment:
			case ip.proto == ProtoIPv4:
				et = EtherTypeIPv4
			case ip.proto == ProtoIPv6:
				et = EtherTypeIPv6
			case ip.proto == ProtoGRE:
				var mirror bool
				off, et, mirror, why = gre(b, off, end)
				copied = copied || mirror
			default:
				why = p.transport(m, b, &ip, depth)
			}
		}
		if why != frame.Keep && !copied {
			return why
		}
		if why != frame.Keep || et == 0 {
			return frame.Keep
		}
	}
}

func fillOuter(m *frame.Meta, ip *layer) {
	if ip.v6 {
		m.Flags |= frame.HasIPv6
	} else {
		m.Flags |= frame.HasIPv4
	}
	if ip.options {
		m.Flags |= frame.HasOptions
	}
	m.Flags |= ecnFlags[ip.tos&3]
	m.Proto, m.DSCP, m.TTL = ip.proto, ip.tos>>2, ip.ttl
}

// fillInner makes ip the innermost layer found so far.
func (p *Parser) fillInner(m *frame.Meta, b []byte, ip *layer, depth int) {
	m.Flags &^= frame.InnerIPv6
	if ip.v6 {
		m.Flags |= frame.InnerIPv6
	}
	if ip.fragment {
		m.Flags |= frame.IsFragment
	}
	if depth > 0 {
		m.Flags |= frame.HasTunnel
	}
	m.L3Inner, m.L4Inner, m.ProtoIn = uint16(ip.l3), 0, ip.proto
	if !ip.fragment && !hasTransport(ip) && ip.l4 < min(len(b), ip.end) {
		setL4(m, ip, depth)
	}
	m.Hash = p.tupleHash(b, ip, 0)
}

func setL4(m *frame.Meta, ip *layer, depth int) {
	m.L4Inner = uint16(ip.l4)
	if depth == 0 {
		m.L4 = uint16(ip.l4)
	}
}

func (p *Parser) tupleHash(b []byte, ip *layer, ports uint32) uint32 {
	if ip.v6 {
		return p.hash.IPv6(be.Uint32(b[ip.l3:]), (*[32]byte)(b[ip.l3+8:]), ports, ip.proto)
	}
	return p.hash.IPv4(be.Uint64(b[ip.l3+12:]), ports, ip.proto)
}

// layer is one IP header of a frame.
type layer struct {
	l3, l4   int // offsets of the header, and of what follows it and its extensions
	end      int // where the packet ends on the wire
	proto    uint8
	tos, ttl uint8
	v6       bool
	options  bool
	fragment bool
}

// read takes the IP header at off apart, which ends before end at the latest.
func (ip *layer) read(b []byte, off, end int, et uint16, verify bool) frame.Reason {
	ip.l3 = off
	if et == EtherTypeIPv6 {
		return ip.read6(b, off, end)
	}
	return ip.read4(b, off, end, verify)
}

func (ip *layer) read4(b []byte, off, end int, verify bool) frame.Reason {
	limit := min(len(b), end)
	if off+IPv4Len > limit {
		return frame.ParseShortIPv4
	}
	h := IPv4(b[off:])
	if h.Version() != 4 {
		return frame.ParseIPv4Version
	}
	n := h.HeaderLen()
	if n < IPv4Len || off+n > limit {
		return frame.ParseIPv4HeaderLen
	}
	total := int(h.TotalLen())
	if total < n || off+total > end {
		return frame.ParseIPv4TotalLen
	}
	if verify && !h.ChecksumOK() {
		return frame.ParseIPv4Checksum
	}
	ip.l4, ip.end = off+n, off+total
	ip.proto, ip.tos, ip.ttl = h.Proto(), h.TOS(), h.TTL()
	ip.options, ip.fragment = n > IPv4Len, h.IsFragment()
	return frame.Keep
}

func (ip *layer) read6(b []byte, off, end int) frame.Reason {
	if off+IPv6Len > min(len(b), end) {
		return frame.ParseShortIPv6
	}
	h := IPv6(b[off:])
	if h.Version() != 6 {
		return frame.ParseIPv6Version
	}
	ip.v6 = true
	ip.end = off + IPv6Len + int(h.PayloadLen())
	if ip.end > end {
		return frame.ParseIPv6PayloadLen
	}
	ip.proto, ip.tos, ip.ttl = h.NextHeader(), h.TrafficClass(), h.HopLimit()
	ip.l4 = off + IPv6Len
	limit := min(len(b), ip.end)
	for n := 0; IsIPv6Ext(ip.proto); n++ {
		if n == MaxIPv6ExtHeaders || ip.l4+8 > limit {
			return frame.ParseIPv6ExtHeader
		}
		x := b[ip.l4:]
		size := ipv6ExtLen(ip.proto, x[1])
		if ip.l4+size > limit {
			return frame.ParseIPv6ExtHeader
		}
		fragment := ip.proto == ProtoFragment && IPv6Fragment(x).IsFragment()
		ip.options = true
		ip.proto = x[0]
		ip.l4 += size
		if fragment {
			ip.fragment = true // what follows may be the middle of anything
			break
		}
	}
	return frame.Keep
}

// gre reads the GRE header at off. It returns where the IP header inside
// starts and its EtherType, 0 if there is none to follow, and whether the
// payload is a mirrored frame.
func gre(b []byte, off, end int) (int, uint16, bool, frame.Reason) {
	limit := min(len(b), end)
	if off+GRELen > limit {
		return 0, 0, false, frame.ParseShortGRE
	}
	h := GRE(b[off:])
	flags, proto := h.Flags(), h.Protocol()
	switch {
	case flags&greVersion != 0:
		return 0, 0, false, frame.ParseGREVersion
	case flags&GRERouting != 0: // source routes of RFC 1701: legal, nobody's
		return 0, 0, false, frame.Keep
	}
	off += greLen(flags)
	if off > limit {
		return 0, 0, false, frame.ParseShortGRE
	}
	switch proto {
	case EtherTypeIPv4, EtherTypeIPv6:
		return off, proto, false, frame.Keep
	case EtherTypeTEB:
		o, et, why := innerEthernet(b, off, limit)
		return o, et, false, why
	case EtherTypeERSPAN2, EtherTypeERSPAN3:
		n, why := erspanLen(b[off:limit], proto, flags)
		if why != frame.Keep {
			return 0, 0, false, why
		}
		o, et, why := innerEthernet(b, off+n, limit)
		return o, et, true, why
	}
	return 0, 0, false, frame.Keep
}

// erspanLen returns the length of the ERSPAN header at b. Protocol 0x88be
// without a GRE sequence number is type I, which has none
// (draft-foschiano-erspan-03 section 4.1).
func erspanLen(b []byte, proto, greFlags uint16) (int, frame.Reason) {
	n, version := ERSPAN2Len, ERSPANVersion2
	switch {
	case proto == EtherTypeERSPAN3:
		n, version = ERSPAN3Len, ERSPANVersion3
	case greFlags&GRESequence == 0:
		return 0, frame.Keep
	}
	if len(b) < n {
		return 0, frame.ParseShortERSPAN
	}
	if ERSPAN(b).Version() != version {
		return 0, frame.ParseERSPANVersion
	}
	if version == ERSPANVersion3 {
		if n = erspan3Len(b); len(b) < n {
			return 0, frame.ParseShortERSPAN
		}
	}
	return n, frame.Keep
}

// innerEthernet walks an Ethernet header inside a tunnel, and its tags, to an
// IP header; the EtherType is 0 if something else is there.
func innerEthernet(b []byte, off, limit int) (int, uint16, frame.Reason) {
	if off+EthernetLen > limit {
		return 0, 0, frame.ParseShortEthernet
	}
	o, et, why := skipTags(b[:limit], off+EthernetLen, Ethernet(b[off:]).EtherType())
	if et != EtherTypeIPv4 && et != EtherTypeIPv6 {
		et = 0
	}
	return o, et, why
}

// hasTransport reports whether ip carries a transport that transport checks.
func hasTransport(ip *layer) bool {
	switch ip.proto {
	case ProtoTCP, ProtoUDP:
		return true
	case ProtoICMP:
		return !ip.v6
	case ProtoICMPv6:
		return ip.v6
	}
	return false
}

// transport checks the header after the innermost IP header and takes its
// ports.
func (p *Parser) transport(m *frame.Meta, b []byte, ip *layer, depth int) frame.Reason {
	if !hasTransport(ip) {
		return frame.Keep
	}
	off, end, limit := ip.l4, ip.end, min(len(b), ip.end)
	var flags uint32
	switch ip.proto {
	case ProtoTCP:
		if off+TCPLen > limit {
			return frame.ParseShortTCP
		}
		n := TCP(b[off:]).HeaderLen()
		if n < TCPLen || off+n > end {
			return frame.ParseTCPOffset
		}
		if off+n > limit {
			return frame.ParseShortTCP
		}
		flags = frame.HasTCP
	case ProtoUDP:
		if off+UDPLen > limit {
			return frame.ParseShortUDP
		}
		n := int(UDP(b[off:]).Length())
		if n < UDPLen || off+n > end {
			return frame.ParseUDPLen
		}
		flags = frame.HasUDP
		end = off + n
	case ProtoICMP:
		if off+ICMPLen > limit {
			return frame.ParseShortICMP
		}
		flags = frame.HasICMP
	case ProtoICMPv6:
		if off+ICMPv6Len > limit {
			return frame.ParseShortICMP
		}
		flags = frame.HasICMP
	}
	m.Flags |= flags
	setL4(m, ip, depth)
	if flags == frame.HasICMP {
		return frame.Keep
	}
	ports := be.Uint32(b[off:])
	m.SrcPort, m.DstPort = uint16(ports>>16), uint16(ports)
	m.Hash = p.tupleHash(b, ip, ports)
	if flags == frame.HasTCP {
		return frame.Keep
	}
	off += UDPLen
	switch {
	case m.DstPort == RoCEv2Port:
		if !wholeRoCE(b, off, end) {
			return frame.ParseShortRoCE
		}
		m.Flags |= frame.HasRoCE
	case depth == 0:
		flags, why := telemetry(b, off, end, m.DstPort)
		if flags&frame.HasINT != 0 {
			m.Flags |= flags
			m.INT = uint16(off)
		}
		return why
	}
	return frame.Keep
}
