package lstf

import (
	"fmt"
	"math"

	"gswitch/frame"
)

// Edge says what is done with packets where they leave the network, by how long
// they waited on all of their way (section 3.4 of the paper): switches in between
// need no rule of their own for that.
type Edge struct {
	// MarkAbove marks packets that waited longer (Edge-ECN, for DCTCP). 0: none.
	MarkAbove frame.Time
	// Target is the wait from which on CoDel drops packets of a flow, once none
	// has waited less for Interval (Edge-CoDel). 0: it does not. A flow that sent
	// nothing for Refresh starts anew, as one whose queue has run empty.
	Target, Interval, Refresh frame.Time
	ECN                       bool // CoDel marks packets that can be marked
}

// Validate reports what cannot be meant.
func (e *Edge) Validate() error {
	switch {
	case e.MarkAbove < 0 || e.Target < 0 || e.Interval < 0 || e.Refresh < 0:
		return fmt.Errorf("slack: a time is negative")
	case e.Target > 0 && e.Interval == 0:
		return fmt.Errorf("slack: CoDel has a target and no interval")
	case e.Target > 0 && e.Refresh <= e.Target:
		return fmt.Errorf("slack: a refresh of %v is not above the target of %v, which waits alone can be apart", e.Refresh.Duration(), e.Target.Duration())
	}
	return nil
}

// Verdict is what an Edge says of a packet.
type Verdict uint8

const (
	Pass Verdict = iota
	Mark
	Drop
)

// Judge keeps the state of an Edge.
type Judge struct {
	edge  Edge
	flows table[codel]
}

// Configure changes what is done. Without it so far, nothing is.
func (j *Judge) Configure(e Edge) {
	if e.Target > 0 && j.flows.slot == nil {
		j.flows = newTable[codel]()
	}
	j.edge = e
}

// Full returns how many packets were of flows that shared their state with
// another one.
func (j *Judge) Full() uint64 { return j.flows.full }

// Verdict judges a packet of a flow that leaves at now and has waited so long.
func (j *Judge) Verdict(now, used frame.Time, hash uint32, markable bool) Verdict {
	e := &j.edge
	if e.Target > 0 {
		s, fresh := j.flows.find(hash, now)
		if fresh {
			s.v = codel{}
		}
		s.until = now + 16*e.Interval // as long as count is kept
		if s.v.drops(e, now, used) {
			if e.ECN && markable {
				return Mark
			}
			return Drop
		}
	}
	if e.MarkAbove > 0 && used > e.MarkAbove && markable {
		return Mark
	}
	return Pass
}

// codel is the state machine of RFC 8289 section 5 for a flow, judging each packet
// once: there is no queue here out of which the next could be taken.
type codel struct {
	above       frame.Time // when the wait will have been above the target for an interval; 0: it is not
	next        frame.Time // of the next drop
	sent        frame.Time // when the last packet entered the network, but for a constant
	count, last uint32
	dropping    bool
}

func (c *codel) drops(e *Edge, now, used frame.Time) bool {
	// What a packet took without its waits is the same for all of a flow.
	sent := now - used
	if sent-c.sent >= e.Refresh {
		c.above = 0
	}
	c.sent = sent
	over := false
	switch {
	case used < e.Target:
		c.above = 0
	case c.above == 0:
		c.above = now + e.Interval
	default:
		over = now >= c.above
	}
	switch {
	case !over:
		c.dropping = false
		return false
	case !c.dropping:
		c.dropping = true
		again := c.count - c.last
		c.count = 1
		if again > 1 && now-c.next < 16*e.Interval {
			c.count = again
		}
		c.last = c.count
		c.next = e.law(now, c.count)
		return true
	case now >= c.next:
		c.count++
		c.next = e.law(c.next, c.count)
		return true
	}
	return false
}

// law is the control law (RFC 8289 section 5.3).
func (e *Edge) law(t frame.Time, count uint32) frame.Time {
	return t + frame.Time(float64(e.Interval)/math.Sqrt(float64(count)))
}
