package frame

import "unsafe"

// Prefetch asks for the cache line of p and does not wait for it. Engines ask
// for all that the events of an instant need before they run the first: memory
// that does not lie in the cache takes longer than a frame, and what is asked
// for together comes together.
func Prefetch[T any](p *T) { prefetch(unsafe.Pointer(p)) }

// Prefetch asks for what a node reads of r when it gets it: both lines of its
// Meta and the headers, which end within the second line of the chunk.
func (a *Arena) Prefetch(r Ref) {
	prefetchFrame(unsafe.Pointer(&a.meta[r]), unsafe.Pointer(&a.mem[uint(r)<<a.shift]))
}
