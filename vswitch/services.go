package vswitch

import "gswitch/frame"

// What features ask of the worker that they run on, besides what it shows to
// readers (inspect.go). Instances keep the Node that Feature.New got.

// Now returns the instant of the step that the worker is in.
func (n *Node) Now() frame.Time { return n.now }

// Arena returns the memory of frames.
func (n *Node) Arena() *frame.Arena { return n.arena }

// Config returns the configuration in force.
func (n *Node) Config() *Config { return n.prog.Config }

// Consume counts a frame that came in by a port and ends in Instance.Arrives, and
// drops it under a reason.
func (n *Node) Consume(port uint16, r frame.Ref, why frame.Reason) {
	m := n.arena.Meta(r)
	m.InPort, m.Arrival = port, n.now
	n.ports[port].rx.add(m.Wire)
	n.drop(r, why)
}
