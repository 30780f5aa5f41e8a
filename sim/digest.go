package sim

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"gswitch/frame"
)

// Every direction keeps a hash of its history: of each frame that arrived or
// was lost the instant of arrival, what became of it, its length and the first
// bytes of its headers, read where the node at the end reads them anyway.
// It depends on their order. The digest of a run joins those of all directions
// in their order; since a history holds its times, that fixes the order of
// everything, however nodes were shared out among engines or processors.

// Odd constants of wyhash (Wang Yi), whose mixing step this is: two words are
// multiplied to 128 bits and the halves are folded together.
const (
	key0 = 0xa0761d6478bd642f
	key1 = 0xe7037ed1a0b428db
	key2 = 0x8ebc6af09c88c6e3
	key3 = 0x589965cc75374cc3
)

func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// record enters the end of a frame on a link into the history.
func (p *part) record(dir *direction, x *inFlight) {
	dir.digest = digest(dir.digest+uint64(x.cause), x.at, p.arena.Meta(x.ref).Wire, p.arena.Bytes(x.ref))
}

// digest carries the history h on by a frame.
func digest(h uint64, at frame.Time, wire uint32, b []byte) uint64 {
	h = fold(h^uint64(at)^key0, uint64(wire)^key1)
	if len(b) >= 64 {
		p := (*[64]byte)(b)
		le := binary.LittleEndian
		// Addresses and ports of IPv4 and UDP, base transport header, the words after.
		x := fold(le.Uint64(p[0:])^key2, le.Uint64(p[16:])^key3)
		y := fold(le.Uint64(p[24:])^key1, le.Uint64(p[32:])^key2)
		z := fold(le.Uint64(p[40:])^key3, le.Uint64(p[48:])^key0)
		return h ^ fold(x^y^key1, z^h)
	}
	for len(b) >= 8 {
		h = fold(h^binary.LittleEndian.Uint64(b)^key2, key3)
		b = b[8:]
	}
	return h
}

// Digest returns a hash of everything that happened on the links so far: 16
// hexadecimal digits, the same for the same nodes, links, control events and
// seed.
func (e *Engine) Digest() string {
	h := uint64(key0)
	for i := range e.dirs {
		h = fold(h^e.dirs[i].digest^key1, uint64(i)^key2)
	}
	return fmt.Sprintf("%016x", h)
}
