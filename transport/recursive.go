package transport

import (
	"fmt"
	"slices"

	"gswitch/frame"
)

// Recursive adds RC3's second loop to a sender (Mittal et al., "Recursively Cautious
// Congestion Control", NSDI 2014; dissertation UCB/EECS-2018-103, chapter 2). While the
// ordinary loop sends from the head of what is posted, as its congestion control allows,
// the second one sends each packet once, from the tail backwards, in levels of lower
// priority than everything else. The ordinary loop skips packets that arrived this way.
// The receiver must keep packets that are out of order.
type Recursive struct {
	// Levels bounds each level, starting with the best: a packet with fewer than
	// Levels[k] packets of its message behind it has level k+1. At most 15.
	Levels []uint64
	// Stop ends the loop after the last level; otherwise packets farther from the tail
	// have the last level, too.
	Stop bool
	// Cross says when it ends other than at the head of the message.
	Cross Crossing
	// Burst is how many packets leave in ascending order before the loop continues with
	// those ahead of them, as with segmentation offload (section 2.6); all have the
	// lowest level among them. 0 and 1: single packets.
	Burst uint32
}

// Crossing is when the second loop ends.
type Crossing uint8

const (
	Meet  Crossing = iota // where it meets the ordinary loop: the NIC asks for packets one by one
	Push                  // not before the head: as if all were queued at once, as in Linux and the authors' simulator
	Flush                 // as Push, but what is acknowledged in the meantime is removed from the queue
)

// Levels of the paper's variants.
var (
	// DesignLevels are quotas of 40, 400 and 4000 packets (section 2.2).
	DesignLevels = []uint64{40, 440, 4440}
	// LinuxLevels compare the distance from the tail with 40, 400, 4000
	// (section 2.4), so that the second level holds 360.
	LinuxLevels = []uint64{40, 400, 4000}
	// FourLevels are quotas of 10, 100, 1000 and 10000 (figure 2.10).
	FourLevels = []uint64{10, 110, 1110, 11110}
	// OneLevel has no bound (figure 2.10).
	OneLevel = []uint64{1 << 62}
)

// maxLevels is the number of levels that four bits of a header distinguish, without 0.
const maxLevels = 15

func (r *Recursive) validate(k *Kind) error {
	switch {
	case r == nil:
		return nil
	case !k.Keeps:
		return fmt.Errorf("transport: the second loop of RC3 needs a receiver that keeps what is out of order: %v does not", k)
	case len(r.Levels) == 0 || len(r.Levels) > maxLevels:
		return fmt.Errorf("transport: %d levels of RC3 are not from 1 to %d", len(r.Levels), maxLevels)
	case !slices.IsSorted(r.Levels) || r.Levels[0] == 0:
		return fmt.Errorf("transport: levels of RC3 %v do not grow", r.Levels)
	}
	return nil
}

// level returns the level, from 1, of a packet with the given number of packets behind
// it.
func (r *Recursive) level(behind uint64) uint8 {
	for k, bound := range r.Levels {
		if behind < bound {
			return uint8(k + 1)
		}
	}
	return uint8(len(r.Levels))
}

// last returns the packet at which a loop that stops is over.
func (r *Recursive) last(tail uint64) uint64 {
	if !r.Stop {
		return 0
	}
	return tail - min(tail, r.Levels[len(r.Levels)-1])
}

// burst returns how many packets leave in ascending order.
func (r *Recursive) burst() uint64 { return uint64(max(r.Burst, 1)) }

// second is the state of the second loop.
type second struct {
	cfg     *Recursive
	chunks  []chunk // messages whose loop is not over; the last one's goes first
	sent    bitmap  // by the second loop, above cum
	arrived bitmap  // as replies to it report, above cum
	end     uint64  // one past the highest packet posted
	stats   SecondStats
}

// chunk is what is left of a message: packets [floor, next), and [at, end) of
// the burst that is under way.
type chunk struct {
	floor, next, tail uint64
	at, end           uint64
	level             uint8 // of the burst
}

// SecondStats are the counters of the second loop.
type SecondStats struct {
	Sent      [maxLevels + 1]uint64 // packets of each level
	Arrived   uint64                // packets that replies to it reported
	Skipped   uint64                // packets that the ordinary loop therefore did not send
	Bumps     uint64                // acknowledgements of what the ordinary loop had not sent
	BadRanges uint64                // replies that make no sense
}

