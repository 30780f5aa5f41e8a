package vswitch

import (
	"gswitch/frame"
)

// Traffic counts frames and bytes. Bytes include the Ethernet header, but not preamble,
// FCS and gap.
type Traffic struct{ Frames, Bytes uint64 }

func (t *Traffic) add(n uint32) {
	t.Frames++
	t.Bytes += uint64(n)
}

// Plus returns the sum of two counts.
func (t Traffic) Plus(u Traffic) Traffic { return Traffic{t.Frames + u.Frames, t.Bytes + u.Bytes} }

// Counts are what a worker counts for the switch as a whole.
type Counts struct {
	Learned, Moved, LearnFull uint64 // forwarding database
	NeighborFull              uint64 // neighbours not entered: the table is full, or the port has its share
	Flooded                   uint64 // frames that were flooded
	Made                      uint64 // frames that the switch made or failed to make: copies, answers, errors, pauses
	Mirrored                  uint64 // copies made for mirror sessions
	ToLocal                   uint64 // frames handed to the slow path
	ICMPSent, ICMPLimited     uint64 // errors sent, and withheld by the rate limit
	Programs                  uint64 // programs adopted
}

// PortCounts are what a worker counts for a port.
type PortCounts struct {
	Rx, Tx      Traffic
	RxClass     [8]Traffic
	Drops       [frame.NumReasons]uint64 // frames that arrived at the port and were dropped
	ParseErrors [frame.NumReasons]uint64 // what the parser found wrong, dropped or not
	QueueDrops  [8]uint64                // frames refused by the port's egress queues; what waited there and is dropped then is in Drops alone
}

// Plus adds the counts of another worker.
func (c *PortCounts) Plus(o *PortCounts) {
	c.Rx, c.Tx = c.Rx.Plus(o.Rx), c.Tx.Plus(o.Tx)
	for i := range c.RxClass {
		c.RxClass[i] = c.RxClass[i].Plus(o.RxClass[i])
		c.QueueDrops[i] += o.QueueDrops[i]
	}
	for i := range c.Drops {
		c.Drops[i] += o.Drops[i]
		c.ParseErrors[i] += o.ParseErrors[i]
	}
}

// Dropped returns the number of frames lost at the port, without control frames that have
// served their purpose.
func (c *PortCounts) Dropped() (sum uint64) {
	for r, n := range c.Drops {
		if frame.Reason(r).Loss() {
			sum += n
		}
	}
	return sum
}
