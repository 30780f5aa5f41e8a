package replay

import (
	"encoding/binary"

	"gswitch/wire"
)

// headers is what scan finds of a frame.
type headers struct {
	keep   int // bytes from the front that are recorded
	l3, l4 int // offsets, 0 where there is none that is known
	sum    int // offset of a checksum over what is not recorded, 0 if there is none
	icmp   bool
	gre    bool // behind IPv4, without options
}

// tcp reports whether the checksum is that of TCP.
func (h *headers) tcp() bool { return h.sum == h.l4+16 }

// telemetryKeep bounds a telemetry block with the headers behind it.
const telemetryKeep = 120

// extender is a node that says how many bytes of headers RoCEv2 packets to it have
// behind those of their opcode.
type extender interface{ Extension(b []byte, bth int) int }

var be = binary.BigEndian

// scan finds how much of a frame decides what nodes do with it: the headers
// of TCP and UDP, and the whole of everything else, which are control messages
// and what a parser looks into (tunnels, fragments, extension headers).
func scan(b []byte) headers { return scanFor(b, nil) }

// scanFor is scan for a node that says what is behind the headers of RoCEv2 packets.
func scanFor(b []byte, to extender) (h headers) {
	h.keep = len(b)
	if len(b) < wire.EthernetLen {
		return h
	}
	off, et := wire.EthernetLen, be.Uint16(b[12:])
	if et == wire.EtherTypeLinkTag && len(b) >= off+wire.LinkTagLen { // of LossRadar, before all other tags
		off += wire.LinkTagLen
		et = be.Uint16(b[off-2:])
	}
	for tags := 0; (et == wire.EtherTypeVLAN || et == wire.EtherTypeQinQ) && tags < 2 && len(b) >= off+wire.VLANLen; tags++ {
		et = be.Uint16(b[off+2:])
		off += wire.VLANLen
	}
	if et == wire.EtherTypeNSH {
		if behind := wire.BehindSlack(b[off:]); behind != 0 {
			off, et = off+wire.NSHLen, behind
		}
	}
	var proto uint8
	switch {
	case et == wire.EtherTypeIPv4 && len(b) >= off+wire.IPv4Len:
		proto, h.l3 = b[off+9], off
		if h.icmp = proto == wire.ProtoICMP; b[off] != 0x45 || be.Uint16(b[off+6:])&0x3fff != 0 {
			return headers{keep: len(b)}
		}
		h.gre = proto == wire.ProtoGRE
		off += wire.IPv4Len
	case et == wire.EtherTypeIPv6 && len(b) >= off+wire.IPv6Len:
		proto, h.l3 = b[off+6], off
		h.icmp = proto == wire.ProtoICMPv6
		off += wire.IPv6Len
	default:
		return h
	}
	h.l4 = off
	switch {
	case proto == wire.ProtoTCP && len(b) >= off+wire.TCPLen:
		if n := int(b[off+12]>>4) * 4; n >= wire.TCPLen && off+n <= len(b) {
			h.keep, h.sum = off+n, off+16
		}
	case proto == wire.ProtoUDP && len(b) >= off+wire.UDPLen:
		n, port := off+wire.UDPLen, be.Uint16(b[off+2:])
		switch port {
		case wire.ConnectionManagerPort: // what hosts agree on, with the checksum over it
			return h
		case wire.RoCEv2Port:
			n = roce(b, n, off, to)
		case wire.HPCCPort, wire.HPCCGrowPort, wire.INTPort:
			if k, behind, _ := wire.TelemetryLen(b, n, len(b), port); k > 0 && behind == wire.RoCEv2Port {
				n = min(roce(b, n+k, off, to), n+telemetryKeep)
			} else {
				n += telemetryKeep
			}
		}
		h.keep, h.sum = min(n, len(b)), off+6
	}
	return h
}

// roce returns where what is kept of a RoCEv2 packet ends whose BTH is at bth, in
// the datagram at udp. An acknowledgement says all that it says to the sender: it is
// kept up to its ICRC.
func roce(b []byte, bth, udp int, to extender) int {
	if bth >= len(b) {
		return len(b)
	}
	n := bth + wire.RoCEHeaderLen(b[bth])
	if to != nil {
		n += to.Extension(b, bth)
	}
	if op := b[bth]; op == wire.RCAcknowledge || op == wire.RCAtomicAcknowledge || op == wire.RCReadAcknowledge {
		n = max(n, udp+int(be.Uint16(b[udp+4:]))-wire.ICRCLen)
	}
	return n
}

// Kept returns how many bytes of a frame are recorded, from its front.
func Kept(b []byte) int { h := scan(b); return h.keep }

// mask writes what stands for a checksum that is not recorded: of UDP whether there is one
// (RFC 768: 0 says none). That of TCP is 0 by chance, for one payload in 65,536.
func (h *headers) mask(b []byte) {
	if h.sum != 0 && (h.tcp() || b[h.sum] != 0 || b[h.sum+1] != 0) {
		b[h.sum], b[h.sum+1] = 0xff, 0xff
	}
}
