package xsk

import (
	"fmt"
	"math/bits"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"gswitch/frame"
)

// Socket is one queue of one device. The package comment says which goroutines may call
// which methods.
type Socket struct {
	// Hot: used by every call of the worker.
	fd          int
	rx, tx      descRing
	fill, comp  addrRing
	held        []uint64    // one bit per chunk: the kernel has it
	outstanding int         // chunks transmitted and not completed
	head, tail  frame.Ref   // a chained frame whose end has not arrived
	partial     int         // its chunks so far
	rejected    []frame.Ref // chunks that Transmit accepted but the kernel would not; returned by Complete
	zerocopy    bool
	multibuffer bool
	enableNAPI  bool        // busy polling was requested, and it is not yet known whether the driver supports it
	busyPoll    atomic.Bool // the worker polls the driver
	kicked      uint32      // TX consumer index as of the last Kick
	asked       uint32      // RX index up to which frames have been prefetched
	touched     byte        // keeps prefetching reads from being optimised away
	noted       bool        // Receive takes no more than Note saw
	count       counters

	// Cold.
	umem     *UMEM
	name     string
	netns    string
	ifindex  int
	queue    int
	mode     Mode
	rungs    []Rung
	txBudget int
	mappings [][]byte
	closed   bool
}

// String returns "eth1 queue 0", with the namespace if it is not the process's own.
func (s *Socket) String() string {
	return fmt.Sprintf("%s%s queue %d", s.name, inNetNS(s.netns), s.queue)
}

// FD returns the file descriptor, for registration with the program and for polling.
func (s *Socket) FD() int { return s.fd }

// Queue returns the queue that the socket serves.
func (s *Socket) Queue() int { return s.queue }

// Mode returns the mode obtained.
func (s *Socket) Mode() Mode { return s.mode }

// ZeroCopy reports whether the kernel says that the mode is zero-copy.
func (s *Socket) ZeroCopy() bool { return s.zerocopy }

// Rungs returns the modes tried, the last being the one obtained.
func (s *Socket) Rungs() []Rung { return s.rungs }

// TxBudget returns the largest number of frames that one transmit call sends.
func (s *Socket) TxBudget() int { return s.txBudget }

// MultiBuffer reports whether a frame may span several chunks.
func (s *Socket) MultiBuffer() bool { return s.multibuffer }

// BusyPoll reports whether busy polling was requested and the driver supports it. In copy
// modes that is known once the first frame has arrived.
func (s *Socket) BusyPoll() bool { return s.busyPoll.Load() }

// Outstanding returns how many chunks were transmitted and not completed.
func (s *Socket) Outstanding() int { return s.outstanding }

// Held returns how many chunks the socket owns: in its rings, in the kernel, or waiting
// for Complete or for the rest of their frame.
func (s *Socket) Held() int {
	n := len(s.rejected) + s.partial
	for _, w := range s.held {
		n += bits.OnesCount64(w)
	}
	return n
}

// EachHeld calls f with each chunk that the socket owns.
func (s *Socket) EachHeld(a *frame.Arena, f func(chunk frame.Ref)) {
	for i, w := range s.held {
		for ; w != 0; w &= w - 1 {
			f(frame.Ref(i*64 + bits.TrailingZeros64(w)))
		}
	}
	for _, r := range s.rejected {
		f(r)
	}
	for r := s.head; r != frame.Nil; r = a.Meta(r).Next {
		f(r)
	}
}

// Close gives the queue back to the kernel. The worker must have stopped using the
// socket. Reclaim returns the chunks that the socket holds.
func (s *Socket) Close() error {
	s.umem.mu.Lock()
	defer s.umem.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.umem.unlist(s)
	return s.release()
}

// release unmaps the rings and closes the socket. The mappings keep the socket open, so
// they go first.
func (s *Socket) release() error {
	for _, m := range s.mappings {
		_ = unix.Munmap(m)
	}
	s.mappings = nil
	s.rx, s.tx, s.fill, s.comp = descRing{}, descRing{}, addrRing{}, addrRing{}
	return unix.Close(s.fd)
}

// Reclaim returns to p every chunk that a closed socket still holds, whether in a ring or
// on its way through the kernel, and returns how many. Before Close it does nothing.
func (s *Socket) Reclaim(p *frame.Pool) int {
	if !s.closed {
		return 0
	}
	n := s.Held()
	s.EachHeld(p.Arena, p.FreeChunk)
	clear(s.held)
	s.rejected = s.rejected[:0]
	s.head, s.tail, s.partial = frame.Nil, frame.Nil, 0
	s.outstanding = 0
	return n
}