// Posted gives the second loop a message, packets [first, end).
func (s *Sender) Posted(first, end uint64) {
	l := s.second
	if l == nil {
		return
	}
	l.end = end
	if n := ringSize(end - s.cum); n > 64*len(l.sent) {
		l.sent, l.arrived = l.sent.grow(n, s.cum, first), l.arrived.grow(n, s.cum, first)
	}
	l.chunks = append(l.chunks, chunk{floor: first, next: end, tail: end})
}

// PeekLow returns the packet that the second loop may send now, and its level.
// The caller calls SentLow if it leaves.
func (s *Sender) PeekLow() (seq uint64, level uint8, ok bool) {
	l := s.second
	if l == nil {
		return 0, 0, false
	}
	for len(l.chunks) > 0 {
		c := &l.chunks[len(l.chunks)-1]
		c.next = min(c.next, s.cum+MaxFlight) // beyond, the receiver refuses
		floor := c.floor
		switch l.cfg.Cross {
		case Meet:
			floor = max(floor, s.next)
		case Flush:
			floor = max(floor, s.cum)
		}
		if c.at = max(c.at, floor); c.at < c.end && c.tail > s.cum {
			return c.at, c.level, true
		}
		if from := max(floor, l.cfg.last(c.tail), c.next-min(c.next, l.cfg.burst())); from < c.next && c.tail > s.cum {
			return from, l.cfg.level(c.tail - from - 1), true
		}
		l.chunks = l.chunks[:len(l.chunks)-1]
	}
	return 0, 0, false
}

// SentLow says that the packet which PeekLow offered leaves.
func (s *Sender) SentLow(seq uint64, level uint8) {
	l := s.second
	c := &l.chunks[len(l.chunks)-1]
	if c.at >= c.end { // the first of a burst
		c.next, c.end, c.level = seq, c.next, level
	}
	c.at = seq + 1
	if seq >= s.cum {
		l.sent.set(seq)
	}
	l.stats.Sent[level&maxLevels]++
}

// AckLow processes the reply to a packet of the second loop: packets [first, end) have
// arrived. It moves neither window nor timer, and reports no loss. Only if nothing is
// missing any more does it acknowledge everything.
func (s *Sender) AckLow(now frame.Time, first, end uint64) AckResult {
	r := &s.result
	*r = AckResult{}
	l := s.second
	if l == nil || first >= end || end > l.end {
		s.stats.BadAcks++
		if l != nil {
			l.stats.BadRanges++
		}
		return *r
	}
	for q := l.arrived.zero(max(first, s.cum), end); q < end; q = l.arrived.zero(q+1, end) {
		l.arrived.set(q)
		l.stats.Arrived++
	}
	if l.end > s.cum && s.reached() == l.end {
		s.advance(now, l.end, r)
	}
	return *r
}

// reached returns the first packet that is not known to have arrived.
func (s *Sender) reached() uint64 {
	l := s.second
	for q := s.cum; ; {
		if q = l.arrived.zero(q, l.end); q == l.end || !s.has(q) {
			return q
		}
		q++
	}
}

// WasSent reports whether everything that a cumulative acknowledgement cum covers has
// been sent, by either loop.
func (s *Sender) WasSent(cum uint64) bool { return cum <= s.next || s.covered(cum) }

// covered reports whether an acknowledgement beyond what the ordinary loop has
// sent is of what the second loop has.
func (s *Sender) covered(cum uint64) bool {
	l := s.second
	return l != nil && cum <= l.end && l.sent.zero(max(s.next, s.cum), cum) == cum
}

// unsent returns the next packet that the ordinary loop has never sent and that no reply
// to the second one has reported; posted if there is none.
func (s *Sender) unsent(posted uint64) uint64 {
	if s.second == nil {
		return s.next
	}
	return s.second.arrived.zero(s.next, posted)
}

// there reports whether a packet is known to have arrived by the second loop.
func (s *Sender) there(seq uint64) bool {
	return s.second != nil && seq < s.second.end && s.second.arrived.has(seq)
}

// skip moves the ordinary loop over packets that have arrived.
func (s *Sender) skip(to uint64) {
	for ; s.next < to; s.next++ {
		for s.next-s.cum >= uint64(len(s.records)) {
			s.grow()
		}
		*s.record(s.next) = record{flags: skipped}
		s.second.stats.Skipped++
	}
	s.resend = s.next
}

// drop clears the bits below cum.
func (l *second) drop(from, to uint64) {
	l.sent.clearRange(from, min(to, l.end))
	l.arrived.clearRange(from, min(to, l.end))
}

// Second returns what the second loop counted.
func (s *Sender) Second() SecondStats {
	if s.second == nil {
		return SecondStats{}
	}
	return s.second.stats
}
