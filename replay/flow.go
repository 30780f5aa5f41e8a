package replay

import (
	"encoding/binary"
	"errors"

	"gswitch/frame"
)

// Frames of a flow differ by little: identification, sequence number and
// checksum grow by the same step from one to the next. So both sides, the one
// that writes a record and the one that reads it, keep the last frame of each
// flow and the step in which each 16-bit word came to it, and expect the same step again.
// A frame that is as expected costs a part of a byte; of one that is not, the
// words are written that differ.

const (
	flowSlots = 4096
	// flowBytes is how much of a frame is compared with what its flow lets
	// expect. Of what more is kept nothing is expected.
	flowBytes = 200
	groups    = 1 + flowBytes/8 // of four words; the first is the geometry
)

// flow is what is known of the frames of a slot.
type flow struct {
	keep   uint16 // bytes, 0 = the slot was not used
	tel    telemetry
	n      uint8  // groups
	next   uint16 // the slot of the frame that came after the last one of this
	steady steady // of the encoder
	want   [groups]uint64
	step   [groups]uint64
}

// flows is the state of prediction, the same on both sides.
type flows struct {
	slots [flowSlots]flow
	at    uint16 // slot of the last frame
	b     [flowBytes + 8]byte
	now   [groups]uint64 // the frame at hand
}

const (
	high16 = 0x8000_8000_8000_8000
	low15  = ^uint64(high16)
)

// addWords and subWords work on the four words of a group at once.
func addWords(a, b uint64) uint64 { return (a&low15 + b&low15) ^ (a^b)&high16 }
func subWords(a, b uint64) uint64 { return ((a | high16) - b&low15) ^ (a^^b)&high16 }

// advance expects the frame after the one that is expected.
func (f *flow) advance() {
	for i := range int(f.n) {
		f.want[i] = addWords(f.want[i], f.step[i])
	}
}

// asExpected reports whether a frame without telemetry is what its flow lets expect: most
// are.
func (f *flow) asExpected(g uint64, b []byte, h *headers) bool {
	if int(f.keep) != h.keep || f.tel.hops != 0 || f.want[0] != g {
		return false
	}
	b = b[:h.keep]
	sum := -1 // group of the checksum, which is at an even offset
	if h.sum != 0 {
		sum = 1 + h.sum/8
	}
	i := 1
	for ; len(b) >= 8; i++ {
		v := be.Uint64(b)
		if i == sum {
			v = maskWord(v, h.sum)
		}
		if f.want[i] != v {
			return false
		}
		b = b[8:]
	}
	if len(b) == 0 {
		return true
	}
	v := uint64(0)
	for k, c := range b {
		v |= uint64(c) << (56 - 8*k)
	}
	if i == sum {
		v = maskWord(v, h.sum)
	}
	return f.want[i] == v
}

// maskWord is headers.mask for the word in which the checksum is.
func maskWord(v uint64, sum int) uint64 {
	at := 48 - 8*(sum&7)
	if v>>at&0xffff != 0 {
		v |= 0xffff << at
	}
	return v
}

func geometry(m *frame.Meta) uint64 {
	return uint64(m.Head)<<48 | uint64(m.Len)<<32 | uint64(m.Wire)
}

// copy takes what is kept of a frame.
func (f *flows) copy(b []byte, h *headers) {
	copy(f.b[:], b[:h.keep])
	clear(f.b[h.keep : h.keep+8])
	h.mask(f.b[:])
}

// load takes it apart into groups and returns its slot.
func (f *flows) load(m *frame.Meta, h *headers) (slot uint16, n int) {
	n = 1 + (h.keep+7)/8
	f.now[0] = geometry(m)
	for i := 1; i < n; i++ {
		f.now[i] = be.Uint64(f.b[8*(i-1):])
	}
	// Addresses and ports, and the length, so that frames of a flow with other options
	// have a slot of their own.
	k := f.now[1] ^ f.now[2]&^0xffff*prime ^ uint64(h.keep)
	if h.l4 != 0 {
		k = (k ^ binary.LittleEndian.Uint64(f.b[h.l4-8:])) * prime
		k ^= uint64(binary.LittleEndian.Uint32(f.b[h.l4:]))
	}
	k *= prime
	return uint16(k >> 52), n
}

// The codes of frames. Below runCode they stand alone; a run of n frames as
// expected is runCode + n - 1.
const (
	deltaCode = 1 // of the flow that was expected, some words differ
	slotCode  = 2 // the same of another flow: its slot comes first
	fullCode  = 3 // nothing is expected: slot, geometry, bytes kept, where telemetry is, the bytes
	rawCode   = 4 // more than a flow keeps, several chunks, or nothing
	runCode   = 0x80
	longest   = 0x80 // run
)

// encoder writes the frames of a vector.
type encoder struct {
	flows
	run  int // frames as expected that are not written yet
	to   extender
	rows []byte // telemetry of the frames
}

