package live

import (
	"gswitch/frame"
	"gswitch/sim"
)

// control runs on its worker what is scheduled for an instant: arrivals of a workload,
// samples, faults. To the worker it is a node without ports.
type control struct {
	sim.Agenda
	ran  uint64
	tape *tape // nil if the run is not recorded
}

// Advance implements frame.Node. It runs what is due, in the order of the instants, and
// in the order of scheduling if instants are equal.
func (c *control) Advance(now frame.Time) {
	for c.Next() <= now {
		if c.tape != nil {
			c.tape.Agenda(now, c.one)
		} else {
			c.one(now)
		}
	}
}

// one runs the first entry.
func (c *control) one(now frame.Time) {
	e := c.Take()
	if again := e; e.Period != 0 {
		// Skip what was missed: several samples at one instant add no information.
		again.At += (now-e.At)/e.Period*e.Period + e.Period
		c.Put(again)
	}
	c.ran++
	e.Do(now)
}

// Wake implements frame.Node.
func (c *control) Wake(frame.Time) frame.Time { return c.Next() }

// Receive implements frame.Node; there are no ports.
func (c *control) Receive(frame.Time, uint16, []frame.Ref) {}

// Transmit implements frame.Node.
func (c *control) Transmit(frame.Time, uint16, []frame.Ref) int { return 0 }

// SetLink implements frame.Node.
func (c *control) SetLink(frame.Time, uint16, bool) {}
