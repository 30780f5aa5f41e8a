package hull

import (
	"fmt"

	"gswitch/frame"
	"gswitch/scheduler"
)

// Params configure a phantom queue.
type Params struct {
	// Drain is gamma, the share of the link's rate at which the queue drains.
	Drain float64
	// Threshold is the length in bytes above which frames are marked.
	Threshold uint32
}

// Default returns gamma = 0.95, which the paper chooses, and 6 KB: its thresholds
// go from 1 KB at 1 Gb/s upwards.
func Default() Params { return Params{Drain: 0.95, Threshold: 6000} }

// Validate reports the first number that cannot be meant.
func (p *Params) Validate() error {
	switch {
	case !(p.Drain > 0 && p.Drain <= 1):
		return fmt.Errorf("hull: a drain of %v is not above 0 and up to 1", p.Drain)
	case p.Threshold == 0 || p.Threshold > 1<<30:
		return fmt.Errorf("hull: a threshold of %d bytes is not between 1 and 2^30", p.Threshold)
	}
	return nil
}

// Phantom is the phantom queue of a link. It holds nothing: it knows when it
// would be empty.
type Phantom struct {
	clock scheduler.RateClock // what is left of the frames, at the rate of the drain
	most  frame.Time          // the threshold, as time to drain it
}

// NewPhantom returns the empty phantom queue of a link of the given rate in
// bit/s.
func NewPhantom(p *Params, rate uint64) *Phantom {
	q := &Phantom{}
	q.Configure(p, rate)
	return q
}

// Configure changes the parameters. What the queue holds stays.
func (q *Phantom) Configure(p *Params, rate uint64) {
	q.clock.SetRate(max(1, uint64(float64(rate)*p.Drain)))
	q.most = q.clock.Span(p.Threshold)
}

// Depart takes note of a frame that occupies the link for size bytes from an
// instant on, and reports whether it is to be marked: it finds more in the queue
// than the threshold. Instants do not decrease.
func (q *Phantom) Depart(at frame.Time, size uint32) (mark bool) {
	q.clock.Idle(at)
	mark = q.clock.Free()-at > q.most
	q.clock.Charge(size)
	return mark
}

// Bytes returns the length of the queue at an instant.
func (q *Phantom) Bytes(now frame.Time) uint64 {
	if free := q.clock.Free(); free > now {
		return q.clock.Bytes(free - now)
	}
	return 0
}