func (e *encoder) endRun(out []byte) []byte {
	for e.run > 0 {
		n := min(e.run, longest)
		out = append(out, byte(runCode+n-1))
		e.run -= n
	}
	return out
}

// frame appends what distinguishes a frame from what was expected.
func (e *encoder) frame(out []byte, a *frame.Arena, r frame.Ref) []byte {
	m, b := a.Meta(r), a.Bytes(r)
	h := scanFor(b, e.to)
	if h.keep == 0 || h.keep > flowBytes || m.Next != frame.Nil {
		return e.raw(e.endRun(out), a, r, &h)
	}
	next := e.slots[e.at].next
	if f := &e.slots[next]; f.asExpected(geometry(m), b, &h) {
		f.advance()
		e.at = next
		e.run++
		return out
	}
	e.copy(b, &h)
	t, at := telemetryOf(b, &h), len(e.rows)
	if t.hops > 0 {
		e.rows = t.rows(e.rows, e.b[:])
	}
	slot, n := e.load(m, &h)
	if t.hops > 0 {
		be.PutUint16(e.rows[at:], slot)
	}
	f := &e.slots[slot]
	e.slots[e.at].next, e.at = slot, slot
	if int(f.keep) != h.keep || f.tel != t {
		return e.full(e.endRun(out), slot, n, &h, t)
	}
	var wrong uint32
	for i := range n {
		if e.now[i] != f.want[i] {
			wrong |= 1 << i
			f.step[i] = addWords(f.step[i], subWords(e.now[i], f.want[i]))
		}
		f.want[i] = addWords(e.now[i], f.step[i])
	}
	f.steady = f.steadiness(&h, e.to)
	if slot == next && wrong == 0 { // apart from its telemetry
		e.run++
		return out
	}
	out = e.endRun(out)
	if slot == next {
		out = append(out, deltaCode)
	} else {
		out = binary.AppendUvarint(append(out, slotCode), uint64(slot))
	}
	out = binary.AppendUvarint(out, uint64(wrong))
	for i := range n {
		if wrong>>i&1 != 0 {
			out = appendSparse(out, f.step[i])
		}
	}
	return out
}

func (e *encoder) full(out []byte, slot uint16, n int, h *headers, t telemetry) []byte {
	f := &e.slots[slot]
	f.keep, f.n, f.tel = uint16(h.keep), uint8(n), t
	f.want, f.step = e.now, [groups]uint64{}
	f.steady = f.steadiness(h, e.to)
	out = binary.AppendUvarint(append(out, fullCode), uint64(slot))
	out = append(be.AppendUint64(out, e.now[0]), byte(h.keep), t.kind, t.at, t.hops, t.whole)
	return append(out, e.b[:h.keep]...)
}

// raw appends a frame of which nothing is expected. Of a chain, the bytes of
// the first chunk count, which holds the headers.
func (e *encoder) raw(out []byte, a *frame.Arena, r frame.Ref, h *headers) []byte {
	m, b := a.Meta(r), a.Bytes(r)
	out = be.AppendUint64(append(out, rawCode), geometry(m))
	out = binary.AppendUvarint(out, uint64(h.keep))
	at := len(out)
	out = append(out, b[:h.keep]...)
	h.mask(out[at:])
	more := 0
	for c := m.Next; c != frame.Nil; c = a.Meta(c).Next {
		more++
	}
	out = binary.AppendUvarint(out, uint64(more))
	for c := m.Next; c != frame.Nil; c = a.Meta(c).Next {
		out = be.AppendUint64(out, geometry(a.Meta(c)))
	}
	return out
}

var errFrame = errors.New("a frame is not coded as frames are")

// decoder makes frames of what an encoder wrote.
type decoder struct {
	flows
	run     int // frames as expected still to come
	predict predictor
	rows    *spreadRows // of the segment
}

// frame makes the next frame in a chunk of the pool.
func (d *decoder) frame(in *reader, p *frame.Pool) (frame.Ref, error) {
	if d.run > 0 {
		d.run--
		return d.expected(in, d.slots[d.at].next, 0, p)
	}
	switch code := in.byte(); {
	case code >= runCode:
		d.run = int(code - runCode)
		return d.expected(in, d.slots[d.at].next, 0, p)
	case code == deltaCode:
		return d.expected(in, d.slots[d.at].next, in.uvarint(1<<groups-1), p)
	case code == slotCode:
		slot := uint16(in.uvarint(flowSlots - 1))
		return d.expected(in, slot, in.uvarint(1<<groups-1), p)
	case code == fullCode:
		return d.full(in, p)
	case code == rawCode:
		return d.raw(in, p)
	}
	return frame.Nil, errFrame
}

