package orders

import (
	"fmt"
	"math"

	"gswitch/frame"
	"gswitch/scheduler"
)

// CoDel drops at the head while every frame has waited too long for an interval
// (Nichols et al., "Controlled Delay Active Queue Management", RFC 8289).
type CoDel struct {
	Target   frame.Time // of the wait; RFC 8289 section 4.3 recommends 5 ms,
	Interval frame.Time // and 100 ms: the longest usual round-trip time
	ECN      bool       // mark frames that can be marked in place of dropping them
}

// New implements scheduler.Admission.
func (o CoDel) New(scheduler.Env) scheduler.Gate { return &codel{CoDel: o} }

// String implements scheduler.Admission.
func (o CoDel) String() string {
	return fmt.Sprintf("codel(%v, %v)", o.Target.Duration(), o.Interval.Duration())
}

type codel struct {
	CoDel
	codelState
}

func (q *codel) Admits(frame.Time, *frame.Meta, int, uint64) scheduler.Verdict { return scheduler.Pass }

func (q *codel) Sheds(t frame.Time, m *frame.Meta, left uint64) scheduler.Verdict {
	return q.judge(&q.CoDel, t, m, left)
}

// codelState is the state machine of RFC 8289 section 5, for one queue or flow.
type codelState struct {
	above    frame.Time // when the wait will have been above the target for an interval; 0: it is not
	next     frame.Time // of the next drop
	count    uint32     // drops since dropping began
	last     uint32     // count when it began
	dropping bool
	after    uint8 // what the frame behind one that was dropped decides
}

const (
	afterNothing uint8 = iota
	afterFirst         // the frame behind the first drop leaves (section 5.5)
	afterAnother       // when the next drop is due depends on the frame behind the last
)

// maxPacket is what may wait without being a queue: a full frame.
const maxPacket = 1514

// judge decides on a frame that would leave at t, with left bytes behind it: what the dequeue
// of RFC 8289 does in a loop, one frame at a time.
func (c *codelState) judge(o *CoDel, t frame.Time, m *frame.Meta, left uint64) scheduler.Verdict {
	over, marks := c.over(o, t, t-m.Depart, left), o.ECN && m.Flags&frame.IsECT != 0
	switch c.after {
	case afterFirst:
		c.after = afterNothing
		return scheduler.Pass
	case afterAnother:
		c.after = afterNothing
		if c.dropping = over; over {
			c.next = o.law(c.next, c.count)
		}
	}
	switch {
	case c.dropping && !over:
		c.dropping = false
	case c.dropping && t >= c.next:
		c.count++
		return c.drop(o, marks, left, afterAnother)
	case !c.dropping && over:
		c.dropping = true
		again := c.count - c.last
		c.count = 1
		if again > 1 && t-c.next < 16*o.Interval {
			c.count = again
		}
		c.next = o.law(t, c.count)
		c.last = c.count
		return c.drop(o, marks, left, afterFirst)
	}
	return scheduler.Pass
}

// drop notes that the frame goes. One that is marked leaves all the same, and
// there is none behind it to look at.
func (c *codelState) drop(o *CoDel, marks bool, left uint64, after uint8) scheduler.Verdict {
	if marks {
		if after == afterAnother {
			c.next = o.law(c.next, c.count)
		}
		return scheduler.Mark
	}
	if c.after = after; left == 0 { // dequeue of an empty queue
		c.above, c.after = 0, afterNothing
		if after == afterAnother {
			c.dropping = false
		}
	}
	return scheduler.Drop
}

// over reports whether the wait has been above the target for an interval.
func (c *codelState) over(o *CoDel, t, wait frame.Time, left uint64) bool {
	switch {
	case wait < o.Target || left <= maxPacket:
		c.above = 0
	case c.above == 0:
		c.above = t + o.Interval
	default:
		return t >= c.above
	}
	return false
}

// law is the control law: the drop after t, if it is the count-th.
func (o *CoDel) law(t frame.Time, count uint32) frame.Time {
	return t + frame.Time(float64(o.Interval)/math.Sqrt(float64(count)))
}
