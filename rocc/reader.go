package rocc

import (
	"gswitch/frame"
	"gswitch/notice"
)

// follower is a reaction point: what hosts give fair rates to.
type follower interface {
	// OnFairRate takes the rate in bit/s that a congestion point allows since its
	// update of the given number, and the time between two updates.
	OnFairRate(now frame.Time, point uint64, update uint32, rate float64, period frame.Time)
}

// reader reads fair rates at a host, and readings of queues, of which it works
// them out: all flows of the host share the controller of a point.
type reader struct {
	rate      Notice
	reading   Reading
	isReading bool // what was decoded last
	followers Followers
}

func init() {
	notice.Register(notice.Kind{Name: "rocc", New: func() notice.Reader { return new(reader) }})
}

// Decode implements notice.Reader.
func (r *reader) Decode(msg []byte, icmp uint8) (quote []byte, ours bool, err error) {
	r.isReading = false
	if quote, err = r.rate.Decode(msg, icmp); err != ErrForeign {
		return quote, true, err
	}
	r.isReading = true
	quote, err = r.reading.Decode(msg, icmp)
	return quote, err != ErrForeign, err
}

// Reacts implements notice.Reader.
func (r *reader) Reacts(point any) bool { _, ok := point.(follower); return ok }

// React implements notice.Reader.
func (r *reader) React(now frame.Time, point any) {
	f := point.(follower)
	if r.isReading {
		f.OnFairRate(now, r.reading.Point(), r.reading.Sequence, r.followers.Take(now, &r.reading), r.reading.Period())
		return
	}
	f.OnFairRate(now, r.rate.Point(), r.rate.Sequence, r.rate.Rate(), r.rate.Period())
}

// OfFrame implements notice.Reader.
func (r *reader) OfFrame() bool { return false }
