package replay

import (
	"math/bits"

	"gswitch/frame"
	"gswitch/wire"
)

// Most frames are what their flow lets expect, and to see that costs a worker more than
// all else of a recording: so the encoder does not look for the headers of a frame whose
// flow is steady. If such a frame has the bytes that are expected, its headers are
// where those of the last one were.

const (
	// steadyBytes is how much is kept of a frame of a steady flow at most.
	steadyBytes = 128
	// plainFront is how many words of 8 bytes are in front of the one with the checksum, where
	// it is nearest: that of UDP in IPv4.
	plainFront = (wire.EthernetLen + wire.IPv4Len + 6) / 8
)

// steady says how frames of a flow are compared.
type steady struct {
	words  uint8  // of 8 bytes, the last of them in part
	sum    uint8  // the one in which the checksum is
	shift  uint8  // of the checksum there
	has    uint8  // 1: a checksum is there, 2: 0 is; 0: frames must be looked into
	moving uint32 // groups that grow
	inSum  uint64 // bits that are compared of the word of the checksum,
	inLast uint64 // and of the last one, which may be the same
}

// steadiness says whether what grows in a flow is nothing that scanFor looks at. h are the
// headers of its last frame. What is behind the headers of RoCEv2 depends on the node
// where there is an extender.
func (f *flow) steadiness(h *headers, to extender) (s steady) {
	if to != nil || h.sum < 8*plainFront || h.keep > steadyBytes || f.tel.hops != 0 || f.step[0] != 0 {
		return s
	}
	for i := 1; i < int(f.n); i++ {
		if f.step[i] == 0 {
			continue
		}
		s.moving |= 1 << i
		for k := range 4 {
			if uint16(f.step[i]>>(48-16*k)) != 0 && !f.passive(h, 8*(i-1)+2*k) {
				return steady{}
			}
		}
	}
	s.words, s.sum, s.shift = f.n-1, uint8(h.sum/8), uint8(48-8*(h.sum&7))
	s.inLast = ^uint64(0) << (8 * (8*int(s.words) - h.keep))
	s.inSum = ^uint64(0)
	if s.sum == s.words-1 {
		s.inSum = s.inLast
	}
	s.inSum &^= 0xffff << s.shift
	s.has = has(f.want[1+s.sum], s.shift)
	return s
}

// has says whether a checksum in a word is 0: 2, or not: 1.
func has(word uint64, shift uint8) uint8 { return uint8((word>>(shift&63)&0xffff-1)>>63) + 1 }

// passive reports whether two bytes at an offset may grow: scanFor does not look at them, and
// they are no checksum, of which only is known whether there is one.
func (f *flow) passive(h *headers, at int) bool {
	ipv4 := h.l4-h.l3 == wire.IPv4Len
	switch {
	case ipv4 && (at == h.l3+4 || at == h.l3+10): // identification, checksum
		return true
	case at < h.l4+4 || at == h.sum: // link, network, ports
		return false
	case h.sum == h.l4+16: // TCP, but for the length of its header
		return at != h.l4+12
	}
	return at >= h.l4+wire.UDPLen+2 && f.port(h) == wire.RoCEv2Port // behind the opcode
}

// port is the UDP or TCP port that the frames of a flow are for, whose ports do not grow.
func (f *flow) port(h *headers) uint16 {
	at := h.l4 + 2
	return uint16(f.want[1+at/8] >> (48 - 8*(at&7)))
}

// vector writes the frames of a vector.
func (e *encoder) vector(out []byte, a *frame.Arena, v []frame.Ref) []byte {
	for len(v) > 0 {
		n := e.steadyFrames(a, v)
		if v = v[n:]; len(v) > 0 {
			out = e.frame(out, a, v[0])
			v = v[1:]
		}
	}
	return e.endRun(out)
}

// steadyFrames takes the frames at the front of v that steady flows let expect and that have
// no stamp, and returns how many these are. It is what a recorded worker spends most on: so all
// is in one loop, which asks once a frame whether anything is different.
func (e *encoder) steadyFrames(a *frame.Arena, v []frame.Ref) (n int) {
	at := e.at & (flowSlots - 1)
	next := e.slots[at].next & (flowSlots - 1)
	f := &e.slots[next]
	room := a.ChunkSize() - steadyBytes
	for _, r := range v {
		m := a.Meta(r)
		if geometry(m) != f.want[0] || int(m.Head) > room {
			break
		}
		// What is behind the frame is not compared.
		s, p, want := &f.steady, (*[steadyBytes]byte)(a.First(r, m, steadyBytes)), (*[steadyBytes / 8]uint64)(f.want[1:])
		wrong := uint64(m.Next^frame.Nil) | uint64(m.Stamp) |
			(be.Uint64(p[0:]) ^ want[0]) | (be.Uint64(p[8:]) ^ want[1]) | (be.Uint64(p[16:]) ^ want[2]) |
			(be.Uint64(p[24:]) ^ want[3]) | (be.Uint64(p[32:]) ^ want[4])
		sum, last := s.sum&(steadyBytes/8-1), (s.words-1)&(steadyBytes/8-1)
		x := be.Uint64(p[8*int(sum):])
		wrong |= (x^want[sum])&s.inSum | uint64(has(x, s.shift)^s.has)
		if last != plainFront {
			for k := uint8(plainFront); k < last; k++ {
				if k != sum {
					wrong |= be.Uint64(p[8*int(k):]) ^ want[k]
				}
			}
			if last != sum {
				wrong |= (be.Uint64(p[8*int(last):]) ^ want[last]) & s.inLast
			}
		}
		if wrong != 0 {
			break
		}
		for moving := s.moving; moving != 0; moving &= moving - 1 {
			k := bits.TrailingZeros32(moving)
			f.want[k] = addWords(f.want[k], f.step[k])
		}
		if at = next; f.next != at { // another flow comes next
			next = f.next & (flowSlots - 1)
			f = &e.slots[next]
		}
		n++
	}
	e.at = at
	e.run += n
	return n
}
