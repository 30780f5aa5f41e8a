package mirror

import (
	"encoding/binary"

	"gswitch/frame"
	"gswitch/wire"
)

// mostHashed is how many bytes of a packet distinguish it where nothing else does: those of
// a VXLAN packet up to the checksum of TCP within it. Every session keeps so many
// (LeastSnap), also within a tunnel.
const mostHashed = 60

// identity distinguishes packets whose identification is 0, as senders leave it where nobody
// may fragment (RFC 6864): RoCEv2's by the low half of the PSN, others by the checksum of TCP
// or UDP, and what has none by a hash of its addresses, its ports and its first bytes. It is
// the same at every hop: neither the time to live, DSCP and ECN nor telemetry that is put
// in on the way (INT) change it. 0: there is none; a value that is 0 counts as 1. b[l4:] is
// the transport header, if l4 is not 0.
func identity(ip wire.IPv4, b []byte, l4 int) uint16 {
	be := binary.BigEndian
	if l4 == 0 || ip.FlagsOffset() != wire.IPv4DontFragment {
		return 0
	}
	proto, ports := ip.Proto(), uint32(0)
	at, end := l4, min(len(b), l4-ip.HeaderLen()+int(ip.TotalLen())) // behind it is what pads short frames
	switch {
	case proto == wire.ProtoTCP && end >= l4+wire.TCPLen:
		return max(1, be.Uint16(b[l4+16:]))
	case proto == wire.ProtoUDP && end >= l4+wire.UDPLen:
		u := wire.UDP(b[l4:])
		at += wire.UDPLen
		n, dst, why := wire.TelemetryLen(b, at, end, u.DstPort())
		if why != frame.Keep {
			return 0
		}
		at += n
		if dst == wire.RoCEv2Port && end >= at+wire.BTHLen {
			return max(1, be.Uint16(b[at+10:]))
		}
		if sum := u.Checksum(); sum != 0 {
			return without(sum, b[at-n:at], u.DstPort(), dst)
		}
		ports = uint32(u.SrcPort())<<16 | uint32(dst)
	}
	return max(1, hash(be.Uint64(ip[12:]), uint64(proto)<<32|uint64(ports), b[min(at, end):min(end, at+mostHashed)]))
}

// without is a checksum of UDP as it was before telemetry was put in: the header, and so many
// bytes more in the length, which the pseudo header has as well.
func without(sum uint16, telemetry []byte, port, original uint16) uint16 {
	if len(telemetry) == 0 {
		return sum
	}
	sum = wire.PatchChecksum(sum, ^wire.Checksum(telemetry), 0)
	sum = wire.PatchChecksum(sum, port, original)
	for range 2 {
		sum = wire.PatchChecksum(sum, uint16(len(telemetry)), 0)
	}
	if sum == 0 {
		return 0xffff // as it is sent (RFC 768)
	}
	return sum
}

// hash is 16 bits of all of its arguments.
func hash(a, b uint64, v []byte) uint16 {
	const odd = 0x9e3779b97f4a7c15
	h := (a*odd ^ b) * odd
	for ; len(v) >= 8; v = v[8:] {
		h = (h ^ h>>32 ^ binary.LittleEndian.Uint64(v)) * odd
	}
	last := uint64(len(v))
	for _, x := range v {
		last = last<<8 | uint64(x)
	}
	h = (h ^ h>>32 ^ last) * odd
	return uint16(h >> 48)
}
