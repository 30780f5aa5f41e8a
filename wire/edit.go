package wire

import "gswitch/frame"

// The edits change a parsed frame in place: its bytes, its checksum by
// difference, and the fields of its Meta that say the same. They touch the
// outer headers only.

// SetDSCP rewrites the DSCP of the outer IP header. It reports whether there
// is one.
func SetDSCP(a *frame.Arena, r frame.Ref, dscp uint8) bool {
	m, b := a.Meta(r), a.Bytes(r)
	switch {
	case m.Flags&frame.HasIPv4 != 0:
		h := IPv4(b[m.L3:])
		setTOS4(h, dscp<<2|h.ECN())
	case m.Flags&frame.HasIPv6 != 0:
		h := IPv6(b[m.L3:])
		h.SetTrafficClass(dscp<<2 | h.ECN())
	default:
		return false
	}
	m.DSCP = dscp & 0x3f
	return true
}

// MarkCE sets the ECN field of an ECN-capable packet to CE (RFC 3168 section
// 5). It reports whether the packet carries CE now; what is not ECN-capable
// stays as it is.
func MarkCE(a *frame.Arena, r frame.Ref) bool {
	m := a.Meta(r)
	if m.Flags&frame.IsECT == 0 {
		return m.Flags&frame.IsCE != 0
	}
	b := a.Bytes(r)
	if m.Flags&frame.HasIPv4 != 0 {
		h := IPv4(b[m.L3:])
		setTOS4(h, h.TOS()|CE)
	} else {
		b[m.L3+1] |= CE << 4
	}
	m.Flags = m.Flags&^frame.IsECT | frame.IsCE
	return true
}

// DecTTL decrements TTL or hop limit of a frame with bytes b. It returns false and changes
// nothing if it would reach zero or if there is no IP header.
func DecTTL(m *frame.Meta, b []byte) bool {
	if m.TTL <= 1 {
		return false
	}
	m.TTL--
	if m.Flags&frame.HasIPv4 != 0 {
		h := (*[4]byte)(b[m.L3+8:]) // TTL, protocol, checksum
		w := be.Uint32(h[:])
		be.PutUint32(h[:], w-1<<24)
		sum := uint32(uint16(w)) + 1<<8 // PatchChecksum, for a word that is less by 1<<8
		be.PutUint16(h[2:], uint16(sum+(sum+1)>>16))
	} else {
		IPv6(b[m.L3:]).SetHopLimit(m.TTL)
	}
	return true
}

func setTOS4(h IPv4, tos uint8) {
	old := be.Uint16(h[0:2])
	h.SetTOS(tos)
	h.SetChecksum(PatchChecksum(h.Checksum(), old, be.Uint16(h[0:2])))
}

// RewriteMACs sets destination and source address of the frame.
func RewriteMACs(a *frame.Arena, r frame.Ref, dst, src MAC) {
	m, e := a.Meta(r), Ethernet(a.Bytes(r))
	e.SetDst(dst)
	e.SetSrc(src)
	m.Flags &^= frame.IsMulticast | frame.IsBroadcast
	if dst.IsMulticast() {
		m.Flags |= frame.IsMulticast
		if dst == BroadcastMAC {
			m.Flags |= frame.IsBroadcast
		}
	}
}

// SetTCI rewrites the outer VLAN tag. It reports whether there is one.
func SetTCI(a *frame.Arena, r frame.Ref, tci uint16) bool {
	m := a.Meta(r)
	if m.Flags&frame.HasVLAN == 0 {
		return false
	}
	m.TCI = tci
	VLAN(a.Bytes(r)[EthernetLen:]).SetTCI(tci)
	return true
}

// SetPCP rewrites the priority in the outer VLAN tag. It reports whether there
// is one.
func SetPCP(a *frame.Arena, r frame.Ref, pcp uint8) bool {
	return SetTCI(a, r, a.Meta(r).TCI&0x1fff|uint16(pcp&7)<<13)
}

// PushVLAN puts a tag before all others. tpid is EtherTypeVLAN or
// EtherTypeQinQ. It returns false and changes nothing if the headroom is too
// small.
func PushVLAN(a *frame.Arena, r frame.Ref, tpid, tci uint16) bool {
	b := a.Push(r, VLANLen)
	if b == nil {
		return false
	}
	copy(b[:12], b[VLANLen:VLANLen+12])
	be.PutUint16(b[12:14], tpid)
	be.PutUint16(b[14:16], tci)
	m := a.Meta(r)
	m.TCI = tci
	m.Flags |= frame.HasVLAN
	shiftOffsets(m, VLANLen)
	return true
}

// PopVLAN takes the outer tag off. It reports whether there was one; Meta.TCI
// is then that of the next tag, if any.
func PopVLAN(a *frame.Arena, r frame.Ref) bool {
	m := a.Meta(r)
	if m.Flags&frame.HasVLAN == 0 {
		return false
	}
	b := a.Bytes(r)
	copy(b[VLANLen:VLANLen+12], b[:12])
	b = a.Pull(r, VLANLen)
	m.TCI = 0
	if IsTPID(Ethernet(b).EtherType()) && len(b) >= EthernetLen+VLANLen {
		m.TCI = VLAN(b[EthernetLen:]).TCI()
	} else {
		m.Flags &^= frame.HasVLAN
	}
	shiftOffsets(m, -VLANLen)
	return true
}

// shiftOffsets moves the header offsets after bytes were put before them or
// taken away. An offset of 0 stays: the header is not there.
func shiftOffsets(m *frame.Meta, by int) {
	if m.L4 != 0 && m.L3Inner == m.L3 && m.L4Inner == m.L4 && m.INT == 0 { // most: no tunnel
		m.L3, m.L3Inner = m.L3+uint16(by), m.L3+uint16(by)
		m.L4, m.L4Inner = m.L4+uint16(by), m.L4+uint16(by)
		return
	}
	m.L3, m.L4 = shifted(m.L3, by), shifted(m.L4, by)
	m.L3Inner, m.L4Inner = shifted(m.L3Inner, by), shifted(m.L4Inner, by)
	m.INT = shifted(m.INT, by)
}

// shifted returns an offset moved by so many bytes; 0 is none.
func shifted(offset uint16, by int) uint16 {
	if offset == 0 {
		return 0
	}
	return uint16(int(offset) + by)
}
