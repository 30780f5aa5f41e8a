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

// steady says how frames of a flow are compared; words 0: they must be looked into.
type steady struct {
	words  uint8  // of 8 bytes, the last of them in part
	sum    uint8  // the one in which the checksum is
	shift  uint8  // of the checksum there
	spare  uint8  // bits of the last one that are not kept
	moving uint32 // groups that grow
}

// steadiness says whether what grows in a flow is nothing that scanFor looks at. h are the
// headers of its last frame. What is behind the headers of RoCEv2 depends on the node
// where there is an extender.
func (f *flow) steadiness(h *headers, to extender) (s steady) {
	if to != nil || h.sum == 0 || f.tel.hops != 0 || f.step[0] != 0 {
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
	s.words, s.spare = f.n-1, uint8(8*(8*(int(f.n)-1)-h.keep))
	s.sum, s.shift = uint8(h.sum/8), uint8(48-8*(h.sum&7))
	return s
}

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

// steadyFrames takes the frames at the front of v that steady flows let expect, and returns
// how many these are.
func (e *encoder) steadyFrames(a *frame.Arena, v []frame.Ref) int {
	for i, r := range v {
		m := a.Meta(r)
		next := e.slots[e.at&(flowSlots-1)].next & (flowSlots - 1)
		f := &e.slots[next]
		if m.Next != frame.Nil || geometry(m) != f.want[0] || !f.meets(a.Bytes(r)) {
			e.run += i
			return i
		}
		for moving := f.steady.moving; moving != 0; moving &= moving - 1 {
			k := bits.TrailingZeros32(moving)
			f.want[k] = addWords(f.want[k], f.step[k])
		}
		e.at = next
	}
	e.run += len(v)
	return len(v)
}

// meets reports whether b, a frame of the length that is expected, is what a steady flow lets
// expect.
func (f *flow) meets(b []byte) bool {
	s := &f.steady
	n, sum := int(s.words), int(s.sum)
	if b = b[:cap(b)]; n == 0 || len(b) < 8*n {
		return false
	}
	want, b := f.want[1:n+1], b[:8*n]
	wrong, k := uint64(0), 0
	for ; k < sum; k++ {
		wrong |= be.Uint64(b[8*k:]) ^ want[k]
	}
	v := be.Uint64(b[8*k:])
	if (v>>(s.shift&63)&0xffff != 0) != (want[k]>>(s.shift&63)&0xffff != 0) {
		return false
	}
	d := (v ^ want[k]) &^ (0xffff << (s.shift & 63))
	for k++; k < n; k++ {
		wrong |= d
		d = be.Uint64(b[8*k:]) ^ want[k]
	}
	return wrong|d>>(s.spare&63) == 0
}
