package vnet

import (
	"gswitch/escape"
	"gswitch/escape/point"
	"gswitch/frame"
	"gswitch/vswitch"
)

// Escape lets frames of lossless classes out of paused queues, on every link
// between two switches.
type Escape struct {
	On bool
	escape.Config
	Period frame.Time // see point.Config
}

// escapeQueue is where frames escape. Its class waits in the queue above.
const escapeQueue = 6

// escapeSwitch lets the switch take part.
func (n *Network) escapeSwitch(c *vswitch.Config) {
	if e := &n.cfg.Escape; e.On {
		c.Options = c.Options.With(point.Name, point.Config{Queue: escapeQueue, Config: e.Config, Period: e.Period})
		c.Class.Queue[escapeQueue] = escapeQueue + 1
	}
}

// escapePort makes the port of a switch one by which frames escape.
func (n *Network) escapePort(c *vswitch.PortConfig, peer int) {
	if n.cfg.Escape.On {
		if n.swOf[peer] >= 0 {
			c.Options = c.Options.With(point.Name, point.Neighbor{})
		}
		q := &c.Scheduler.Queues[escapeQueue]
		q.Weight, q.Order = 0, nil
	}
}

// Escaped sums up what all ports of all switches had to do with frames that
// escape, and is false in a network where none may.
func (n *Network) Escaped() (c escape.Counts, on bool) {
	for _, sw := range n.Switches {
		for _, v := range point.Views(sw.Nodes[0], nil) {
			c.Made += v.Made
			c.Forwarded += v.Forwarded
			c.Hits += v.Hits
			c.Dropped += v.Dropped
			c.Arrived += v.Arrived
			c.Strays += v.Strays
			c.Reclaimed += v.Reclaimed
			c.Full += v.Full
			c.Asked += v.Asked
			c.Requests += v.Requests
			c.Refused += v.Refused
		}
	}
	return c, n.cfg.Escape.On
}
