package bump

import (
	"math/bits"

	"gswitch/frame"
	"gswitch/wire"
)

// isDiscovery reports whether an ICMPv6 type is one of neighbour discovery
// (RFC 4861).
func isDiscovery(typ uint8) bool { return typ >= 133 && typ <= 137 }

// complete fills in the checksum of a TCP or UDP packet that the kernel left
// to a device: then the field holds the sum of the pseudo-header alone. One
// that is right already and happens to look so stays as it is, since it is
// computed anew.
func complete(m *frame.Meta, p []byte, size int) {
	var field int
	switch {
	case m.Flags&frame.HasTunnel != 0:
		return
	case m.Proto == wire.ProtoTCP:
		field = 16
	case m.Proto == wire.ProtoUDP:
		field = 6
	default:
		return
	}
	end := int(m.L3) + size
	if int(m.L4)+field+2 > end || end > len(p) {
		return
	}
	segment := p[m.L4:end]
	var pseudo uint64
	if m.Flags&frame.HasIPv6 != 0 {
		ip := wire.IPv6(p[m.L3:])
		pseudo = wire.PseudoSum6(ip.Src(), ip.Dst(), m.Proto, len(segment))
	} else {
		ip := wire.IPv4(p[m.L3:])
		pseudo = wire.PseudoSum4(ip.Src(), ip.Dst(), m.Proto, len(segment))
	}
	if be.Uint16(segment[field:]) != ^wire.SegmentChecksum(pseudo, nil) {
		return
	}
	if m.Proto == wire.ProtoTCP {
		wire.UpdateTCPChecksum(pseudo, segment)
	} else if wire.UDP(segment).Length() == uint16(len(segment)) {
		wire.UpdateUDPChecksum(pseudo, segment)
	}
}

// TCP options (RFC 9293 section 3.1).
const (
	optionEnd     = 0
	optionNop     = 1
	optionSegment = 2
)

// clamp lowers the largest segment that a SYN offers to what fits into a
// channel, and corrects the checksum by the difference (RFC 1624).
func (b *Bump) clamp(m *frame.Meta, p []byte) {
	most := b.segment[0]
	if m.Flags&frame.HasIPv6 != 0 {
		most = b.segment[1]
	}
	h := wire.TCP(p[m.L4:])
	if h.HeaderLen() < wire.TCPLen || h.HeaderLen() > len(h) {
		return
	}
	at := wire.TCPLen
	for opts := h[:h.HeaderLen()]; at+1 < len(opts); {
		switch kind, n := opts[at], int(opts[at+1]); {
		case kind == optionEnd:
			return
		case kind == optionNop:
			at++
		case n < 2 || at+n > len(opts):
			return
		case kind == optionSegment && n == 4:
			if old := be.Uint16(opts[at+2:]); old > most {
				be.PutUint16(opts[at+2:], most)
				b.count.Clamped++
				// A word at an odd offset counts with its bytes swapped.
				o, w := old, most
				if at&1 != 0 {
					o, w = bits.ReverseBytes16(o), bits.ReverseBytes16(w)
				}
				h.SetChecksum(wire.PatchChecksum(h.Checksum(), o, w))
			}
			return
		default:
			at += n
		}
	}
}

// oversize deals with a packet that does not fit into its channel: its sender
// is informed, or it passes untouched if it may be cut on the way.
func (b *Bump) oversize(now frame.Time, r frame.Ref, m *frame.Meta, p []byte, size int, c *channel) {
	v4 := m.Flags&frame.HasIPv4 != 0
	if v4 && !wire.IPv4(p[m.L3:]).DontFragment() {
		b.pass(now, r, false)
		return
	}
	c.drops++
	if b.tooBigs.take(now) && !isError(m, p) {
		b.sendTooBig(m, p[:int(m.L3)+size], v4, c.packet)
	}
	b.drop(r, frame.MTUExceeded)
}

// isError reports whether a packet is an ICMP error, about which no error is
// sent (RFC 1122 section 3.2.2, RFC 4443 section 2.4 (e)).
func isError(m *frame.Meta, p []byte) bool {
	if m.Flags&frame.HasICMP == 0 || m.Flags&frame.HasTunnel != 0 {
		return false
	}
	t := p[m.L4]
	if m.Flags&frame.HasIPv6 != 0 {
		return t < 128
	}
	return t != wire.ICMPEcho && t != wire.ICMPEchoReply
}

// Bytes of an ICMP error: a packet of 576 bytes (RFC 1812 section 4.3.2.3), or
// of the least MTU (RFC 4443 section 2.4 (c)).
const (
	longestError4 = 576
	longestError6 = 1280
)

// sendTooBig sends the kernel "fragmentation needed" (RFC 1191) or "packet too
// big" (RFC 8201), as the destination of the packet p.
func (b *Bump) sendTooBig(m *frame.Meta, p []byte, v4 bool, mtu int) {
	r := b.pool.Alloc()
	if r == frame.Nil {
		b.count.Drops[frame.ArenaExhausted]++
		return
	}
	em := b.arena.Reset(r)
	ip := p[m.L3:]
	head, longest := wire.IPv6Len, longestError6
	if v4 {
		head, longest = wire.IPv4Len, longestError4
	}
	quoted := min(len(ip), longest-head-wire.ICMPLen, b.arena.Room()-wire.EthernetLen-head-wire.ICMPLen)
	size := wire.ICMPLen + quoted
	em.Len = uint16(wire.EthernetLen + head + size)
	em.Wire = uint32(em.Len)
	e := b.arena.Bytes(r)
	eth := wire.EthernetFields{Dst: wire.Ethernet(p).Src(), Src: wire.Ethernet(p).Dst(), EtherType: wire.EtherTypeIPv6}
	msg := e[wire.EthernetLen+head:]
	icmp := wire.ICMPFields{Type: wire.ICMPv6PacketTooBig, Rest: uint32(mtu)}
	if v4 {
		eth.EtherType = wire.EtherTypeIPv4
		icmp = wire.ICMPFields{Type: wire.ICMPDstUnreachable, Code: wire.ICMPCodeFragNeeded, Rest: uint32(mtu)}
	}
	eth.Encode(e)
	icmp.Encode(msg)
	copy(msg[wire.ICMPLen:], ip[:quoted])
	if v4 {
		b.ipID++
		h := wire.IPv4Fields{TotalLen: uint16(head + size), ID: b.ipID, TTL: 64, Proto: wire.ProtoICMP, Src: wire.IPv4(ip).Dst(), Dst: wire.IPv4(ip).Src()}
		h.Encode(e[wire.EthernetLen:])
		wire.IPv4(e[wire.EthernetLen:]).UpdateChecksum()
		wire.UpdateICMPChecksum(0, msg)
	} else {
		h := wire.IPv6Fields{PayloadLen: uint16(size), NextHeader: wire.ProtoICMPv6, HopLimit: 64, Src: wire.IPv6(ip).Dst(), Dst: wire.IPv6(ip).Src()}
		h.Encode(e[wire.EthernetLen:])
		wire.UpdateICMPChecksum(wire.PseudoSum6(h.Src, h.Dst, wire.ProtoICMPv6, size), msg)
	}
	b.count.TooBigs++
	b.toKernel(r)
}
