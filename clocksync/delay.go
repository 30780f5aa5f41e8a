package clocksync

import (
	"slices"

	"gswitch/frame"
)

// Delay measures how long a link takes, by requests and responses between
// neighbours (IEEE 1588-2019 11.4). The links of a fabric are symmetric. The
// value is the median of the last measurements, so that single ones that
// were delayed do not count. Half of a measurement is what the neighbour reports:
// later values are held against the one that was found when the link came up (Moved).
type Delay struct {
	samples [8]frame.Time
	n       int
	next    int
	fixed   bool

	late frame.Time // by how much samples may be too long

	fresh int        // samples since the link came up, as many as there is room for
	first frame.Time // the median of the first of them
	known bool       // there is such a median, of this link or of the one before

	pending  bool
	sequence uint16
	sent     frame.Time
}

// Fix sets a delay that is known, as in a network whose cables are described.
func (d *Delay) Fix(v frame.Time) { *d = Delay{fixed: true, n: 1, samples: [8]frame.Time{v}} }

// Request begins a measurement: the request with the sequence number that it
// returns leaves at sent.
func (d *Delay) Request(sent frame.Time) uint16 {
	d.sequence++
	d.sent, d.pending = sent, true
	return d.sequence
}

// Left says that the request left at another instant than expected.
func (d *Delay) Left(sent frame.Time) { d.sent = sent }

// Response ends it: the response began to arrive at received, or up to late before,
// and spent turnaround at the neighbour, by the neighbour's clock. It reports whether it was
// the one that is waited for, and made sense.
func (d *Delay) Response(sequence uint16, received, late, turnaround frame.Time) bool {
	if !d.pending || d.fixed || sequence != d.sequence {
		return false
	}
	d.pending = false
	twice := received - d.sent - turnaround
	if twice < 0 || turnaround < 0 {
		return false
	}
	d.samples[d.next], d.late = twice/2, max(d.late, late)
	d.next = (d.next + 1) % len(d.samples)
	d.n = min(d.n+1, len(d.samples))
	if d.fresh < len(d.samples) {
		if d.fresh++; d.fresh == len(d.samples) {
			d.first, d.known = d.median(), true
		}
	}
	return true
}

// Renew says that the link came up, and may be another one: what its delay is held
// against is measured anew. Until that is done the value is held against what it was.
func (d *Delay) Renew() { d.fresh = 0 }

// Late is by how much the value may be too long, since its stamps came late.
func (d *Delay) Late() frame.Time { return d.late }

// steady is by how much measurements differ on a link that is what it was, since stamps
// are whole nanoseconds: part of EpsHop.
const steady = 2 * frame.Nanosecond

// Moved is by how much the value differs from that of the link when it came up. The
// cable is the same, so which is right is not known: a neighbour that claims of its
// answer that it took longer than it did makes the link shorter than it is. 0 where
// that is no more than stamps explain.
func (d *Delay) Moved() frame.Time {
	if !d.known {
		return 0
	}
	if m := max(d.median()-d.first, d.first-d.median()); m > steady {
		return m
	}
	return 0
}

// Samples is how many measurements the value is of.
func (d *Delay) Samples() int { return d.n }

// Value returns the delay, and whether any measurement was made.
func (d *Delay) Value() (frame.Time, bool) {
	if d.n == 0 {
		return 0, false
	}
	return d.median(), true
}

// median is that of one sample or more.
func (d *Delay) median() frame.Time {
	v := d.samples
	s := v[:d.n]
	slices.Sort(s)
	return s[(len(s)-1)/2]
}

// Offset is one exchange of four stamps between neighbours a and b in full: a
// sent at t1a, b received at t1b, b sent at t2b, a received at t2a (section
// 3.3.1). It returns the delay of the link and what is to be added to b's clock.
func Offset(t1a, t1b, t2b, t2a frame.Time) (delay, offset frame.Time) {
	delay = ((t2a - t1a) - (t2b - t1b)) / 2
	return delay, t1a + delay - t1b
}
