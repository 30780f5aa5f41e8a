package wire

import "gswitch/frame"

// OwnICMP4 is Parse for an ICMP message that the caller has just made: over
// IPv4 without options, untagged, whole, not ECN-capable, with right checksums,
// to a single station. Nothing of that is asked again.
func (p *Parser) OwnICMP4(m *frame.Meta, b []byte) {
	p.own4(m, b, ProtoICMP)
	m.Flags |= frame.HasICMP
}

// OwnIPv4 is the same for any protocol, of which it takes the headers up to that of
// IPv4 alone.
func (p *Parser) OwnIPv4(m *frame.Meta, b []byte) { p.own4(m, b, b[EthernetLen+9]) }

func (p *Parser) own4(m *frame.Meta, b []byte, proto uint8) {
	h := (*[EthernetLen + IPv4Len]byte)(b)
	m.Flags = m.Flags&^parserFlags | frame.HasIPv4
	m.EtherType, m.TCI = EtherTypeIPv4, 0
	m.L3, m.L3Inner = EthernetLen, EthernetLen
	m.L4, m.L4Inner, m.INT = EthernetLen+IPv4Len, EthernetLen+IPv4Len, 0
	m.Proto, m.ProtoIn = proto, proto
	m.DSCP, m.TTL = h[EthernetLen+1]>>2, h[EthernetLen+8]
	m.SrcPort, m.DstPort = 0, 0
	m.Hash = p.hash.IPv4(be.Uint64(h[EthernetLen+12:]), 0, ProtoICMP)
	m.Reason = frame.Keep
}
