package frame

import (
	"encoding/binary"
	"fmt"
)

// Arena holds the chunks of an engine and their Meta. It is shared by all
// workers of a group; a chunk is touched only by the owner of its Ref.
type Arena struct {
	mem      []byte
	meta     []Meta
	shift    uint // log2 of the chunk size
	headroom int
}

// DefaultHeadroom is the space before the first byte of a new frame. It
// equals what the kernel leaves before a received frame (XDP_PACKET_HEADROOM).
const DefaultHeadroom = 256

// NewArena lays an arena over mem. chunk is the chunk size in bytes, a power
// of two of at least 256; headroom is the space left before the first byte
// of a fresh frame. len(mem) must be a multiple of chunk.
func NewArena(mem []byte, chunk, headroom int) (*Arena, error) {
	switch {
	case chunk < 256 || chunk > 1<<16 || chunk&(chunk-1) != 0:
		return nil, fmt.Errorf("arena: chunk size %d is not a power of two from 256 to 65536", chunk)
	case len(mem) == 0 || len(mem)%chunk != 0:
		return nil, fmt.Errorf("arena: %d bytes of memory are not a whole number of %d-byte chunks", len(mem), chunk)
	case headroom < 0 || headroom >= chunk:
		return nil, fmt.Errorf("arena: headroom %d does not fit into a %d-byte chunk", headroom, chunk)
	case len(mem)/chunk >= int(Nil):
		return nil, fmt.Errorf("arena: %d chunks are too many", len(mem)/chunk)
	}
	shift := uint(0)
	for 1<<shift < chunk {
		shift++
	}
	return &Arena{mem: mem, meta: make([]Meta, len(mem)/chunk), shift: shift, headroom: headroom}, nil
}

// MustArena is NewArena over fresh ordinary memory of n chunks, for tests
// and for virtual time. It panics where NewArena would fail.
func MustArena(n, chunk, headroom int) *Arena {
	a, err := NewArena(make([]byte, n*chunk), chunk, headroom)
	if err != nil {
		panic(err)
	}
	return a
}

// Chunks returns the number of chunks.
func (a *Arena) Chunks() int { return len(a.meta) }

// ChunkSize returns the size of a chunk in bytes.
func (a *Arena) ChunkSize() int { return 1 << a.shift }

// Headroom returns the space before the first byte of a fresh frame.
func (a *Arena) Headroom() int { return a.headroom }

// Room returns how many bytes a fresh frame can hold in one chunk.
func (a *Arena) Room() int { return 1<<a.shift - a.headroom }

// Meta returns the metadata of r. The pointer must not outlive the caller's
// ownership of r.
func (a *Arena) Meta(r Ref) *Meta { return &a.meta[r] }

// Bytes returns the materialised bytes of r's first chunk, with the rest of
// the chunk as capacity.
func (a *Arena) Bytes(r Ref) []byte {
	m := &a.meta[r]
	shift := a.shift & 63 // known to the compiler, which need not ask
	base := uint(r) << shift
	first := base + uint(m.Head)
	return a.mem[first : first+uint(m.Len) : base+1<<shift]
}

// Word returns eight bytes of the first chunk of r, whose Meta is m, the first
// of them the least significant, from offset off of the frame on. It must not
// be beyond them.
func (a *Arena) Word(r Ref, m *Meta, off uint16) uint64 {
	first := uint(r)<<(a.shift&63) + uint(m.Head) + uint(off)
	return binary.LittleEndian.Uint64((*[8]byte)(a.mem[first : first+8])[:])
}

// First returns the first n bytes of r, whose Meta is m. It must have so many in its
// first chunk: Bytes, where that is known already.
func (a *Arena) First(r Ref, m *Meta, n uint) []byte {
	first := uint(r)<<(a.shift&63) + uint(m.Head)
	return a.mem[first : first+n]
}

// Addr returns the offset of r's first byte in the arena: the address that an
// AF_XDP descriptor carries.
func (a *Arena) Addr(r Ref) uint64 { return uint64(r)<<a.shift + uint64(a.meta[r].Head) }

// ChunkAddr returns the offset of the chunk of r: what a fill ring takes.
func (a *Arena) ChunkAddr(r Ref) uint64 { return uint64(r) << a.shift }

// RefOf returns the frame whose chunk holds the arena offset addr.
func (a *Arena) RefOf(addr uint64) Ref { return Ref(addr >> a.shift) }

// Adopt makes r, just received into the arena offset addr, a frame of n
// materialised bytes. Everything else in its Meta is cleared.
func (a *Arena) Adopt(addr uint64, n int) Ref {
	r := Ref(addr >> a.shift)
	m := &a.meta[r]
	m.clear()
	m.Head, m.Len, m.Wire = uint16(addr&(1<<a.shift-1)), uint16(n), uint32(n)
	return r
}

// Reset makes r an empty frame at the arena's headroom.
func (a *Arena) Reset(r Ref) *Meta {
	m := &a.meta[r]
	m.clear()
	m.Head = uint16(a.headroom)
	return m
}

// Before returns the n bytes of memory before the first of r, which are no part of
// it; nil where there are not so many.
func (a *Arena) Before(r Ref, n int) []byte {
	head := int(a.meta[r].Head)
	if n > head {
		return nil
	}
	at := int(uint64(r)<<a.shift) + head
	return a.mem[at-n : at]
}

// Push grows r by n bytes at the front and returns its bytes. It returns nil
// and changes nothing if the headroom is too small.
func (a *Arena) Push(r Ref, n int) []byte {
	m := &a.meta[r]
	if n > int(m.Head) {
		return nil
	}
	m.Head -= uint16(n)
	m.Len += uint16(n)
	m.Wire += uint32(n)
	return a.Bytes(r)
}

// Pull cuts n bytes off the front of r and returns the rest. It returns nil
// and changes nothing if r is shorter.
func (a *Arena) Pull(r Ref, n int) []byte {
	m := &a.meta[r]
	if n > int(m.Len) {
		return nil
	}
	m.Head += uint16(n)
	m.Len -= uint16(n)
	m.Wire -= uint32(n)
	return a.Bytes(r)
}

// SetBytes makes b the content of r, from the arena's headroom on. It
// reports whether b fits into one chunk.
func (a *Arena) SetBytes(r Ref, b []byte) bool {
	if len(b) > a.Room() {
		return false
	}
	m := a.Reset(r)
	m.Len, m.Wire = uint16(len(b)), uint32(len(b))
	copy(a.Bytes(r), b)
	return true
}
