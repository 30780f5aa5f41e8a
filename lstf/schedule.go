package lstf

import (
	"encoding/binary"

	"gswitch/frame"
	"gswitch/wire"
)

// Schedule is how long each packet waited in all queues of its way, and when it left
// the network. With the wait as its slack, no packet has any left at its end that
// leaves when it did then. It
// is for one worker, or for several that only read it.
type Schedule struct {
	slot []wait
	n    int
}

type wait struct {
	key  uint64 // 0: free
	ns   int64
	left frame.Time
}

// Len returns how many packets the schedule has.
func (s *Schedule) Len() int { return s.n }

// Record enters the wait of a packet, and when it left. Of two with the same key the
// last counts.
func (s *Schedule) Record(key uint64, ns int64, left frame.Time) {
	if s.n >= len(s.slot)/2 {
		s.grow()
	}
	at := s.at(key)
	if at.key == 0 {
		s.n++
	}
	*at = wait{key, ns, left}
}

// Wait returns what a packet waited and when it left, and false if it is not in the
// schedule.
func (s *Schedule) Wait(key uint64) (ns int64, left frame.Time, ok bool) {
	if s.n == 0 {
		return 0, 0, false
	}
	at := s.at(key)
	return at.ns, at.left, at.key != 0
}

// at returns the place of a key, or the free one where it would be.
func (s *Schedule) at(key uint64) *wait {
	mask := uint64(len(s.slot) - 1)
	for i := key & mask; ; i = (i + 1) & mask {
		if w := &s.slot[i]; w.key == key || w.key == 0 {
			return w
		}
	}
}

func (s *Schedule) grow() {
	old := s.slot
	s.slot = make([]wait, max(1024, 2*len(old)))
	for _, w := range old {
		if w.key != 0 {
			*s.at(w.key) = w
		}
	}
}

// Key distinguishes packets of a schedule: by addresses, ports and, of RoCEv2, the
// queue pair, the sequence number and the opcode. It is never 0. b are the first
// bytes of the packet.
func Key(m *frame.Meta, b []byte) uint64 {
	const prime = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio
	mix := func(h, v uint64) uint64 {
		h = (h ^ v) * prime
		return h ^ h>>29
	}
	h, be := uint64(prime), binary.BigEndian
	switch l3 := int(m.L3); {
	case m.Flags&frame.HasIPv4 != 0 && l3+wire.IPv4Len <= len(b):
		h = mix(h, be.Uint64(b[l3+12:]))
	case m.Flags&frame.HasIPv6 != 0 && l3+wire.IPv6Len <= len(b):
		for i := range 4 {
			h = mix(h, be.Uint64(b[l3+8+8*i:]))
		}
	}
	h = mix(h, uint64(m.SrcPort)<<16|uint64(m.DstPort))
	if m.Flags&frame.HasRoCE != 0 {
		if at := wire.BTHOffset(m, b); at+wire.BTHLen <= len(b) {
			h = mix(h, uint64(b[at])<<56|uint64(be.Uint32(b[at+4:])&0xffffff)<<24|uint64(be.Uint32(b[at+8:])&0xffffff))
		}
	}
	return max(h, 1)
}
