package orders

import (
	"fmt"
	"math/bits"

	"gswitch/frame"
	"gswitch/scheduler"
)

// RED drops frames that arrive with a probability that rises with the mean
// length of the queue (Floyd and Jacobson, "Random Early Detection Gateways for
// Congestion Avoidance", IEEE/ACM Transactions on Networking 1(4), 1993), gently
// from Max on (Floyd, "Recommendations on using the gentle_ variant of RED",
// 2000).
type RED struct {
	Min, Max uint32  // bytes of the mean length: no drop up to Min, with probability PMax at Max, every frame from twice Max on
	PMax     float64 // 0 to 1
	Weight   uint8   // the mean follows the length by 1/2^Weight of the difference; 9 is the paper's 0.002
	ECN      bool    // mark frames that can be marked in place of dropping them, up to Max
}

// New implements scheduler.Admission.
func (o RED) New(e scheduler.Env) scheduler.Gate {
	return &red{RED: o, rate: e.Rate, rng: frame.NewRand(e.Seed), p: uint64(o.PMax * (1 << 32))}
}

// String implements scheduler.Admission.
func (o RED) String() string { return fmt.Sprintf("red(%d, %d, %g)", o.Min, o.Max, o.PMax) }

type red struct {
	RED
	rate  uint64
	rng   frame.Rand
	p     uint64 // PMax in 1/2^32
	mean  uint64 // bytes, in 1/2^16
	since uint64 // frames since the last drop, while between Min and Max
	idle  frame.Time
	empty bool // since idle
}

// typical is the frame by which time on an empty link is counted.
const typical = 1000 * 8

func (q *red) Admits(now frame.Time, m *frame.Meta, frames int, bytes uint64) scheduler.Verdict {
	if frames == 0 && q.empty {
		q.decay(now - q.idle)
	}
	q.empty = false
	q.mean += (bytes<<16)>>q.Weight - q.mean>>q.Weight
	mean := q.mean >> 16
	if mean < uint64(q.Min) {
		q.since = 0
		return scheduler.Pass
	}
	if mean >= 2*uint64(q.Max) {
		q.since = 0
		return scheduler.Drop
	}
	const one = 1 << 32
	pb := uint64(0)
	if mean < uint64(q.Max) {
		pb = q.p * (mean - uint64(q.Min)) / uint64(q.Max-q.Min)
	} else {
		pb = q.p + (one-q.p)*(mean-uint64(q.Max))/uint64(q.Max)
	}
	// pb / (1 - since*pb) spreads the drops evenly.
	hit := q.since*pb >= one
	if !hit {
		hi, lo := bits.Mul64(q.rng.Uint64()>>32, one-q.since*pb)
		hit = hi == 0 && lo < pb<<32
	}
	if !hit {
		q.since++
		return scheduler.Pass
	}
	q.since = 0
	if q.ECN && mean < uint64(q.Max) {
		return scheduler.Mark
	}
	return scheduler.Drop
}

// decay is what the mean would have become, had so many typical frames found the
// queue empty.
func (q *red) decay(idle frame.Time) {
	if q.rate == 0 || idle <= 0 {
		return
	}
	hi, lo := bits.Mul64(uint64(idle), q.rate)
	n, _ := bits.Div64(hi, lo, typical*1e9)
	for ; n > 0 && q.mean > 0; n-- {
		if q.mean>>q.Weight == 0 {
			q.mean = 0
		}
		q.mean -= q.mean >> q.Weight
	}
}

// Sheds drops nothing: it sees when the queue runs empty.
func (q *red) Sheds(t frame.Time, _ *frame.Meta, left uint64) scheduler.Verdict {
	if left == 0 {
		q.idle, q.empty = t, true
	}
	return scheduler.Pass
}