// expected makes the frame that a flow lets expect, with the groups of wrong as
// they come from in.
func (d *decoder) expected(in *reader, slot uint16, wrong uint64, p *frame.Pool) (frame.Ref, error) {
	f := &d.slots[slot]
	if in.bad || f.keep == 0 {
		return frame.Nil, errFrame
	}
	d.slots[d.at].next, d.at = slot, slot
	for i := range int(f.n) {
		if wrong>>i&1 != 0 {
			step := in.sparse()
			f.want[i] = addWords(subWords(f.want[i], f.step[i]), step)
			f.step[i] = step
		}
		if i > 0 {
			be.PutUint64(d.b[8*(i-1):], f.want[i])
		}
	}
	g := f.want[0]
	f.advance()
	return d.finish(in, slot, g, p)
}

// finish makes the frame of a slot, of geometry g, whose bytes are in d.b apart from its
// telemetry.
func (d *decoder) finish(in *reader, slot uint16, g uint64, p *frame.Pool) (frame.Ref, error) {
	f := &d.slots[slot]
	if in.bad || f.tel.hops > 0 && !d.predict.take(d.rows, slot, f.tel, d.b[:]) {
		return frame.Nil, errFrame
	}
	return build(p, g, d.b[:f.keep])
}

func (d *decoder) full(in *reader, p *frame.Pool) (frame.Ref, error) {
	slot := uint16(in.uvarint(flowSlots - 1))
	g, keep := in.uint64(), int(in.byte())
	t := telemetry{kind: in.byte(), at: in.byte(), hops: in.byte(), whole: in.byte()}
	b := in.take(keep)
	if in.bad || keep == 0 || keep > flowBytes || !t.known(keep) {
		return frame.Nil, errFrame
	}
	d.slots[d.at].next, d.at = slot, slot
	f := &d.slots[slot]
	f.keep, f.n, f.step, f.tel = uint16(keep), uint8(1+(keep+7)/8), [groups]uint64{}, t
	clear(d.b[copy(d.b[:], b):])
	f.want[0] = g
	for i := 1; i < int(f.n); i++ {
		f.want[i] = be.Uint64(d.b[8*(i-1):])
	}
	return d.finish(in, slot, g, p)
}

func (d *decoder) raw(in *reader, p *frame.Pool) (frame.Ref, error) {
	g := in.uint64()
	b := in.take(int(in.uvarint(1 << 16)))
	more := in.uvarint(1 << 10)
	if in.bad {
		return frame.Nil, errFrame
	}
	first, err := build(p, g, b)
	if err != nil {
		return first, err
	}
	for at := first; more > 0; more-- {
		c, err := build(p, in.uint64(), nil)
		if err != nil || in.bad {
			p.Free(first)
			return frame.Nil, errFrame
		}
		p.Meta(at).Next, at = c, c
	}
	return first, nil
}

// errMemory says that a player's arena is smaller than that of the recorder.
var errMemory = errors.New("there is no chunk left for a frame: the recorded node held fewer frames than this one")

// build makes a frame of a geometry; b are its first bytes, the others are 0.
func build(p *frame.Pool, g uint64, b []byte) (frame.Ref, error) {
	head, n := uint16(g>>48), uint16(g>>32)
	if int(head)+int(n) > p.ChunkSize() || len(b) > int(n) {
		return frame.Nil, errFrame
	}
	r := p.Alloc()
	if r == frame.Nil {
		return r, errMemory
	}
	m := p.Reset(r)
	m.Head, m.Len, m.Wire = head, n, uint32(g)
	to := p.Bytes(r)
	clear(to[copy(to, b):])
	return r, nil
}

// reader takes fields off the front of b, until there is a bad one.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if n > len(r.b) {
		r.bad, r.b = true, nil
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) byte() byte {
	if v := r.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (r *reader) uint32() uint32 {
	if v := r.take(4); v != nil {
		return be.Uint32(v)
	}
	return 0
}

func (r *reader) uint64() uint64 {
	if v := r.take(8); v != nil {
		return be.Uint64(v)
	}
	return 0
}

// zigzag makes small numbers of small steps, up and down, in each of four words.
func zigzag(v uint64) (z uint64) {
	for i := 0; i < 64; i += 16 {
		w := int16(v >> i)
		z |= uint64(uint16(w<<1^w>>15)) << i
	}
	return z
}

func unzigzag(z uint64) (v uint64) {
	for i := 0; i < 64; i += 16 {
		w := uint16(z >> i)
		v |= uint64(w>>1^-(w&1)) << i
	}
	return v
}

// appendSparse appends a step: the bytes of it that are not 0, and before them which.
func appendSparse(out []byte, step uint64) []byte {
	at, v := len(out), zigzag(step)
	out = append(out, 0)
	for i := range 8 {
		if b := byte(v >> (8 * i)); b != 0 {
			out[at] |= 1 << i
			out = append(out, b)
		}
	}
	return out
}

func (r *reader) sparse() uint64 {
	v := uint64(0)
	for i, which := 0, r.byte(); which != 0; i, which = i+1, which>>1 {
		if which&1 != 0 {
			v |= uint64(r.byte()) << (8 * i)
		}
	}
	return unzigzag(v)
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) uvarint(most uint64) uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > most {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}
