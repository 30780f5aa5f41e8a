package dataplane

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc64"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"gswitch/bpf"
	"gswitch/frame"
)

// etherTypePTP is that of the frames that get stamps (IEEE 1588-2019 annex E).
const etherTypePTP = 0x88f7

// arrivals carries the instants at which PTP frames reach the far end of an
// emulated link from the worker that lets them into it to the one that receives
// them. It knows frames by their bytes: what is lost or damaged on the way leaves
// an entry that is never read.
type arrivals struct {
	ring       [64]arrival
	head, tail atomic.Uint32
}

type arrival struct {
	key uint64
	at  frame.Time
}

// Stamp lets PTP frames that arrive at a port bear Meta.Stamp, as they would from
// a device that stamps them: when their last bit reached the far end of the
// emulated link of from, however late the workers are and whatever the kernel
// takes between the two. Those of which that is not known have none. Both are ports of
// the engine, to which a cable leads that has no other end, and from has a link rate.
func (e *Engine) Stamp(from, to *Port) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.stopped:
		return ErrStopped
	case e.running:
		return errors.New("frames can be stamped from the start on only")
	case !from.spec.Rated:
		return errors.New("port " + from.spec.Name + " has no link rate: it is not known when frames reach the far end of it")
	}
	a := &arrivals{}
	from.line.stamps, to.line.stamped = a, a
	return nil
}

var crcTable = crc64.MakeTable(crc64.ECMA)

func keyOf(b []byte) uint64 { return crc64.Checksum(b, crcTable) }

// enter notes when a frame of the node will have come, if it is one of PTP.
func (s *arrivals) enter(a *frame.Arena, r frame.Ref, at frame.Time) {
	if s == nil || a.Meta(r).EtherType != etherTypePTP {
		return
	}
	tail := s.tail.Load()
	if tail-s.head.Load() == uint32(len(s.ring)) {
		return // it arrives without
	}
	s.ring[tail%uint32(len(s.ring))] = arrival{keyOf(a.Bytes(r)), at}
	s.tail.Store(tail + 1)
}

// stamp writes to frames of PTP when they came. While none is under way it looks
// at no frame.
func (s *arrivals) stamp(now frame.Time, a *frame.Arena, v []frame.Ref) {
	head, tail := s.head.Load(), s.tail.Load()
	if head == tail {
		return
	}
	for _, r := range v {
		b := a.Bytes(r)
		if len(b) < 14 || b[12] != etherTypePTP>>8 || b[13] != etherTypePTP&0xff {
			continue
		}
		var at frame.Time
		head, at = s.find(head, tail, keyOf(b))
		a.Meta(r).Stamp = min(at, now)
	}
	s.head.Store(head)
}

// find returns when the frame of a key came, and the entry behind it: those before
// do not come any more. Where there is none, all entries are of no use: so a ring
// that lost frames have filled is emptied.
func (s *arrivals) find(head, tail uint32, key uint64) (uint32, frame.Time) {
	for k := head; k != tail; k++ {
		if x := &s.ring[k%uint32(len(s.ring))]; x.key == key {
			return k + 1, x.at
		}
	}
	return tail, 0
}

// beginning returns an instant, and what CLOCK_MONOTONIC said then, in nanoseconds, give or
// take within: the clock of the stamps that the XDP program writes.
func beginning() (start time.Time, monotonic, within int64, err error) {
	least := time.Duration(1<<63 - 1)
	for range 8 {
		var t unix.Timespec
		before := time.Now()
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
			return start, 0, 0, fmt.Errorf("CLOCK_MONOTONIC: %w", err)
		}
		if took := time.Since(before); took < least {
			start, monotonic, least = before, t.Nano()-int64(took/2), took
		}
	}
	return start, monotonic, int64(least+1) / 2, nil
}

// stamp writes to frames of PTP when they came, as the XDP program has noted it, or the
// hardware before, whose clock nic is followed; nil: there is none. No stamp is earlier than
// the kernel's or hardware's: what the two clocks are known to is added. Frames come until
// the device is asked, which is behind now; only where time stands is such an instant of
// another clock than the nodes', and not used. It counts the frames with and without an
// instant.
func (c *clock) stamp(now frame.Time, a *frame.Arena, v []frame.Ref, to *PortCounters, nic *follower) {
	for _, r := range v {
		b := a.Bytes(r)
		if len(b) < 14 || b[12] != etherTypePTP>>8 || b[13] != etherTypePTP&0xff {
			continue
		}
		handed, seen := bpf.Stamp(a.Before(r, bpf.StampLen))
		if handed == 0 {
			to.Unstamped++
			continue
		}
		to.Stamped++
		at := int64(handed)
		if nic != nil && seen != 0 {
			if t, ok := nic.monotonic(int64(seen), at); ok {
				at = t
				to.StampedByNIC++
			}
		}
		if t := c.nodes(at - c.began + c.within); t > 0 && (t <= now || !c.slowed && t <= c.now()+frame.Time(c.within)) {
			a.Meta(r).Stamp = t
		}
	}
}

// nodes is the time of the nodes so many real nanoseconds after the start.
func (c *clock) nodes(t int64) frame.Time {
	if c.slowed {
		return c.slow(time.Duration(t))
	}
	return frame.Time(t)
}

// Offsets of what is corrected (IEEE 1588-2019 13.3): the address is that of
// messages between neighbours, which no bridge passes on.
const correctionAt = 14 + 8

var peerAddress = [6]byte{0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e}

// correct adds to the correction of messages of PTP among the frames that the device
// is about to get how long they took to come here: since the loop began, or since
// they came through the emulated link.
func (w *Worker) correct(now frame.Time, l *line) {
	for _, r := range l.held[l.fixed:l.nheld] {
		m := w.arena.Meta(r)
		if m.EtherType != etherTypePTP {
			continue
		}
		b := w.arena.Bytes(r)
		if len(b) < correctionAt+8 || [6]byte(b) != peerAddress {
			continue
		}
		due := now
		if l.delay != nil {
			due = m.Arrival
		}
		p := b[correctionAt:]
		binary.BigEndian.PutUint64(p, binary.BigEndian.Uint64(p)+uint64(max(0, w.engine.Now()-due))<<16)
	}
	l.fixed = l.nheld
}
