package frame

import "unsafe"

//go:noescape
func prefetch(p unsafe.Pointer)

//go:noescape
func prefetchFrame(meta, chunk unsafe.Pointer)
