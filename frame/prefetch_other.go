//go:build !amd64

package frame

import "unsafe"

func prefetch(unsafe.Pointer) {}

func prefetchFrame(meta, chunk unsafe.Pointer) {}
