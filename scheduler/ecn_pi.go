package scheduler

import (
	"fmt"
	"math"

	"gswitch/frame"
)

// PI marks with a probability that a proportional-integral controller moves
// until the queue is of length Ref: every Period
//
//	p += A (q - Ref) - B (q_old - Ref)
//
// within 0 and Max (Hollot, Misra, Towsley, Gong, "On Designing Improved
// Controllers for AQM Routers Supporting TCP Flows", INFOCOM 2001, section V;
// for DCQCN: Zhu, Ghobadi, Misra, Padhye, "ECN or Delay", CoNEXT 2016). The
// zero value is off.
type PI struct {
	Ref    uint32     // bytes
	A, B   float64    // probability per byte; A above B
	Max    float64    // largest probability, so that p is soon back after a burst; 0 = 1
	Period frame.Time // between two updates
}

// maxPIGain bounds A.
const maxPIGain = 1e-4

// Validate reports the first number that cannot be meant.
func (c *PI) Validate() error {
	switch {
	case *c == PI{}:
		return nil
	case c.Ref == 0 || c.Ref > longestPI:
		return fmt.Errorf("ECN: a reference of %d bytes is not between 1 and %d", c.Ref, longestPI)
	case c.Period <= 0:
		return fmt.Errorf("ECN: a period of %v is not positive", c.Period.Duration())
	case !(c.Max >= 0 && c.Max <= 1):
		return fmt.Errorf("ECN: a largest probability of %g is not within 0 and 1", c.Max)
	case !(c.B >= 0 && c.A > c.B && c.A <= maxPIGain):
		return fmt.Errorf("ECN: gains %g and %g: the first must be above the second, the second not negative, both at most %g per byte", c.A, c.B, maxPIGain)
	}
	return nil
}

const (
	piOne     = 1 << 48 // probability 1
	longestPI = 1 << 27 // longer queues count as this
	mostMiss  = 1 << 13 // updates that are made up for one by one
)

// integrator is a PI in the form the hot path reads. It runs when a frame
// leaves: of the updates that were due since the last one, the first sees the
// length of that time as the old one, and for the others the queue stands
// still.
type integrator struct {
	cfg         PI
	gain, trend int64 // A and A - B of piOne
	past        int64 // B
	p, most     int64
	old         int64 // deviation at the last update
	due         frame.Time
}

func newIntegrator(c PI) *integrator {
	a, b := int64(math.Round(c.A*piOne)), int64(math.Round(c.B*piOne))
	most := int64(piOne)
	if c.Max > 0 {
		most = int64(c.Max * piOne)
	}
	return &integrator{cfg: c, most: most, gain: a, past: b, trend: a - b, old: -int64(c.Ref)}
}

func (k *integrator) marks(now frame.Time, left uint64, rng *frame.Rand) bool {
	if now >= k.due {
		k.update(now, left)
	}
	return int64(rng.Uint64()>>16) < k.p
}

func (k *integrator) update(now frame.Time, left uint64) {
	n := int64((now-k.due)/k.cfg.Period) + 1
	k.due += frame.Time(n) * k.cfg.Period
	e := int64(min(left, longestPI)) - int64(k.cfg.Ref)
	k.p = min(max(k.p+k.gain*e-k.past*k.old, 0), k.most)
	k.old = e
	// All further steps are alike, so that only their sum meets the bounds.
	step := min(max(k.trend*e, -piOne), piOne)
	k.p = min(max(k.p+step*min(n-1, mostMiss), 0), k.most)
}
