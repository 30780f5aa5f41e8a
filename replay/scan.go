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

const (
	// roceKeep is what is kept behind the UDP header of RoCEv2: BTH, and the
	// longest of the headers behind it that a switch or its neighbour writes.
	roceKeep = 36
	// telemetryKeep bounds a telemetry block with the BTH behind it.
	telemetryKeep = 120
)

var be = binary.BigEndian

// scan finds how much of a frame decides what nodes do with it: the headers
// of TCP and UDP, and the whole of everything else, which are control messages
// and what a parser looks into (tunnels, fragments, extension headers).
func scan(b []byte) (h headers) {
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
		n := off + wire.UDPLen
		switch be.Uint16(b[off+2:]) {
		case wire.RoCEv2Port:
			n += roceKeep
		case wire.HPCCPort, wire.HPCCGrowPort, wire.INTPort:
			n += telemetryKeep
		}
		h.keep, h.sum = min(n, len(b)), off+6
	}
	return h
}

// Kept returns how many bytes of a frame are recorded, from its front.
func Kept(b []byte) int { h := scan(b); return h.keep }

// mask writes what stands for a checksum that is not recorded: whether there
// is one.
func (h *headers) mask(b []byte) {
	if h.sum != 0 && (b[h.sum] != 0 || b[h.sum+1] != 0) {
		b[h.sum], b[h.sum+1] = 0xff, 0xff
	}
}
