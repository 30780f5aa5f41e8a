package mirror

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"

	"gswitch/wire"
)

// MaxAnalyzers is how many analyzers share copies at most: each is asked for every copy.
const MaxAnalyzers = 64

// shareKey is that of the hash by which copies are divided. It differs from those by
// which paths and receive queues are chosen: flows that these have sorted would gather at
// a few analyzers.
var shareKey = [16]byte{0x5d, 0x1c, 0x93, 0xa7, 0x2e, 0x68, 0xf4, 0x0b, 0xc9, 0x35, 0x7a, 0xe2, 0x81, 0x4f, 0xd6, 0x1b}

// Analyzers divide copies among themselves by their packets' innermost five-tuple, so
// that the copies of a packet from all hops go to one (section 4.2 of the paper).
type Analyzers struct{ names []uint64 }

// NewAnalyzers returns the analyzers with these addresses. With the same addresses, in
// any order, the division of copies is the same.
func NewAnalyzers(addresses []netip.Addr) (*Analyzers, error) {
	if n := len(addresses); n == 0 || n > MaxAnalyzers {
		return nil, fmt.Errorf("%d analyzers: from 1 to %d can share copies", n, MaxAnalyzers)
	}
	s := &Analyzers{}
	for i, a := range addresses {
		if !a.Is4() || slices.Contains(addresses[:i], a) {
			return nil, fmt.Errorf("analyzer %v: each has an IPv4 address of its own", a)
		}
		h := fnv.New64a()
		h.Write(a.AsSlice())
		s.names = append(s.names, h.Sum64())
	}
	return s, nil
}

// mix spreads a word over all its bits (the finalizer of splitmix64), one to one.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Of returns whose a copy is, as the place in the list: the one with the highest
// weight for its hash (Thaler, Ravishankar 1998). One that is gone leaves its copies to
// the others, and no other copy moves.
func (s *Analyzers) Of(c *Copied) (whose int) {
	flow, best := uint64(hashOf(c))*0x9e3779b97f4a7c15, uint64(0)
	for i, n := range s.names {
		if w := mix(n ^ flow); i == 0 || w > best {
			best, whose = w, i
		}
	}
	return whose
}

// hashOf is that of the innermost five-tuple; of fragments that of the addresses; of
// what is not IPv4 that of the switch, the source station and the EtherType, so that
// one port's pauses stay in order.
func hashOf(c *Copied) uint32 {
	var in [13]byte
	if k, _, ok := c.Hop(); ok {
		copy(in[:4], k.Src[:])
		copy(in[4:8], k.Dst[:])
		binary.BigEndian.PutUint16(in[8:], k.SrcPort)
		binary.BigEndian.PutUint16(in[10:], k.DstPort)
		in[12] = k.Proto
	} else {
		a := c.Switch.As4()
		copy(in[:4], a[:])
		if len(c.Original) >= wire.EthernetLen {
			copy(in[4:12], c.Original[6:14])
		}
	}
	return Toeplitz(shareKey[:], in[:])
}

// Toeplitz is the hash of receive side scaling: for each bit of the input that is
// set the 32 bits of the key from there on. The key repeats where it ends.
func Toeplitz(key, in []byte) (h uint32) {
	at := func(i int) uint64 { return uint64(key[i%len(key)]) }
	window := at(0)<<24 | at(1)<<16 | at(2)<<8 | at(3)
	for i, b := range in {
		window = window<<8 | at(i+4)
		for k := range 8 {
			if b&(0x80>>k) != 0 {
				h ^= uint32(window >> (8 - k))
			}
		}
	}
	return h
}
