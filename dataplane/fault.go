package dataplane

import "github.com/gswitch/gswitch/fault"

// SetFault puts c, which says what goes wrong with the frames that p sends,
// in place of what was set before; nil is nothing. Frames are judged in the
// order in which the node sends them, with random numbers that seed begins
// anew, between the node and the device. It takes effect between two loops of
// the worker and disturbs no traffic.
func (e *Engine) SetFault(p *Port, c *fault.Config, seed uint64) error {
	return nil
}
