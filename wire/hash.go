package wire

import "math/bits"

// Hasher spreads flows. Its value is the same for all frames of a flow, and
// for both directions if symmetric.
//
// It multiplies two keyed words to 128 bits and folds the halves together, the
// mixing step of wyhash (Wang Yi) and its kin, twice: the first spreads every
// input bit over the word, the second keeps no linear trace of the key. Two
// multiplications of 3 cycles are cheaper than any table. The keys come from
// the seed, so two switches with different seeds choose independently of each
// other: a flow set selected by one hop's hash is spread evenly again by the
// next hop's (no polarisation).
type Hasher struct {
	k         [4]uint64
	symmetric bool

	// What of a packet counts: ones where it does.
	src, dst uint64 // of words of addresses of IPv6
	addrs    uint64 // of both addresses of IPv4
	l4       uint64 // of ports and protocol, as they are hashed
	label    uint32
}

// HashFields are the fields of a packet that distinguish flows.
type HashFields uint8

const (
	HashSrc HashFields = 1 << iota
	HashDst
	HashSrcPort
	HashDstPort
	HashProto
	HashLabel // flow label of IPv6 (RFC 6438)

	HashAll = HashLabel<<1 - 1
)

// Only returns the hasher that looks at the given fields and no others.
func (h Hasher) Only(f HashFields) Hasher {
	has := func(x HashFields) uint64 { return -uint64(f & x / x) }
	h.src, h.dst = has(HashSrc), has(HashDst)
	h.addrs = h.src<<32 | h.dst>>32
	h.l4 = layer4(uint32(has(HashSrcPort))<<16|uint32(has(HashDstPort))&0xffff, uint8(has(HashProto)))
	h.label = uint32(has(HashLabel))
	return h
}

// NewHasher returns the hasher of a switch. Give every switch its own seed. It
// looks at all fields; a symmetric one at no flow label, since each direction
// has its own.
func NewHasher(seed uint64, symmetric bool) Hasher {
	h := Hasher{symmetric: symmetric}.Only(HashAll)
	if symmetric {
		h = h.Only(HashAll &^ HashLabel)
	}
	for i := range h.k {
		// splitmix64 (Steele, Lea, Flood 2014): near seeds give unrelated keys.
		seed += 0x9e3779b97f4a7c15
		z := (seed ^ seed>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		h.k[i] = z ^ z>>31
	}
	h.k[3] |= 1 // a multiplier
	return h
}

// keyed reports whether h hashes at all: the zero Hasher, which has no multiplier,
// makes 0 of everything.
func (h *Hasher) keyed() bool { return h.k[3] != 0 }

// mulFold is the mixing step.
func mulFold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// IPv4 hashes a five-tuple: addrs is source and destination address, ports is
// source and destination port, most significant first. Fragments and protocols
// without ports pass 0 for ports.
func (h *Hasher) IPv4(addrs uint64, ports uint32, proto uint8) uint32 {
	addrs &= h.addrs
	l4 := layer4(ports, proto) & h.l4
	if h.symmetric {
		addrs, ports = order(addrs, uint32(l4>>8))
		l4 = layer4(ports, uint8(l4))
	}
	x := mulFold(addrs^h.k[0], l4^h.k[1])
	return uint32(mulFold(x^h.k[2], h.k[3]))
}

// layer4 is ports and protocol in one word.
func layer4(ports uint32, proto uint8) uint64 { return uint64(ports)<<8 | uint64(proto) }

// order puts the lower of the two ends first.
func order(addrs uint64, ports uint32) (uint64, uint32) {
	src, dst := uint32(addrs>>32), uint32(addrs)
	if src > dst || src == dst && ports>>16 > ports&0xffff {
		return bits.RotateLeft64(addrs, 32), bits.RotateLeft32(ports, 16)
	}
	return addrs, ports
}

// IPv6 hashes a five-tuple and the flow label: first is the word that the
// header begins with, addrs source and destination address as they stand in it,
// ports as in IPv4.
func (h *Hasher) IPv6(first uint32, addrs *[32]byte, ports uint32, proto uint8) uint32 {
	s0, s1 := be.Uint64(addrs[0:8])&h.src, be.Uint64(addrs[8:16])&h.src
	d0, d1 := be.Uint64(addrs[16:24])&h.dst, be.Uint64(addrs[24:32])&h.dst
	l4 := layer4(ports, proto) & h.l4
	ports = uint32(l4 >> 8)
	if h.symmetric && (s0 > d0 || s0 == d0 && (s1 > d1 || s1 == d1 && ports>>16 > ports&0xffff)) {
		s0, s1, d0, d1 = d0, d1, s0, s1
		l4 = layer4(bits.RotateLeft32(ports, 16), uint8(l4))
	}
	s := mulFold(s0^h.k[0], s1^h.k[1])
	d := mulFold(d0^h.k[1], d1^h.k[2])
	x := mulFold(s^h.k[3], d^(uint64(first&h.label&0xfffff)<<40|l4))
	return uint32(mulFold(x^h.k[2], h.k[3]))
}

// Ethernet hashes what is not IP: the addresses, 48 bits each, and the
// EtherType.
func (h *Hasher) Ethernet(dst, src uint64, etherType uint16) uint32 {
	if h.symmetric && src > dst {
		dst, src = src, dst
	}
	x := mulFold((dst<<16|uint64(etherType))^h.k[0], src^h.k[1])
	return uint32(mulFold(x^h.k[2], h.k[3]))
}
