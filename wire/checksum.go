package wire

import (
	"encoding/binary"
	"math/bits"
)

// Checksum returns the Internet checksum of b (RFC 1071), ready to be stored.
// Over bytes that include a right checksum it is 0. An odd last byte counts as
// if a zero followed.
func Checksum(b []byte) uint16 { return ^fold(sum(b, 0)) }

// sum adds b to a ones' complement sum in 64-bit words. The sum of wider words
// folds to that of 16-bit words, and in the machine's byte order to the
// checksum in that order (RFC 1071 sections 2A, 2B), so nothing is swapped
// until fold.
func sum(b []byte, s uint64) uint64 {
	var c uint64
	for len(b) >= 32 {
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b[0:8]), 0)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b[8:16]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b[16:24]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b[24:32]), c)
		s += c
		b = b[32:]
	}
	for len(b) >= 8 {
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b), 0)
		s += c
		b = b[8:]
	}
	if len(b) > 0 {
		var last uint64
		for i, x := range b {
			last |= uint64(x) << (8 * i)
		}
		s, c = bits.Add64(s, last, 0)
		s += c
	}
	return s
}

// fold reduces a sum to 16 bits in network order.
func fold(s uint64) uint16 {
	s = s>>32 + s&0xffffffff
	s = s>>16&0xffff + s&0xffff + s>>32
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	return bits.ReverseBytes16(uint16(s))
}

// PseudoSum4 and PseudoSum6 start the checksum of a TCP, UDP or ICMPv6 segment
// with its pseudo-header (RFC 9293 section 3.1, RFC 8200 section 8.1); length
// counts header and payload. SegmentChecksum takes what they return.
func PseudoSum4(src, dst [4]byte, proto uint8, length int) uint64 {
	return uint64(binary.LittleEndian.Uint32(src[:])) + uint64(binary.LittleEndian.Uint32(dst[:])) +
		uint64(bits.ReverseBytes16(uint16(length))) + uint64(proto)<<8
}

func PseudoSum6(src, dst [16]byte, proto uint8, length int) uint64 {
	s := sum(src[:], uint64(bits.ReverseBytes32(uint32(length)))+uint64(proto)<<24)
	return sum(dst[:], s)
}

// SegmentChecksum returns the checksum of a segment whose pseudo-header sum is
// pseudo, ready to be stored (for UDP see UpdateUDPChecksum). Over a segment
// that includes a right checksum it is 0.
func SegmentChecksum(pseudo uint64, segment []byte) uint16 {
	return ^fold(sum(segment, pseudo))
}

// UpdateUDPChecksum computes the checksum of a whole UDP datagram. A sum of 0
// is sent as 0xffff, for 0 means that there is none (RFC 768).
func UpdateUDPChecksum(pseudo uint64, datagram []byte) {
	h := UDP(datagram)
	h.SetChecksum(0)
	c := SegmentChecksum(pseudo, datagram)
	if c == 0 {
		c = 0xffff
	}
	h.SetChecksum(c)
}

// UpdateTCPChecksum computes the checksum of a whole TCP segment.
func UpdateTCPChecksum(pseudo uint64, segment []byte) {
	h := TCP(segment)
	h.SetChecksum(0)
	h.SetChecksum(SegmentChecksum(pseudo, segment))
}

// UpdateICMPChecksum computes the checksum of a whole ICMP message, which has
// no pseudo-header (pass 0), or ICMPv6 message, which has (pass PseudoSum6).
func UpdateICMPChecksum(pseudo uint64, message []byte) {
	h := ICMP(message)
	h.SetChecksum(0)
	h.SetChecksum(SegmentChecksum(pseudo, message))
}

// PatchChecksum returns the checksum c after a 16-bit word that it covers
// changed from old to new: HC' = ~(~HC + ~m + m') (RFC 1624 equation 3).
func PatchChecksum(c, old, new uint16) uint16 {
	s := uint32(^c) + uint32(^old) + uint32(new)
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	return ^uint16(s)
}

// PatchChecksum32 is PatchChecksum for a 32-bit word, such as an address.
func PatchChecksum32(c uint16, old, new uint32) uint16 {
	c = PatchChecksum(c, uint16(old>>16), uint16(new>>16))
	return PatchChecksum(c, uint16(old), uint16(new))
}
