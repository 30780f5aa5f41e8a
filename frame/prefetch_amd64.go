package frame

import "unsafe"

//go:noescape
func prefetch(p unsafe.Pointer)

//go:noescape
func prefetchFrame(meta, chunk unsafe.Pointer)

//go:noescape
func prefetchAll(addrs *uint64, n uint64, mem, meta unsafe.Pointer, shift uint64)

// PrefetchAll asks for the lines of the first bytes at the arena offsets addrs
// and for those of their frames' Meta, and does not wait for them. What it
// returns means nothing, and is to be kept: where there is no such instruction
// the lines are read.
func (a *Arena) PrefetchAll(addrs []uint64) byte {
	const _ = uint(unsafe.Sizeof(Meta{})-128) + uint(128-unsafe.Sizeof(Meta{})) // as prefetchAll has it
	prefetchAll(unsafe.SliceData(addrs), uint64(len(addrs)), unsafe.Pointer(unsafe.SliceData(a.mem)), unsafe.Pointer(unsafe.SliceData(a.meta)), uint64(a.shift))
	return 0
}
