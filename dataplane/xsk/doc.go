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
// Who owns a chunk: the frame.Pool, or whoever holds its frame.Ref, or a
// Socket, from Fill to Receive and from Transmit to Complete. A socket marks
// the chunks that it gave to the kernel, so that Reclaim returns every one of
// them after Close, wherever in the kernel it was.
//
// A ring is single producer, single consumer. Its two indices are free running
// 32-bit counters; the difference, modulo 2^32, is how full it is. Each side
// keeps a copy of the other's index and reads the shared one only when the copy
// does not suffice, and publishes its own once per batch.
//
// The hot calls (Receive, Fill, Transmit, Kick, Complete) belong to one
// goroutine, locked to its thread, allocate nothing and take no lock. Stats
// may be called from anywhere.
package xsk
