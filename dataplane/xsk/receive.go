package xsk

import (
	"sync/atomic"

	"golang.org/x/sys/unix"

	"gswitch/frame"
)

func (s *Socket) hold(r frame.Ref)   { s.held[r>>6] |= 1 << (r & 63) }
func (s *Socket) disown(r frame.Ref) { s.held[r>>6] &^= 1 << (r & 63) }

// Note records what has arrived. Receive then takes no more than the last Note saw.
func (s *Socket) Note() {
	s.noted = true
	s.rx.prod = atomic.LoadUint32(s.rx.producer)
}

// Receive takes up to len(out) frames from the RX ring, in order. The caller owns them. A
// frame in several chunks is chained through Meta.Next, has Meta.Wire of the whole and
// the flag frame.Chained on each chunk that has a successor.
func (s *Socket) Receive(a *frame.Arena, out []frame.Ref) int {
	have := s.rx.prod - s.rx.cons
	if !s.noted {
		have = s.rx.available(uint32(len(out)))
	}
	if have == 0 {
		return 0
	}
	s.ask(a, min(have, uint32(len(out))))
	frames, taken, bytes := 0, uint32(0), uint64(0)
	for ; taken < have && frames < len(out); taken++ {
		d := &s.rx.entries[(s.rx.cons+taken)&s.rx.mask]
		r := a.Adopt(d.Addr, int(d.Len))
		s.disown(r)
		bytes += uint64(d.Len)
		if s.head != frame.Nil || d.Options&unix.XDP_PKT_CONTD != 0 {
			if r = s.chain(a, r, d.Options&unix.XDP_PKT_CONTD != 0); r == frame.Nil {
				continue
			}
		}
		out[frames] = r
		frames++
	}
	s.rx.release(taken)
	s.ask(a, min(have-taken, uint32(len(out)))) // they arrive while these are processed
	if s.enableNAPI {
		s.enableNAPI = false
		s.learnNAPI()
	}
	add(&s.count.rxFrames, uint64(frames))
	add(&s.count.rxBytes, bytes)
	add(&s.count.rxChunks, uint64(taken))
	return frames
}

// ask prefetches the cache lines of the headers that the next n descriptors refer to, and
// of their frames' metadata, unless it has done so already. The kernel wrote the headers
// on another core, and a stage that loads one line after the other would wait long.
func (s *Socket) ask(a *frame.Arena, n uint32) {
	from, to := s.asked, s.rx.cons+n
	if from-s.rx.cons > s.rx.size { // it is behind
		from = s.rx.cons
	}
	for int32(to-from) > 0 {
		var addrs [64]uint64
		k := min(to-from, uint32(len(addrs)))
		for i := range k {
			addrs[i] = s.rx.entries[(from+i)&s.rx.mask].Addr
		}
		s.touched ^= a.PrefetchAll(addrs[:k])
		from += k
	}
	s.asked = from
}

// chain appends the chunk r to the frame that is being received. It returns the whole
// frame once its last chunk is there, and Nil before. A frame may begin in one call of
// Receive and end in the next.
func (s *Socket) chain(a *frame.Arena, r frame.Ref, more bool) frame.Ref {
	if s.head == frame.Nil {
		s.head = r
	} else {
		m := a.Meta(s.tail)
		m.Next = r
		m.Flags |= frame.Chained
		a.Meta(s.head).Wire += a.Meta(r).Wire
	}
	s.tail = r
	if more {
		s.partial++
		return frame.Nil
	}
	r = s.head
	s.head, s.tail, s.partial = frame.Nil, frame.Nil, 0
	return r
}

// refillBatch keeps Fill from publishing a few chunks at a time.
const refillBatch = 64

// Fill fills up the fill ring from p and returns how many chunks it gave. It does nothing
// while fewer than 64 entries (a quarter of a small ring) are free, and stops when p is
// empty.
func (s *Socket) Fill(p *frame.Pool) int {
	batch := min(refillBatch, max(1, s.fill.size/4))
	room := s.fill.room(batch)
	if room < batch {
		return 0
	}
	n := uint32(0)
	for n < room {
		var refs [refillBatch]frame.Ref
		want := min(room-n, refillBatch)
		got := p.AllocAll(refs[:want])
		for _, r := range refs[:got] {
			s.fill.entries[(s.fill.prod+n)&s.fill.mask] = p.ChunkAddr(r)
			s.hold(r)
			n++
		}
		if uint32(got) < want {
			break
		}
	}
	if n > 0 {
		s.fill.publish(n)
	}
	return int(n)
}

// NeedsRxWakeup reports whether the kernel waits for WakeRx before it fills the RX ring:
// the driver ran out of chunks, or polls only on request.
func (s *Socket) NeedsRxWakeup() bool { return s.busyPoll.Load() || s.fill.needsWakeup() }

// WakeRx makes the kernel look at the fill ring. It also finds out that the device is
// down (ErrDown) or removed (ErrGone), which a ring does not report.
func (s *Socket) WakeRx() error {
	add(&s.count.wakeups, 1)
	_, _, e := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(s.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	return verdict(e)
}
