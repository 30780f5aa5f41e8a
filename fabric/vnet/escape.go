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
