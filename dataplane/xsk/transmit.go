package xsk

import (
	"golang.org/x/sys/unix"

	"gswitch/frame"
)

// maxChunks is the largest number of chunks of a transmitted frame, of what the kernel's
// copy mode takes for every device: it loses the chunks of a frame that has more. A packet
// has MAX_SKB_FRAGS fragments, which is at least 17. For most devices the first chunk goes
// into the packet's head, which makes 18 (Documentation/networking/af_xdp.rst). For those
// that take no data in the head (IFF_TX_SKB_NO_LINEAR, such as virtio_net) the first chunk
// is a fragment as well: xsk_build_skb_zerocopy in net/xdp/xsk.c.
const maxChunks = 17

// Transmit posts frames to the TX ring, in order, and returns how many it accepted: fewer
// than len(v) if the ring is full. The socket owns these until Complete. Nothing is sent
// before Kick. Frames that the kernel would reject (empty, or in too many chunks) are
// accepted, counted in Stats.TxInvalid and returned by Complete, because the kernel would
// never give them back.
func (s *Socket) Transmit(a *frame.Arena, v []frame.Ref) int {
	room := s.tx.room(uint32(len(v)))
	posted, taken, bytes, invalid := uint32(0), 0, uint64(0), 0
	for ; taken < len(v) && posted < room; taken++ {
		r := v[taken]
		m := a.Meta(r)
		if m.Next == frame.Nil && m.Len != 0 {
			s.tx.entries[(s.tx.prod+posted)&s.tx.mask] = unix.XDPDesc{Addr: a.Addr(r), Len: uint32(m.Len)}
			s.hold(r)
			posted++
			bytes += uint64(m.Len)
			continue
		}
		n, ok := s.measure(a, r)
		if !ok {
			if len(s.rejected)+n > cap(s.rejected) {
				break
			}
			s.reject(a, r)
			invalid++
			continue
		}
		if n := uint32(n); n > room-posted {
			if room = s.tx.room(posted + n); n > room-posted {
				break
			}
		}
		bytes += s.post(a, r, posted)
		posted += uint32(n)
	}
	if posted > 0 {
		s.tx.publish(posted)
		s.outstanding += int(posted)
		add(&s.count.txFrames, uint64(taken-invalid))
		add(&s.count.txBytes, bytes)
	}
	if invalid > 0 {
		add(&s.count.txInvalid, uint64(invalid))
	}
	return taken
}

// measure counts the chunks of a frame and reports whether the kernel accepts it.
func (s *Socket) measure(a *frame.Arena, r frame.Ref) (n int, ok bool) {
	ok = true
	for ; r != frame.Nil; r = a.Meta(r).Next {
		n++
		ok = ok && a.Meta(r).Len != 0
	}
	return n, ok && n <= maxChunks && (n == 1 || s.multibuffer)
}

// post writes the descriptors of a frame in several chunks, starting at entry at, and
// returns its bytes.
func (s *Socket) post(a *frame.Arena, r frame.Ref, at uint32) (bytes uint64) {
	for r != frame.Nil {
		m := a.Meta(r)
		d := unix.XDPDesc{Addr: a.Addr(r), Len: uint32(m.Len)}
		if m.Next != frame.Nil {
			d.Options = unix.XDP_PKT_CONTD
		}
		s.tx.entries[(s.tx.prod+at)&s.tx.mask] = d
		s.hold(r)
		at++
		bytes += uint64(m.Len)
		r = m.Next
	}
	return bytes
}

// reject keeps the chunks of a frame for Complete.
func (s *Socket) reject(a *frame.Arena, r frame.Ref) {
	for ; r != frame.Nil; r = a.Meta(r).Next {
		s.rejected = append(s.rejected, r)
	}
}

// Kick makes the kernel transmit the descriptors in the TX ring, up to the budget, if it
// waits for that: in copy mode while it has not taken all descriptors, in zero-copy mode
// while the driver sleeps and frames are outstanding. Otherwise it makes no system call.
// The caller repeats it while frames are outstanding, since a kick may send only some of
// them. The error is ErrDown or ErrGone, or one that should not occur; temporary
// shortages in the kernel are counted, not returned.
//
// It is a raw system call, which does not notify the Go scheduler, so it must be called
// from a goroutine locked to its thread.
func (s *Socket) Kick() error {
	if s.outstanding == 0 || !s.tx.needsWakeup() || !s.zerocopy && s.tx.consumed() == s.tx.prod {
		return nil
	}
	_, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(s.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	add(&s.count.kicks, 1)
	consumed := s.tx.consumed()
	add(&s.count.kicked, uint64(consumed-s.kicked))
	s.kicked = consumed
	switch e {
	case 0:
		return nil
	case unix.EAGAIN: // the budget is used up, or the device's queue is full
		add(&s.count.kickAgain, 1)
		return nil
	case unix.EBUSY: // the device dropped a frame; the descriptors after it wait
		add(&s.count.kickDrops, 1)
		return nil
	case unix.ENOBUFS, unix.ENOMEM: // no memory for a packet
		add(&s.count.kickNoBufs, 1)
		return nil
	}
	return verdict(e)
}

// Complete returns the chunks that the kernel has sent to p, and how many.
func (s *Socket) Complete(p *frame.Pool) int {
	if len(s.rejected) > 0 {
		s.returnRejected(p)
	}
	if s.outstanding == 0 {
		return 0
	}
	n := s.comp.available(uint32(s.outstanding))
	if n == 0 {
		return 0
	}
	for i := uint32(0); i < n; {
		var refs [64]frame.Ref
		v := refs[:min(n-i, uint32(len(refs)))]
		for k := range v {
			v[k] = p.RefOf(s.comp.entries[(s.comp.cons+i)&s.comp.mask])
			s.disown(v[k])
			i++
		}
		p.FreeChunks(v)
	}
	s.comp.release(n)
	s.outstanding -= int(n)
	return int(n)
}

func (s *Socket) returnRejected(p *frame.Pool) {
	for _, r := range s.rejected {
		p.FreeChunk(r)
	}
	s.rejected = s.rejected[:0]
}

// verdict turns the errno of a wake-up call into the error for the caller. It allocates
// nothing.
func verdict(e unix.Errno) error {
	switch e {
	case 0, unix.EAGAIN:
		return nil
	case unix.ENETDOWN:
		return ErrDown
	case unix.ENXIO, unix.ENODEV:
		return ErrGone
	}
	return e
}
