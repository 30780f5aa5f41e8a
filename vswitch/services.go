package vswitch

import (
	"gswitch/frame"
	"gswitch/wire"
)

// What features ask of the worker that they run on, in addition to what inspect.go shows
// to readers. Instances keep the Node that was passed to Feature.New.

// Now returns the time of the worker's present step.
func (n *Node) Now() frame.Time { return n.now }

// Arena returns the memory of frames.
func (n *Node) Arena() *frame.Arena { return n.arena }

// Pool returns the pool from which the worker allocates frames.
func (n *Node) Pool() *frame.Pool { return n.pool }

// Index returns the number of the worker within the switch.
func (n *Node) Index() int { return n.index }

// Config returns the configuration in force.
func (n *Node) Config() *Config { return n.prog.Config }

// Consume counts a frame that arrived at a port and ends in Instance.Arrives, and drops
// it with a reason.
func (n *Node) Consume(port uint16, r frame.Ref, why frame.Reason) {
	m := n.arena.Meta(r)
	m.InPort, m.Arrival = port, n.now
	n.ports[port].rx.add(m.Wire)
	n.drop(r, why)
}

// Alloc allocates an empty frame for a feature, or returns frame.Nil. It must be passed
// to Send or Discard.
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

// Discard frees a frame of Alloc.
func (n *Node) Discard(r frame.Ref) { n.pool.Free(r) }

// Send sends a frame that a feature made, in class Meta.Class, after the frames of the
// vector have been queued, so that it delays none of them: unchanged through port
// Meta.OutPort or, if that is frame.NoPort, as an IPv4 packet by the route to its
// destination. It is charged to port Meta.InPort. If too many are waiting, Send drops the
// frame and returns false.
func (n *Node) Send(r frame.Ref) bool {
	n.count.Made++
	if n.stages.sendsN == vector {
		n.countDrop(n.arena.Meta(r).InPort, frame.OwnShare)
		n.pool.Free(r)
		return false
	}
	n.stages.sends[n.stages.sending&1][n.stages.sendsN] = r
	n.stages.sendsN++
	return true
}

// sendAll sends the frames of Send. Drops may cause features to send more; those wait in
// the other half.
func (n *Node) sendAll(now frame.Time) {
	n.now = now
	v := n.stages.sends[n.stages.sending&1][:n.stages.sendsN]
	n.stages.sending, n.stages.sendsN = n.stages.sending^1, 0
	keep := v[:0]
	for _, r := range v {
		m := n.arena.Meta(r)
		m.Arrival = now
		if m.OutPort != frame.NoPort {
			keep = append(keep, r)
			continue
		}
		b := n.arena.Bytes(r)
		putMACs(b, n.selfMAC, n.selfMAC)
		n.parser.OwnIPv4(m, b)
		n.toRoute(r)
	}
	n.unchanged(keep)
	if n.routed.n > 0 {
		n.route(now)
	}
	if n.vec.decidedN > 0 {
		n.egress()
	}
	if n.stages.joinedN+n.stages.deferredN > 0 {
		n.endVector(now)
	}
	n.flowControl(now)
	for w := range n.others.out {
		n.flushHandoff(w)
	}
	n.freeDropped()
}

// Parse parses frames again after a feature has changed what the parser saw.
func (n *Node) Parse(v []frame.Ref) { n.parser.Parse(n.arena, v) }

// EgressPort is Switch.EgressPort.
func (n *Node) EgressPort(f Flow) (port uint16, ok bool) { return n.sw.EgressPort(f) }

// Draining returns the queues of an own port, as a bitmap, that the storm watchdog
// drains: frames for them are dropped.
func (n *Node) Draining(port uint16) uint8 { return n.ports[port].dropping }

// Charge charges a frame to its ingress port and class, and its egress port and
// queue, and reports false if the buffer has no room for it.
func (n *Node) Charge(m *frame.Meta) bool {
	if n.chunks.held >= n.chunks.limit || n.buffer.Try(m) != frame.Keep {
		return false
	}
	n.chunks.held++
	return true
}

// Join puts a frame that is charged into the egress queue that its Meta names.
func (n *Node) Join(r frame.Ref) {
	n.vec.one[0] = r
	m := n.arena.Meta(r)
	n.join(n.now, &n.ports[m.OutPort], m, n.vec.one[:])
}

// Extract removes from an egress queue with a scheduler.FlowFIFO the first frame with the
// given hash for which one returns true, or returns frame.Nil. It stays charged.
func (n *Node) Extract(port uint16, queue int, hash uint32, one func(frame.Ref) bool) frame.Ref {
	ps := &n.ports[port]
	r := ps.sched.ExtractFirst(n.now, queue, hash, one)
	if r != frame.Nil {
		n.vec.one[0] = r
		n.left(ps, n.vec.one[:])
	}
	return r
}

// NewControl returns an empty MAC control frame to the neighbour at a port, or nil
// if there is no memory, which is counted.
func (n *Node) NewControl(port uint16) ([]byte, frame.Ref) {
	n.count.Made++
	r := n.pool.Alloc()
	if r == frame.Nil {
		n.countDrop(frame.NoPort, frame.ArenaExhausted)
		return nil, r
	}
	m := n.arena.Reset(r)
	m.Len, m.Wire = wire.MinFrame, wire.MinFrame
	m.InPort, m.OutPort, m.Arrival = port, port, n.now
	return n.arena.Bytes(r), r
}

// SendControl sends a frame through an own port ahead of all data, regardless of pauses:
// flow control, what NewControl returned, and frames to link-local groups.
func (n *Node) SendControl(port uint16, r frame.Ref) {
	n.ports[port].sched.EnqueueControl(r)
	n.busy.add(port)
	n.touched.add(port)
}
