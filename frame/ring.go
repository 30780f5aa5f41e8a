package frame

import "sync/atomic"

// Ring is a single-producer single-consumer ring of frames between two
// workers. Each side keeps a cached copy of the other's index and publishes
// its own once per batch, so a frame costs a few nanoseconds.
type Ring struct {
	buf  []Ref
	mask uint32
	_    [128]byte

	// Producer's line.
	tail       atomic.Uint32
	cachedHead uint32
	_          [128]byte

	// Consumer's line.
	head       atomic.Uint32
	cachedTail uint32
	_          [128]byte
}

// NewRing returns a ring for at least n frames (rounded up to a power of two).
func NewRing(n int) *Ring {
	size := 1
	for size < n {
		size <<= 1
	}
	return &Ring{buf: make([]Ref, size), mask: uint32(size - 1)}
}

// Push appends the frames of v in order and returns how many fitted.
// Producer only.
func (r *Ring) Push(v []Ref) int {
	tail := r.tail.Load()
	room := uint32(len(r.buf)) - (tail - r.cachedHead)
	if room < uint32(len(v)) {
		r.cachedHead = r.head.Load()
		room = uint32(len(r.buf)) - (tail - r.cachedHead)
	}
	n := min(uint32(len(v)), room)
	for i := uint32(0); i < n; i++ {
		r.buf[(tail+i)&r.mask] = v[i]
	}
	r.tail.Store(tail + n)
	return int(n)
}

// Pop moves up to len(out) frames to out and returns how many. Consumer only.
func (r *Ring) Pop(out []Ref) int {
	head := r.head.Load()
	have := r.cachedTail - head
	if have == 0 {
		r.cachedTail = r.tail.Load()
		if have = r.cachedTail - head; have == 0 {
			return 0
		}
	}
	n := min(uint32(len(out)), have)
	for i := uint32(0); i < n; i++ {
		out[i] = r.buf[(head+i)&r.mask]
	}
	r.head.Store(head + n)
	return int(n)
}

// Each calls f with the frames that lie in the ring. Producer or consumer only: what the
// other one moves meanwhile may be among them or not.
func (r *Ring) Each(f func(Ref)) {
	for at, end := r.head.Load(), r.tail.Load(); at != end; at++ {
		f(r.buf[at&r.mask])
	}
}

// Cap returns how many frames the ring takes.
func (r *Ring) Cap() int { return len(r.buf) }

// Len returns how many frames lie in the ring, as seen from anywhere.
func (r *Ring) Len() int { return int(r.tail.Load() - r.head.Load()) }
