//go:build !amd64

package frame

import "unsafe"

func prefetch(unsafe.Pointer) {}

func prefetchFrame(meta, chunk unsafe.Pointer) {}

// PrefetchAll reads the first bytes at the arena offsets addrs and both lines of
// their frames' Meta, for the sake of the cache. What it returns is made of what
// it read, so that it is.
func (a *Arena) PrefetchAll(addrs []uint64) (read byte) {
	for _, addr := range addrs {
		m := &a.meta[addr>>a.shift]
		read ^= a.mem[addr] ^ m.Class ^ byte(m.Pool)
	}
	return read
}
