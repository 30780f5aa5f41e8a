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

// etherTypePTP is the EtherType of frames that get stamps (IEEE 1588-2019 annex E).
const etherTypePTP = 0x88f7

// arrivals carries the times at which PTP frames reach the far end of an emulated link
// from the worker that puts them on it to the one that receives them. Frames are
// recognised by their bytes: a frame that is lost or damaged on the way leaves an entry
// that is never read.
type arrivals struct {
	ring       [64]arrival
	head, tail atomic.Uint32
}

type arrival struct {
	key uint64
	at  frame.Time
}

// Stamp sets Meta.Stamp of PTP frames that arrive at a port, as a device with hardware
// time stamps would: to the time at which their last bit reached the far end of the
// emulated link of from, however late the workers are and however long the kernel takes
// between the two. Frames for which that is unknown get no stamp. Both are ports of the
// engine, joined by a cable with no other ends, and from has a link rate.
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

// enter records when a frame of the node will arrive, if it is a PTP frame.
func (s *arrivals) enter(a *frame.Arena, r frame.Ref, at frame.Time) {
	if s == nil || a.Meta(r).EtherType != etherTypePTP {
		return
	}
	tail := s.tail.Load()
	if tail-s.head.Load() == uint32(len(s.ring)) {
		return // it arrives without a stamp
	}
	s.ring[tail%uint32(len(s.ring))] = arrival{keyOf(a.Bytes(r)), at}
	s.tail.Store(tail + 1)
}

// stamp writes arrival times to PTP frames. While none is in flight it examines no frame.
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

// find returns the arrival time of the frame with a key, and the position after its
// entry: earlier frames will not arrive any more. If there is no such entry, it skips all
// entries, so that a ring filled by lost frames is emptied.
func (s *arrivals) find(head, tail uint32, key uint64) (uint32, frame.Time) {
	for k := head; k != tail; k++ {
		if x := &s.ring[k%uint32(len(s.ring))]; x.key == key {
			return k + 1, x.at
		}
	}
	return tail, 0
}

// beginning returns an instant and the value of CLOCK_MONOTONIC at it in nanoseconds,
// with uncertainty within. The XDP program's stamps are in this clock.
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

// stamp writes arrival times to PTP frames: the time that the XDP program recorded, or
// the earlier one of the hardware if nic, which follows its clock, is not nil. A stamp is
// never earlier than the kernel's or hardware's time: the uncertainty between the clocks
// is added. Frames arrive until the device is polled, which is after now. If the nodes'
// clock is slowed or stopped, a time after now is not theirs and is not used. Frames with
// and without a stamp are counted.
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

// nodes returns the nodes' time at t real nanoseconds after the start.
func (c *clock) nodes(t int64) frame.Time {
	if c.slowed {
		return c.slow(time.Duration(t))
	}
	return frame.Time(t)
}

// Offsets of the correction field (IEEE 1588-2019 13.3). The destination address is that
// of messages between neighbours, which bridges do not forward.
const correctionAt = 14 + 8

var peerAddress = [6]byte{0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e}

// correct adds, to the correction of the PTP messages among the frames that the device is
// about to get, the time that they took to get here: since the loop started, or since
// they arrived over the emulated link.
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
