// Package frame is the ground floor: how a frame is held, named, passed on and
// timed. Everything above handles frames as a Ref, a 32-bit index into an
// Arena, never as a pointer, so queues and rings hold plain numbers that the
// garbage collector neither scans nor write-barriers.
//
//	Arena  n chunks of fixed size in one piece of memory + n Meta beside it.
//	       On AF_XDP the memory is the UMEM; in tests and in virtual time it
//	       is ordinary memory. A chunk starts with headroom, so that a header
//	       can be pushed without moving the frame.
//	Meta   what is known of one frame: geometry, parse result, class, ports,
//	       times. Two cache lines, written by the stage that finds it out.
//	Pool   the free chunks that one worker owns. Depot moves surplus between
//	       the pools of workers that share an arena.
//	FIFO   an intrusive list of frames, linked through Meta.QNext.
//	Ring   a single-producer single-consumer ring between two workers.
//
// Ownership: a Ref has exactly one owner at any time. Whoever is handed a Ref
// frees it or hands it on; nothing is reference counted and nothing is shared.
// Frames that must leave by several ports are copied.
//
// Time is int64 nanoseconds since the engine started and is always an
// argument. Rates are bits per second. Nothing here reads a clock, does I/O,
// starts a goroutine or, Depot aside, takes a lock.
package frame
