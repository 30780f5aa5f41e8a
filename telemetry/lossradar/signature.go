package lossradar

import "gswitch/telemetry"

// Signature identifies a packet while it crosses a segment. It holds fields
// that nothing on the way changes; congestion marks, DSCP, checksums, tags and
// telemetry do not belong to it (section 5.3.1). The time to live counts as one
// bit, and the instant is that of the upstream meter, carried by the packet.
type Signature struct {
	Addrs uint64 // source address, destination address
	Rest  uint64 // source port, destination port, identification, protocol, flags
	Extra uint32 // 14 bits of the instant, then 16 bits of a sequence number
}

// Fields are the parts of a signature in their natural form.
type Fields struct {
	Src, Dst         uint32 // IPv4 addresses, or 32-bit hashes of IPv6 addresses
	SrcPort, DstPort uint16
	ID               uint16 // IPv4 identification
	Proto            uint8
	SYN              bool   // a SYN or SYN-ACK of TCP
	Expires          bool   // the time to live is used up behind this hop, see ExpiresAt
	Stamp            uint16 // instant at the upstream meter within its batch, in units of 1/2^14 of the batch
	Sequence         uint16 // low bits of TCP's sequence number or of the PSN, where the identification does not count; of a fragment its offset
}

const (
	flagSYN     = 1 << 0
	flagExpires = 1 << 1
	// StampBits is how many bits of the instant a signature keeps: 2^14
	// microseconds exceed the paper's batch of 10 ms.
	StampBits = 14
	stampMask = 1<<StampBits - 1
)

// Pack returns the signature of f.
func (f Fields) Pack() Signature {
	var flags uint64
	if f.SYN {
		flags |= flagSYN
	}
	if f.Expires {
		flags |= flagExpires
	}
	return Signature{
		Addrs: uint64(f.Src)<<32 | uint64(f.Dst),
		Rest:  uint64(f.SrcPort)<<48 | uint64(f.DstPort)<<32 | uint64(f.ID)<<16 | uint64(f.Proto)<<8 | flags,
		Extra: uint32(f.Stamp&stampMask) | uint32(f.Sequence)<<StampBits,
	}
}

// Fields returns the parts of a signature.
func (s Signature) Fields() Fields {
	return Fields{
		Src: uint32(s.Addrs >> 32), Dst: uint32(s.Addrs),
		SrcPort: uint16(s.Rest >> 48), DstPort: uint16(s.Rest >> 32), ID: uint16(s.Rest >> 16), Proto: uint8(s.Rest >> 8),
		SYN: s.Rest&flagSYN != 0, Expires: s.Rest&flagExpires != 0,
		Stamp: uint16(s.Extra & stampMask), Sequence: uint16(s.Extra >> StampBits),
	}
}

// unused are the bits that no signature sets: a cell that has one of them is
// not pure.
const (
	unusedRest  = 0xff &^ (flagSYN | flagExpires)
	unusedExtra = ^uint32(1<<(StampBits+16) - 1)
)

// plausible reports whether s can be the signature of a packet.
func (s Signature) plausible() bool {
	return s.Rest&unusedRest == 0 && s.Extra&unusedExtra == 0
}

// ExpiresAt says what the bit for the time to live is at a meter that sees a
// packet after it was decremented `hops` times since the upstream meter: both
// ends of a segment must agree, and a packet that is dropped in the next switch still
// has a time to live of one at the upstream meter.
func ExpiresAt(ttl uint8, hops uint8) bool { return int(ttl)+int(hops) <= 1 }

// hash mixes a signature with a digest's keys. Every field passes two mixing steps:
// with one, packets that differ by consecutive sequence numbers or instants alone
// would have cells at even distances.
func hash(k *telemetry.Keys, s Signature) uint64 {
	const spread = 0x9e3779b97f4a7c15 // 2^64 over the golden ratio: Extra must not coincide with the bits of an address
	return telemetry.Fold(telemetry.Fold(s.Addrs^uint64(s.Extra)*spread^k[0], s.Rest^k[1])^k[2], k[3]|1)
}
