package replay

import (
	"encoding/binary"
	"math/bits"

	"gswitch/frame"
	"gswitch/wire"
)

// hashEvery is after how many frames that left the hash of them is recorded.
const hashEvery = 1024

// hashed is how many bytes of a frame are hashed at most.
const hashed = 192

// sent is the rolling hash of the frames that a node sent.
type sent struct {
	h      uint64
	frames uint64
	b      [hashed + 16]byte
}

const prime = 0x9e3779b97f4a7c15

func (s *sent) mix(v uint64) {
	h := (s.h ^ v) * prime
	s.h = h ^ h>>29
}

// Keys of the hash of one frame: digits of pi.
const (
	key0 = 0x243f6a8885a308d3
	key1 = 0x13198a2e03707344
)

// product multiplies two words into one (the step of wyhash, Wang Yi). Those of one frame do
// not wait for each other.
func product(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^key0, b^key1)
	return hi ^ lo
}

// add takes in a frame: when and where it left, its length and its headers.
func (s *sent) add(a *frame.Arena, r frame.Ref, port uint16) {
	m := a.Meta(r)
	s.frames++
	t := product(uint64(m.Depart), uint64(port)<<48^uint64(m.Len)<<32^uint64(m.Wire))
	b := a.Bytes(r)
	h := scan(b)
	n := min(h.keep, hashed)
	if h.icmp && len(b) > h.l4 && quotes(b[h.l4], b[h.l3]>>4) {
		n = min(n, h.l4+2) // then comes what was not recorded, and a checksum over it
	}
	if h.gre && len(b) >= h.l4+wire.GRELen {
		n = min(n, h.l4+wire.GRE(b[h.l4:]).HeaderLen()+wire.ERSPAN3Len) // then comes a copy of a frame
	}
	copy(s.b[:], b[:n])
	clear(s.b[n : n+16])
	if h.sum != 0 && h.sum+2 <= n {
		h.mask(s.b[:n])
	}
	for i := 0; i < n; i += 16 {
		t += product(binary.LittleEndian.Uint64(s.b[i:])+uint64(i)*prime, binary.LittleEndian.Uint64(s.b[i+8:]))
	}
	s.mix(t)
}

// quotes reports whether an ICMP message of a type holds the front of another
// frame.
func quotes(typ, version uint8) bool {
	if version == 6 {
		return typ < wire.ICMPv6Echo || typ > wire.ICMPv6NeighborAdvertisement
	}
	return typ != wire.ICMPEcho && typ != wire.ICMPEchoReply
}

// sum is what is recorded of the hash.
func (s *sent) sum() uint32 { return uint32(s.h>>32) ^ uint32(s.h) }
