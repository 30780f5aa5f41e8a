// Package xsk holds AF_XDP sockets: the rings through which frames pass
// between a network device queue and this process without a copy in user
// space.
//
//	UMEM    one piece of memory, the arena of all frames. Every socket of a
//	        worker group lives on the same UMEM, so a frame that came in by
//	        one port leaves by another as a descriptor, not as bytes.
//	Socket  one queue of one device, with four rings:
//
//	          Fill ─► fill ring ─► kernel ─► RX ring ─► Receive
//	          Transmit ─► TX ring ─► kernel ─► completion ring ─► Complete
//
//	Port    all sockets of a device with the XDP program that feeds them, in
//	        the best mode that the device takes.
//
// A chunk is owned by the frame.Pool, or by the holder of its frame.Ref, or by a Socket,
// from Fill to Receive and from Transmit to Complete. A socket marks the chunks that it
// gave to the kernel, so that Reclaim returns every one of them after Close, wherever in
// the kernel it was.
//
// A ring is single producer, single consumer. Its two indices are free-running 32-bit
// counters whose difference, modulo 2^32, is the number of entries in use. Each side
// caches the other's index, reads the shared one only when the cached one does not
// suffice, and publishes its own once per batch.
//
// The hot calls (Receive, Fill, Transmit, Kick, Complete) belong to one goroutine, locked
// to its thread. They allocate nothing and take no lock. Stats may be called from any
// goroutine.
package xsk
