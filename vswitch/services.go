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

// Alloc takes memory for a frame that a feature makes, or returns frame.Nil. It is
// empty, and for Send or Discard.
func (n *Node) Alloc() frame.Ref {
	r := n.pool.Alloc()
	if r == frame.Nil {
		n.count.Made++
		n.countDrop(frame.NoPort, frame.ArenaExhausted)
		return r
	}
	n.arena.Reset(r)
	return r
}

// Discard gives back what Alloc gave.
func (n *Node) Discard(r frame.Ref) { n.pool.Free(r) }

// Send sends a frame that a feature made, in the class Meta.Class, when the frames
// of the vector have their queues, so that it delays none of them: as it is by the
// port Meta.OutPort, or, where that is frame.NoPort, as GRE over IPv4 by the route
// to its destination. It is charged to the port Meta.InPort. False is returned, and
// the frame is dropped, if too many wait.
func (n *Node) Send(r frame.Ref) bool {
	n.count.Made++
	if n.sendsN == len(n.sends) {
		n.countDrop(n.arena.Meta(r).InPort, frame.OwnShare)
		n.pool.Free(r)
		return false
	}
	n.sends[n.sendsN] = r
	n.sendsN++
	return true
}

// sendAll sends what waits by Send.
func (n *Node) sendAll(now frame.Time) {
	n.now = now
	v := n.sends[:n.sendsN]
	n.sendsN = 0
	for _, r := range v {
		m := n.arena.Meta(r)
		m.Arrival = now
		if m.OutPort != frame.NoPort {
			n.emitMirror(r, m)
			continue
		}
		b := n.arena.Bytes(r)
		putMACs(b, n.selfMAC, n.selfMAC)
		n.parser.OwnGRE4(m, b)
		n.toRoute(r)
	}
	if n.routeN > 0 {
		n.route(now)
	}
	if n.joinedN+n.sealedN > 0 {
		n.endVector(now)
	}
	n.flowControl(now)
	for w := range n.handoff {
		n.flushHandoff(w)
	}
	n.bury()
}
