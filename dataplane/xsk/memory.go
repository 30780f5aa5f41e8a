package xsk

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"gswitch/frame"
)

// Far is the far side of a socket's rings in place of the kernel: a device without
// zero-copy or system calls, for tests and for measuring the near side.
type Far struct {
	rx, tx     descRing
	fill, comp addrRing

	// Memory and Content, if set: Deliver writes Content at the start of each frame.
	Memory, Content []byte
}

// InMemory returns a socket whose rings, with size entries each (a power of two), are in
// ordinary memory, and their far side. The arena has the given number of chunks. All
// indices start at start. The socket must not be closed.
func InMemory(chunks int, size, start uint32) (*Socket, *Far) {
	rings := [4]memoryRing{}
	for i := range rings {
		rings[i] = newMemoryRing(size, start)
	}
	s := &Socket{
		rx: rings[0].descs(size), tx: rings[1].descs(size), fill: rings[2].addrs(size), comp: rings[3].addrs(size),
		held: make([]uint64, (chunks+63)/64), head: frame.Nil, tail: frame.Nil, rejected: make([]frame.Ref, 0, size), multibuffer: true,
		kicked: start,
	}
	return s, &Far{rx: rings[0].descs(size), tx: rings[1].descs(size), fill: rings[2].addrs(size), comp: rings[3].addrs(size)}
}

// memoryRing allocates a ring. Its flags are 0: it needs no wake-up.
type memoryRing struct {
	mem []byte
	off unix.XDPRingOffset
}

func newMemoryRing(size, start uint32) memoryRing {
	off := unix.XDPRingOffset{Producer: 0, Consumer: 64, Flags: 128, Desc: 192}
	words := make([]uint64, (192+16*int(size))/8)
	r := memoryRing{unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8), off}
	*(*uint32)(unsafe.Pointer(&r.mem[off.Producer])) = start
	*(*uint32)(unsafe.Pointer(&r.mem[off.Consumer])) = start
	return r
}

func (r memoryRing) addrs(size uint32) addrRing { return newAddrRing(r.mem, r.off, size) }
func (r memoryRing) descs(size uint32) descRing { return newDescRing(r.mem, r.off, size) }

// Deliver moves up to n chunks from the fill ring to the RX ring as frames of length
// bytes, with the given descriptor options, and returns how many.
func (f *Far) Deliver(n, length, options uint32) int {
	n = min(n, f.fill.available(n), f.rx.room(n))
	for i := range n {
		addr := f.fill.entries[(f.fill.cons+i)&f.fill.mask] + frame.DefaultHeadroom
		if f.Memory != nil {
			copy(f.Memory[addr:], f.Content)
		}
		f.rx.entries[(f.rx.prod+i)&f.rx.mask] = unix.XDPDesc{Addr: addr, Len: length, Options: options}
	}
	f.fill.release(n)
	f.rx.publish(n)
	return int(n)
}

// Send moves up to n chunks from the TX ring to the completion ring, and returns how
// many.
func (f *Far) Send(n uint32) int {
	n = min(n, f.tx.available(n), f.comp.room(n))
	for i := range n {
		f.comp.entries[(f.comp.prod+i)&f.comp.mask] = f.tx.entries[(f.tx.cons+i)&f.tx.mask].Addr
	}
	f.tx.release(n)
	f.comp.publish(n)
	return int(n)
}
