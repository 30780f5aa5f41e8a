package orders

import (
	"fmt"
	"math/bits"

	"gswitch/frame"
	"gswitch/scheduler"
)

// Calendar paces flows: each leaves at no more than a rate, however it came, and
// frames leave in the order in which they are due (Saeed et al., "Carousel:
// Scalable Traffic Shaping at End Hosts", SIGCOMM 2017; exact, where Carousel has
// slots of time). Flows are distinguished by hash.
type Calendar struct {
	Rate  uint64 // of each flow in bit/s
	Flows int    // hash buckets; 0 = 1024
}

// New implements scheduler.Order.
func (o Calendar) New(scheduler.Env) scheduler.Discipline {
	if o.Flows == 0 {
		o.Flows = 1024
	}
	return &calendar{rate: max(o.Rate, 1), free: make([]frame.Time, o.Flows)}
}

// String implements scheduler.Order.
func (o Calendar) String() string { return fmt.Sprintf("calendar(%d)", o.Rate) }

type calendar struct {
	ranked
	rate uint64
	free []frame.Time // when each flow may send next
}

// Enqueue makes the instant at which a frame is due its rank.
func (q *calendar) Enqueue(a *frame.Arena, now frame.Time, r frame.Ref) {
	m := a.Meta(r)
	f := &q.free[uint64(m.Hash*2654435769)*uint64(len(q.free))>>32]
	at := max(now, *f)
	hi, lo := bits.Mul64(uint64(m.Wire)*8, 1e9)
	span, _ := bits.Div64(hi%q.rate, lo, q.rate)
	*f = at + frame.Time(span)
	m.Rank = int64(at)
	q.ranked.Enqueue(a, now, r)
}

// HeadAt implements scheduler.Timed.
func (q *calendar) HeadAt() frame.Time {
	if q.h.len() == 0 {
		return frame.Never
	}
	return frame.Time(q.h.first().rank)
}
