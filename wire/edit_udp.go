package wire

import "gswitch/frame"

// These edits change the payload of the outer UDP datagram, which Meta.L4
// points at: what stands in front of it there, such as telemetry, comes and
// goes on the way. at and n are even and at counts from the first byte of the
// frame, as all offsets do.

// InsertUDP puts n zero bytes before the byte at, and corrects the lengths of
// IP and UDP and their checksums. It moves the headers to the front or the rest
// to the back, whichever is less and has room. It returns the bytes of the
// frame, nil and nothing changed if the chunk has no room at either end.
func InsertUDP(a *frame.Arena, r frame.Ref, at, n int) []byte {
	m := a.Meta(r)
	b := a.Bytes(r)
	front, back := int(m.Head) >= n, cap(b)-len(b) >= n
	switch {
	case front && (at <= len(b)-at || !back):
		b = a.Push(r, n)
		copy(b[:at], b[n:n+at])
	case back:
		b = b[:len(b)+n]
		copy(b[at+n:], b[at:])
		m.Len += uint16(n)
		m.Wire += uint32(n)
	default:
		return nil
	}
	clear(b[at : at+n])
	lengthenUDP(m, b, n)
	return b
}

// RemoveUDP takes the n bytes at out of the frame, with the same corrections,
// and returns what is left.
func RemoveUDP(a *frame.Arena, r frame.Ref, at, n int) []byte {
	b := a.Bytes(r)
	m := a.Meta(r)
	if udp := UDP(b[m.L4:]); udp.Checksum() != 0 {
		udp.SetChecksum(PatchChecksum(udp.Checksum(), ^Checksum(b[at:at+n]), 0))
	}
	copy(b[n:n+at], b[:at])
	b = a.Pull(r, n)
	lengthenUDP(m, b, -n)
	return b
}

// lengthenUDP adds n to the lengths of IP and UDP. The UDP checksum covers the
// length twice: in the pseudo-header and in the header.
func lengthenUDP(m *frame.Meta, b []byte, n int) {
	if m.Flags&frame.HasIPv4 != 0 {
		ip := IPv4(b[m.L3:])
		old := ip.TotalLen()
		ip.SetTotalLen(uint16(int(old) + n))
		ip.SetChecksum(PatchChecksum(ip.Checksum(), old, ip.TotalLen()))
	} else {
		ip := IPv6(b[m.L3:])
		ip.SetPayloadLen(uint16(int(ip.PayloadLen()) + n))
	}
	udp := UDP(b[m.L4:])
	old := udp.Length()
	udp.SetLength(uint16(int(old) + n))
	if c := udp.Checksum(); c != 0 {
		c = PatchChecksum(c, old, udp.Length())
		udp.SetChecksum(nonZero(PatchChecksum(c, old, udp.Length())))
	}
}

// PatchUDP overwrites the bytes at with what, of even length, and corrects the
// UDP checksum where there is one.
func PatchUDP(m *frame.Meta, b []byte, at int, what []byte) {
	field := b[at : at+len(what)]
	if udp := UDP(b[m.L4:]); udp.Checksum() != 0 {
		udp.SetChecksum(nonZero(PatchChecksum(udp.Checksum(), ^Checksum(field), ^Checksum(what))))
	}
	copy(field, what)
}

// SetUDPDst changes the destination port of the outer UDP header.
func SetUDPDst(m *frame.Meta, b []byte, port uint16) {
	udp := UDP(b[m.L4:])
	if c := udp.Checksum(); c != 0 {
		udp.SetChecksum(nonZero(PatchChecksum(c, udp.DstPort(), port)))
	}
	udp.SetDstPort(port)
	m.DstPort = port
}

// nonZero is the form in which UDP sends a checksum: 0 means none (RFC 768).
func nonZero(c uint16) uint16 {
	if c == 0 {
		return 0xffff
	}
	return c
}
