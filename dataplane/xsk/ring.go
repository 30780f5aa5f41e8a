package xsk

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// indices are the shared and cached indices of one ring. We own one of the two, depending
// on the ring: we produce into fill and TX, and consume from RX and completion.
type indices struct {
	producer *uint32 // shared with the kernel
	consumer *uint32 // shared with the kernel
	flags    *uint32 // shared, written by the kernel
	prod     uint32  // ours, or the cached copy of the kernel's
	cons     uint32  // ours, or the cached copy of the kernel's
	size     uint32  // entries, a power of two
	mask     uint32
}

// descRing is an RX or TX ring, addrRing a fill or completion ring.
type (
	descRing struct {
		indices
		entries []unix.XDPDesc
	}
	addrRing struct {
		indices
		entries []uint64
	}
)

// room returns how many entries the producer may write. It reads the consumer's index
// again only if the cached one allows fewer than want.
func (x *indices) room(want uint32) uint32 {
	free := x.size - (x.prod - x.cons)
	if free < want {
		// Acquire: the consumer has read its entries before it moved on.
		x.cons = atomic.LoadUint32(x.consumer)
		free = x.size - (x.prod - x.cons)
	}
	return free
}

// publish hands n written entries to the consumer. The store is a release:
// the entries are visible before the index is.
func (x *indices) publish(n uint32) {
	x.prod += n
	atomic.StoreUint32(x.producer, x.prod)
}

// available returns how many entries the consumer may read. It reads the producer's index
// again only if the cached one allows fewer than want.
func (x *indices) available(want uint32) uint32 {
	have := x.prod - x.cons
	if have < want {
		// Acquire: the entries were written before the producer moved on.
		x.prod = atomic.LoadUint32(x.producer)
		have = x.prod - x.cons
	}
	return have
}

// release hands n read entries back to the producer.
func (x *indices) release(n uint32) {
	x.cons += n
	atomic.StoreUint32(x.consumer, x.cons)
}

// consumed returns the consumer's index: the number of entries that it has taken so far,
// modulo 2^32.
func (x *indices) consumed() uint32 { return atomic.LoadUint32(x.consumer) }

// needsWakeup reports whether the kernel waits for a system call before it
// looks at the ring (XDP_USE_NEED_WAKEUP).
func (x *indices) needsWakeup() bool {
	return atomic.LoadUint32(x.flags)&unix.XDP_RING_NEED_WAKEUP != 0
}

// overlay points the indices at the ring's memory, which is laid out as off says.
func overlay(mem []byte, off unix.XDPRingOffset, size uint32) indices {
	at := func(o uint64) *uint32 { return (*uint32)(unsafe.Pointer(&mem[o])) }
	x := indices{producer: at(off.Producer), consumer: at(off.Consumer), flags: at(off.Flags), size: size, mask: size - 1}
	x.prod, x.cons = atomic.LoadUint32(x.producer), atomic.LoadUint32(x.consumer)
	return x
}

func newDescRing(mem []byte, off unix.XDPRingOffset, size uint32) descRing {
	return descRing{overlay(mem, off, size), unsafe.Slice((*unix.XDPDesc)(unsafe.Pointer(&mem[off.Desc])), size)}
}

func newAddrRing(mem []byte, off unix.XDPRingOffset, size uint32) addrRing {
	return addrRing{overlay(mem, off, size), unsafe.Slice((*uint64)(unsafe.Pointer(&mem[off.Desc])), size)}
}
