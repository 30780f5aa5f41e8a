package pipeline

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"
)

// PortRange is an inclusive range of L4 ports. The zero value matches any.
type PortRange struct{ Lo, Hi uint16 }

func (p PortRange) any() bool { return p == PortRange{} }

// holds reports whether port is in p; a zero p holds every port.
func (p PortRange) holds(port uint16) bool {
	return port-p.Lo <= p.Hi-p.Lo || p.any()
}

// Match is a condition on a Key: value under mask, and port ranges. The zero
// Match is true for every frame. Its methods add conditions; all must hold.
type Match struct {
	Value, Mask      Key
	SrcPort, DstPort PortRange
}

func (m *Match) set(word int, value, mask uint64) {
	m.Mask[word] |= mask
	m.Value[word] = m.Value[word]&^mask | value&mask
}

// MatchInPort wants frames that came in by a port.
func (m *Match) MatchInPort(port uint16) {
	m.set(0, uint64(port)<<keyInPortShift, 0xffff<<keyInPortShift)
}

// MatchVLAN wants frames of a VLAN.
func (m *Match) MatchVLAN(vid uint16) {
	m.set(0, uint64(vid)<<keyVLANShift, 0xfff<<keyVLANShift)
}

// MatchClass wants frames of a traffic class, as classified before the ACL.
func (m *Match) MatchClass(class uint8) {
	m.set(0, uint64(class)<<keyClassShift, 7<<keyClassShift)
}

// MatchFragment wants IP fragments, or frames that are none.
func (m *Match) MatchFragment(yes bool) {
	v := uint64(0)
	if yes {
		v = keyFragment
	}
	m.set(0, v, keyFragment)
}

// MatchEtherType wants an EtherType (after VLAN tags).
func (m *Match) MatchEtherType(t uint16) { m.set(1, uint64(t), 0xffff) }

// MatchDstMAC wants destination MACs that equal mac in the bits of mask.
func (m *Match) MatchDstMAC(mac, mask uint64) { m.set(1, mac<<keyMACShift, mask<<keyMACShift) }

// MatchSrcMAC wants source MACs that equal mac in the bits of mask.
func (m *Match) MatchSrcMAC(mac, mask uint64) { m.set(2, mac<<keyMACShift, mask<<keyMACShift) }

// MatchIPv4 wants IPv4 packets.
func (m *Match) MatchIPv4() { m.set(7, keyIPv4, keyIPv4|keyIPv6) }

// MatchIPv6 wants IPv6 packets.
func (m *Match) MatchIPv6() { m.set(7, keyIPv6, keyIPv4|keyIPv6) }

// MatchSrcIP wants packets of p's family from p.
func (m *Match) MatchSrcIP(p netip.Prefix) { m.ip(3, p) }

// MatchDstIP wants packets of p's family to p.
func (m *Match) MatchDstIP(p netip.Prefix) { m.ip(5, p) }

func (m *Match) ip(word int, p netip.Prefix) {
	a := p.Addr().As16()
	bits := p.Bits()
	if p.Addr().Is4() {
		m.MatchIPv4()
		if bits > 0 {
			bits += 96
		}
	} else {
		m.MatchIPv6()
	}
	m.set(word, binary.BigEndian.Uint64(a[:8]), prefixMask(bits))
	m.set(word+1, binary.BigEndian.Uint64(a[8:]), prefixMask(bits-64))
}

// prefixMask returns a word whose upper n bits are set.
func prefixMask(n int) uint64 {
	switch {
	case n <= 0:
		return 0
	case n >= 64:
		return ^uint64(0)
	}
	return ^uint64(0) << (64 - n)
}

// prefixLen returns n if the 128-bit mask hi, lo is a prefix of n bits.
func prefixLen(hi, lo uint64) (n int, ok bool) {
	n = bits.OnesCount64(hi) + bits.OnesCount64(lo)
	return n, hi == prefixMask(n) && lo == prefixMask(n-64)
}

// MatchProto wants an IP protocol (IPv6: the last next header).
func (m *Match) MatchProto(p uint8) { m.set(7, uint64(p)<<keyProtoShift, 0xff<<keyProtoShift) }

// MatchDSCP wants a DSCP.
func (m *Match) MatchDSCP(d uint8) { m.set(7, uint64(d)<<keyDSCPShift, 0x3f<<keyDSCPShift) }

// MatchTCPFlags wants TCP segments whose flags (FIN 1, SYN 2, RST 4, PSH 8,
// ACK 16, URG 32, ECE 64, CWR 128) equal flags in the bits of mask.
func (m *Match) MatchTCPFlags(flags, mask uint8) {
	m.MatchProto(6)
	m.set(7, uint64(flags)<<keyTCPFlagsShift, uint64(mask)<<keyTCPFlagsShift)
	m.set(7, keyHasPorts, keyHasPorts)
}

// MatchSrcPort wants TCP or UDP source ports from lo to hi.
func (m *Match) MatchSrcPort(lo, hi uint16) { m.port(keySrcPortShift, &m.SrcPort, lo, hi) }

// MatchDstPort wants TCP or UDP destination ports from lo to hi.
func (m *Match) MatchDstPort(lo, hi uint16) { m.port(keyDstPortShift, &m.DstPort, lo, hi) }

// port wants a port. A range of one port is a plain match, which hashes.
// Fragments and protocols without ports match neither.
func (m *Match) port(shift int, r *PortRange, lo, hi uint16) {
	m.set(7, keyHasPorts, keyHasPorts)
	m.Mask[0] &^= 0xffff << shift
	m.Value[0] &^= 0xffff << shift
	*r = PortRange{}
	switch {
	case lo == hi:
		m.set(0, uint64(lo)<<shift, 0xffff<<shift)
	case lo > 0 || hi < 0xffff:
		*r = PortRange{lo, hi}
	}
}

// Holds reports whether k meets the condition. It is the definition that a
// Ternary has to agree with.
func (m *Match) Holds(k *Key) bool {
	return k.matches(&m.Value, &m.Mask) &&
		m.SrcPort.holds(uint16(k[0]>>keySrcPortShift)) &&
		m.DstPort.holds(uint16(k[0]>>keyDstPortShift))
}

// check rejects conditions that no frame can match because of an error of the caller.
func (m *Match) check() error {
	if !m.Mask.covers(&m.Value) {
		return fmt.Errorf("value has bits outside its mask")
	}
	if m.SrcPort.Lo > m.SrcPort.Hi {
		return fmt.Errorf("source port range %d-%d is empty", m.SrcPort.Lo, m.SrcPort.Hi)
	}
	if m.DstPort.Lo > m.DstPort.Hi {
		return fmt.Errorf("destination port range %d-%d is empty", m.DstPort.Lo, m.DstPort.Hi)
	}
	return nil
}

// Rule is an entry of a Ternary.
type Rule struct {
	Match
	Priority int32 // the highest matching priority wins; among equals the lowest id
	Action   Action
}
