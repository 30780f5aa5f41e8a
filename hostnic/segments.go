package hostnic

import "gswitch/frame"

// segments are bursts of several frames that are paced and timed as one.
type segments struct {
	size uint32 // payload bytes, 0: frames are paced one by one
	// perByte is the ns that a byte takes at the rate of a segment's frames, 0
	// if they follow each other; the next may leave at next then.
	perByte float64
	next    frame.Time
	got     uint32 // of the one under way
	open    bool
	due     frame.Time // when the one under way could have begun, unset before
	wire    uint32     // bytes of it on the wire
	rtx     bool       // a frame of it was sent again

	ring    []segment // sent, not acknowledged
	head, n uint32
	pushed  uint64 // segments so far
	clean   uint64 // those before give no sample: a frame was sent again meanwhile
}

const unset frame.Time = -1

type segment struct {
	last  uint64 // packet
	due   frame.Time
	bytes uint32 // on the wire
}

func (s *segments) reset(size uint32, rate uint64) {
	*s = segments{size: size, due: unset, ring: s.ring}
	if rate != 0 {
		s.perByte = 8e9 / float64(rate)
	}
}

// depart notes that a frame leaves at t.
func (s *segments) depart(t frame.Time, bytes uint32) {
	if s.perByte != 0 {
		s.next = t + frame.Time(float64(bytes)*s.perByte)
	}
}

// due returns when the next frame of q may leave: at its pace, within a segment
// at that of the segment's frames.
func (q *queuePair) due() frame.Time {
	if q.seg.open {
		return q.seg.next
	}
	return max(q.lanes[inTurn].pace.at, q.seg.next)
}

func (s *segments) at(i uint32) *segment { return &s.ring[(s.head+i)&uint32(len(s.ring)-1)] }

// sent notes a frame of the segment under way and reports whether it is the
// last one. A retransmission ends it: samples of it would be ambiguous.
func (s *segments) sent(seq uint64, payload, bytes uint32, rtx, lastOfMessage bool) (over bool) {
	s.open = true
	s.got += payload
	s.wire += bytes
	if rtx {
		s.rtx, s.clean = true, s.pushed
	}
	if s.got < s.size && !lastOfMessage {
		return false
	}
	if !s.rtx {
		s.push(segment{last: seq, due: s.due, bytes: s.wire})
	}
	s.open, s.got, s.wire, s.rtx, s.due = false, 0, 0, false, unset
	return true
}

func (s *segments) push(g segment) {
	if int(s.n) == len(s.ring) {
		ring := make([]segment, max(8, 2*len(s.ring)))
		for i := uint32(0); i < s.n; i++ {
			ring[i] = *s.at(i)
		}
		s.ring, s.head = ring, 0
	}
	s.n++
	s.pushed++
	*s.at(s.n - 1) = g
}

// acked takes out the segments below cum and gives the sample of the last
// that was complete.
func (s *segments) acked(now frame.Time, cum uint64) (rtt frame.Time, bytes uint32) {
	for s.n > 0 && s.at(0).last < cum {
		if g := s.at(0); s.pushed-uint64(s.n) >= s.clean {
			rtt, bytes = now-g.due, g.bytes
		}
		s.head = (s.head + 1) & uint32(len(s.ring)-1)
		s.n--
	}
	return rtt, bytes
}
