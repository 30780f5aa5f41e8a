package pipeline

import (
	"encoding/binary"

	"gswitch/frame"
)

// Key is what a Ternary matches on: one cache line of header fields of the
// outer headers. Fields that a frame does not have are zero.
//
//	word 0  in-port 16 | source port 16 | destination port 16 | VLAN id 12 | class 3 | fragment 1
//	word 1  destination MAC 48 | EtherType 16
//	word 2  source MAC 48 | zero 16
//	word 3  source IP, bits 127..64        (IPv4: zero)
//	word 4  source IP, bits 63..0          (IPv4: 0x0000ffff << 32 | address, RFC 4291 2.5.5.2)
//	word 5  destination IP, bits 127..64
//	word 6  destination IP, bits 63..0
//	word 7  IP protocol 8 | TCP flags 8 | DSCP 6 | IPv4 1 | IPv6 1 | has ports 1 | zero 39
//
// Word 7 counts from its most significant bit, like the others. Source and
// destination port belong to the outer header too: a frame in a tunnel whose
// outer protocol has no ports has none, whatever its innermost header says.
type Key [8]uint64

const (
	keyInPortShift  = 48
	keySrcPortShift = 32
	keyDstPortShift = 16
	keyVLANShift    = 4
	keyClassShift   = 1
	keyFragment     = 1

	keyMACShift = 16

	keyProtoShift    = 56
	keyTCPFlagsShift = 48
	keyDSCPShift     = 42
	keyIPv4          = 1 << 41
	keyIPv6          = 1 << 40
	keyHasPorts      = 1 << 39

	keyV4Mapped = 0xffff << 32
)

// Needs says which parts of a Key must be read from the bytes of a frame. The
// rest comes from its Meta and costs next to nothing.
type Needs uint8

const (
	NeedMAC      Needs = 1 << iota // words 1 and 2, addresses
	NeedIP                         // words 3 to 6
	NeedTCPFlags                   // word 7, TCP flags

	NeedAll = NeedMAC | NeedIP | NeedTCPFlags
)

// BuildKey fills k from the parsed frame r, reading from its bytes only what
// needs names. The VLAN id is Meta.VID and the class Meta.Class: classification
// and VLAN assignment come first.
func BuildKey(a *frame.Arena, r frame.Ref, needs Needs, k *Key) {
	m := a.Meta(r)
	f := m.Flags

	w0 := uint64(m.InPort)<<keyInPortShift | uint64(m.VID&0xfff)<<keyVLANShift | uint64(m.Class&7)<<keyClassShift
	w7 := uint64(m.Proto)<<keyProtoShift | uint64(m.DSCP&0x3f)<<keyDSCPShift
	if f&(frame.HasTCP|frame.HasUDP) != 0 && f&(frame.HasTunnel|frame.IsFragment) == 0 {
		w0 |= uint64(m.SrcPort)<<keySrcPortShift | uint64(m.DstPort)<<keyDstPortShift
		w7 |= keyHasPorts
	}
	if f&frame.IsFragment != 0 {
		w0 |= keyFragment
	}
	*k = Key{0: w0, 1: uint64(m.EtherType)}

	if needs != 0 {
		b := a.Bytes(r)
		if needs&NeedMAC != 0 && len(b) >= 12 {
			// Six and six bytes, read as eight at 0 and eight at 4.
			k[1] |= binary.BigEndian.Uint64(b[0:8]) &^ 0xffff
			k[2] = binary.BigEndian.Uint64(b[4:12]) << keyMACShift
		}
		if needs&NeedIP != 0 {
			switch l := int(m.L3); {
			case f&frame.HasIPv4 != 0:
				if l+20 <= len(b) {
					w := binary.BigEndian.Uint64(b[l+12 : l+20])
					k[4] = keyV4Mapped | w>>32
					k[6] = keyV4Mapped | w&0xffffffff
				}
			case f&frame.HasIPv6 != 0:
				if l+40 <= len(b) {
					ip := b[l+8 : l+40]
					k[3] = binary.BigEndian.Uint64(ip[0:8])
					k[4] = binary.BigEndian.Uint64(ip[8:16])
					k[5] = binary.BigEndian.Uint64(ip[16:24])
					k[6] = binary.BigEndian.Uint64(ip[24:32])
				}
			}
		}
		if needs&NeedTCPFlags != 0 && w7&keyHasPorts != 0 && f&frame.HasTCP != 0 {
			if i := int(m.L4) + 13; i < len(b) {
				w7 |= uint64(b[i]) << keyTCPFlagsShift
			}
		}
	}
	if f&frame.HasIPv4 != 0 {
		w7 |= keyIPv4
	} else if f&frame.HasIPv6 != 0 {
		w7 |= keyIPv6
	}
	k[7] = w7
}

// and clears the bits of k that are not in m.
func (k *Key) and(m *Key) {
	for i := range k {
		k[i] &= m[i]
	}
}

// or adds the bits of m to k.
func (k *Key) or(m *Key) {
	for i := range k {
		k[i] |= m[i]
	}
}

// matches reports whether k under mask equals value.
func (k *Key) matches(value, mask *Key) bool {
	return (k[0]&mask[0]^value[0])|(k[1]&mask[1]^value[1])|
		(k[2]&mask[2]^value[2])|(k[3]&mask[3]^value[3])|
		(k[4]&mask[4]^value[4])|(k[5]&mask[5]^value[5])|
		(k[6]&mask[6]^value[6])|(k[7]&mask[7]^value[7]) == 0
}

// equal is *k == *o without a call.
func (k *Key) equal(o *Key) bool {
	return (k[0]^o[0])|(k[1]^o[1])|(k[2]^o[2])|(k[3]^o[3])|
		(k[4]^o[4])|(k[5]^o[5])|(k[6]^o[6])|(k[7]^o[7]) == 0
}

// covers reports whether every bit of m is in k.
func (k *Key) covers(m *Key) bool {
	for i := range k {
		if m[i]&^k[i] != 0 {
			return false
		}
	}
	return true
}

func (k *Key) needs() (n Needs) {
	if k[1]>>keyMACShift|k[2] != 0 {
		n |= NeedMAC
	}
	if k[3]|k[4]|k[5]|k[6] != 0 {
		n |= NeedIP
	}
	if k[7]&(0xff<<keyTCPFlagsShift) != 0 {
		n |= NeedTCPFlags
	}
	return n
}

// hash mixes all eight words; the four products are independent, so they
// overlap in the processor.
func (k *Key) hash() uint64 {
	return fold(k[0]^mix0, k[1]^mix1) ^ fold(k[2]^mix2, k[3]^mix3) ^
		fold(k[4]^mix4, k[5]^mix5) ^ fold(k[6]^mix6, k[7]^mix7)
}

// hashMasked is the hash of k under m.
func (k *Key) hashMasked(m *Key) uint64 {
	return fold(k[0]&m[0]^mix0, k[1]&m[1]^mix1) ^ fold(k[2]&m[2]^mix2, k[3]&m[3]^mix3) ^
		fold(k[4]&m[4]^mix4, k[5]&m[5]^mix5) ^ fold(k[6]&m[6]^mix6, k[7]&m[7]^mix7)
}
