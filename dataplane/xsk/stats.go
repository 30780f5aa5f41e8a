package xsk

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// counters are written only by the worker, once per batch, and may be read by anyone.
type counters struct {
	rxFrames, rxBytes, rxChunks      atomic.Uint64
	txFrames, txBytes, txInvalid     atomic.Uint64
	kicks, kicked                    atomic.Uint64
	kickAgain, kickDrops, kickNoBufs atomic.Uint64
	wakeups                          atomic.Uint64
}

// add is for the only writer: a plain addition with an atomic store.
func add(c *atomic.Uint64, n uint64) { c.Store(c.Load() + n) }

// Stats are a socket's counters since it was opened.
type Stats struct {
	RxFrames uint64
	RxBytes  uint64
	RxChunks uint64 // more than RxFrames if frames are chained
	TxFrames uint64
	TxBytes  uint64

	TxInvalid uint64 // frames that the kernel would reject: empty, or in too many chunks

	Kicks      uint64 // transmit calls
	KickChunks uint64 // chunks that the kernel took in them; divided by Kicks: the batch size
	KickAgain  uint64 // calls that ended with the budget used up or the device's queue full
	KickDrops  uint64 // calls that ended because the device dropped a frame
	KickNoBufs uint64 // calls that ended because the kernel had no memory
	RxWakeups  uint64 // receive calls

	Kernel KernelStats
}

// KernelStats are the kernel's own counters of a socket (XDP_STATISTICS).
type KernelStats struct {
	RxDropped     uint64 // frames too large for a chunk, or not accepted for another reason
	RxRingFull    uint64 // frames dropped because the RX ring was full
	FillRingEmpty uint64 // times the fill ring was found empty: frames dropped
	RxInvalid     uint64 // bad descriptors in the fill ring
	TxInvalid     uint64 // bad descriptors in the TX ring
	TxRingEmpty   uint64 // times the TX ring was found empty
}

// Stats reads the counters. Any goroutine may call it, also after Close: then the
// kernel's part is missing and an error is returned with the rest.
func (s *Socket) Stats() (Stats, error) {
	c := &s.count
	st := Stats{
		RxFrames: c.rxFrames.Load(), RxBytes: c.rxBytes.Load(), RxChunks: c.rxChunks.Load(),
		TxFrames: c.txFrames.Load(), TxBytes: c.txBytes.Load(), TxInvalid: c.txInvalid.Load(),
		Kicks: c.kicks.Load(), KickChunks: c.kicked.Load(),
		KickAgain: c.kickAgain.Load(), KickDrops: c.kickDrops.Load(), KickNoBufs: c.kickNoBufs.Load(),
		RxWakeups: c.wakeups.Load(),
	}
	// Close holds the lock too: otherwise the descriptor could already belong to another
	// file.
	s.umem.mu.Lock()
	defer s.umem.mu.Unlock()
	if s.closed {
		return st, fmt.Errorf("%s: kernel statistics: the socket is closed", s)
	}
	var k unix.XDPStatistics
	if _, err := getsockopt(s.fd, unix.XDP_STATISTICS, unsafe.Pointer(&k), unsafe.Sizeof(k)); err != nil {
		return st, fmt.Errorf("%s: kernel statistics: %w", s, err)
	}
	st.Kernel = KernelStats{
		RxDropped: k.Rx_dropped, RxRingFull: k.Rx_ring_full, FillRingEmpty: k.Rx_fill_ring_empty_descs,
		RxInvalid: k.Rx_invalid_descs, TxInvalid: k.Tx_invalid_descs, TxRingEmpty: k.Tx_ring_empty_descs,
	}
	return st, nil
}
