package capture

import (
	"encoding/binary"

	"gswitch/wire"
)

// headers is what a filter asks about a frame. The switch's own parser writes
// into frame.Meta, which a tap must leave alone, and stops at the first
// contradiction; a capture wants to see exactly those frames too. So this
// takes what is there, checks only that it lies within the frame, and looks
// no deeper than the outer headers.
type headers struct {
	ether, ip, hosts, ports bool // which of the following are there
	v6                      bool
	pfc, roce               bool
	proto                   uint8
	etherType               uint16
	vlans                   int
	vid                     [2]uint16
	srcPort, dstPort        uint16
	wire                    int
	srcMAC, dstMAC          address
	src, dst                address
}

var be = binary.BigEndian

func (h *headers) dissect(b []byte, length int) {
	h.wire = length
	if len(b) < wire.EthernetLen {
		return
	}
	h.ether = true
	h.dstMAC, h.srcMAC = mac(b), mac(b[6:])
	h.etherType = be.Uint16(b[12:])
	b = b[wire.EthernetLen:]
	for h.vlans < len(h.vid) && (h.etherType == wire.EtherTypeVLAN || h.etherType == wire.EtherTypeQinQ) && len(b) >= wire.VLANLen {
		h.vid[h.vlans] = be.Uint16(b) & 0xfff
		h.vlans++
		h.etherType = be.Uint16(b[2:])
		b = b[wire.VLANLen:]
	}
	switch h.etherType {
	case wire.EtherTypeIPv4:
		h.ipv4(b)
	case wire.EtherTypeIPv6:
		h.ipv6(b)
	case wire.EtherTypeARP:
		// Ethernet and IPv4 (RFC 826): the protocol addresses are hosts.
		if len(b) >= wire.ARPLen && be.Uint32(b) == 0x00010800 && be.Uint16(b[4:]) == 0x0604 {
			h.hosts = true
			h.src.lo, h.dst.lo = uint64(be.Uint32(b[14:])), uint64(be.Uint32(b[24:]))
		}
	case wire.EtherTypeMACControl:
		h.pfc = len(b) >= 2 && be.Uint16(b) == wire.OpPFC
	}
}

func (h *headers) ipv4(b []byte) {
	if len(b) < wire.IPv4Len || b[0]>>4 != 4 {
		return
	}
	h.ip, h.hosts, h.proto = true, true, b[9]
	h.src.lo, h.dst.lo = uint64(be.Uint32(b[12:])), uint64(be.Uint32(b[16:]))
	n := int(b[0]&15) * 4
	first := be.Uint16(b[6:])&0x1fff == 0 // fragment offset
	if n >= wire.IPv4Len && n <= len(b) && first {
		h.transport(b[n:])
	}
}

func (h *headers) ipv6(b []byte) {
	if len(b) < wire.IPv6Len || b[0]>>4 != 6 {
		return
	}
	h.ip, h.hosts, h.v6, h.proto = true, true, true, b[6]
	h.src = address{be.Uint64(b[8:]), be.Uint64(b[16:])}
	h.dst = address{be.Uint64(b[24:]), be.Uint64(b[32:])}
	b = b[wire.IPv6Len:]
	for range wire.MaxIPv6ExtHeaders {
		n := 0
		switch h.proto {
		case wire.ProtoHopByHop, wire.ProtoRouting, wire.ProtoDstOpts, wire.ProtoMobility:
			if len(b) < 8 {
				return
			}
			n = 8 + 8*int(b[1]) // RFC 8200 section 4.3
		case wire.ProtoAH:
			if len(b) < 8 {
				return
			}
			n = 8 + 4*int(b[1]) // RFC 4302 section 2.2
		case wire.ProtoFragment:
			if len(b) < wire.IPv6FragmentLen {
				return
			}
			if be.Uint16(b[2:])>>3 != 0 {
				h.proto = b[0]
				return // a later fragment
			}
			n = wire.IPv6FragmentLen
		default:
			h.transport(b)
			return
		}
		if n > len(b) {
			return
		}
		h.proto = b[0]
		b = b[n:]
	}
}

func (h *headers) transport(b []byte) {
	if h.proto != wire.ProtoTCP && h.proto != wire.ProtoUDP || len(b) < 4 {
		return
	}
	h.ports = true
	h.srcPort, h.dstPort = be.Uint16(b), be.Uint16(b[2:])
	h.roce = h.proto == wire.ProtoUDP && h.dstPort == wire.RoCEv2Port
}
