package mirror

import (
	"encoding/binary"
	"fmt"

	"gswitch/frame"
	"gswitch/wire"
)

// Slots divide packets among analyzers by a hash of their innermost five-tuple, so
// that the copies of a packet from all hops meet at one. Every switch that
// reshuffles must have the same slots and key.
type Slots struct {
	to  []uint16 // analyzer of each slot
	key [16]byte
}

// NewSlots gives each of n analyzers the same share of `slots` slots. The key is
// to differ from those by which paths and receive queues are chosen, or flows that
// these have sorted would meet in a few slots.
func NewSlots(slots, n int, key [16]byte) (*Slots, error) {
	if n < 1 || slots < n || slots > 1<<16 {
		return nil, fmt.Errorf("%d slots for %d analyzers: each needs one, and there are 65536 at most", slots, n)
	}
	s := &Slots{to: make([]uint16, slots), key: key}
	for i := range s.to {
		s.to[i] = uint16(i % n)
	}
	return s, nil
}

// Without returns the slots with those of an analyzer that is gone given to
// others; no other slot moves.
func (s *Slots) Without(gone int, left []int) *Slots {
	out := &Slots{to: append([]uint16(nil), s.to...), key: s.key}
	k := 0
	for i, a := range out.to {
		if int(a) == gone && len(left) > 0 {
			out.to[i] = uint16(left[k%len(left)])
			k++
		}
	}
	return out
}

// Analyzer returns who gets the copies of an original, given as the parser saw it.
func (s *Slots) Analyzer(m *frame.Meta, b []byte) int {
	return int(s.to[uint64(s.hash(m, b))*uint64(len(s.to))>>32])
}

// hash is that of the innermost five-tuple; of a fragment the addresses, of what is
// not IPv4 its source station and EtherType, so that one port's pauses stay in
// order.
func (s *Slots) hash(m *frame.Meta, b []byte) uint32 {
	var in [12]byte
	switch {
	case m.Flags&(frame.HasIPv4|frame.HasTunnel) != 0 && m.Flags&frame.InnerIPv6 == 0 && len(b) >= int(m.L3Inner)+wire.IPv4Len:
		copy(in[:8], b[m.L3Inner+12:])
		if m.Flags&frame.IsFragment == 0 {
			binary.BigEndian.PutUint16(in[8:], m.SrcPort)
			binary.BigEndian.PutUint16(in[10:], m.DstPort)
		}
	default:
		copy(in[:], b[6:14])
	}
	return Toeplitz(s.key[:], in[:])
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
