package vswitch

import (
	"math/bits"

	"gswitch/frame"
	"gswitch/scheduler"
	"gswitch/wire"
)

// The stages of features: which of them a port's frames pass, and the calls.

// running is a feature on a worker. Without options it has no State.
type running struct {
	*Feature
	Instance
}

// adoptFeatures makes the instances of the features that a configuration has and the
// worker has not had so far.
func (n *Node) adoptFeatures(cfg *Config) {
	if n.stages.features == nil {
		n.stages.features = make([]running, len(features))
	}
	for i, f := range features {
		if r := &n.stages.features[i]; r.State == nil && cfg.uses(f) {
			*r = running{f, f.New(n)}
		}
	}
	n.stages.forwards, n.stages.copies = 0, 0
	for i := range n.stages.features {
		if f := &n.stages.features[i]; f.Forwards != nil && cfg.uses(f.Feature) {
			n.stages.forwards |= 1 << i
		}
		if f := &n.stages.features[i]; f.Copies != nil && cfg.uses(f.Feature) {
			n.stages.copies |= 1 << i
		}
	}
}

// adoptWraps asks the features which frames they unwrap.
func (n *Node) adoptWraps(port uint16, c *PortConfig) {
	ps := &n.ports[port]
	ps.wraps = 0
	for i := range n.stages.features {
		if f := &n.stages.features[i]; f.Wrapped != nil && f.Wrapped(port, c) {
			ps.wraps |= 1 << i
		}
	}
}

// unwrap shows features frames that are not parsed yet, in a copy of the vector, so that
// the caller's can stay on its stack.
func (n *Node) unwrap(now frame.Time, port uint16, v []frame.Ref) {
	w := n.vec.scratch[:copy(n.vec.scratch[:], v)]
	for b := n.ports[port].wraps; b != 0; b &= b - 1 {
		n.stages.features[bits.TrailingZeros32(b)].Unwrap(now, port, w)
	}
}

// showForwarded shows features frames on their way to a queue.
func (n *Node) showForwarded(v []frame.Ref) {
	for b := n.stages.forwards; b != 0; b &= b - 1 {
		n.stages.features[bits.TrailingZeros32(b)].Forwards(n.now, v)
	}
}

// beginAdoption calls Adopt of the features, before any port is adopted.
func (n *Node) beginAdoption(now frame.Time) {
	n.stages.dropped = 0
	for i := range n.stages.features {
		f := &n.stages.features[i]
		if f.Adopt != nil {
			f.Adopt(now)
		}
		if f.Dropped != nil {
			n.stages.dropped |= 1 << i
		}
	}
}

// adoptArrivals asks the features what they look at of what arrives at a port.
func (n *Node) adoptArrivals(port uint16, c *PortConfig) {
	ps := &n.ports[port]
	ps.arrives, ps.admitted = 0, 0
	for i := range n.stages.features {
		f := &n.stages.features[i]
		if f.Listens != nil && f.Listens(port, c) {
			ps.arrives |= 1 << i
		}
		if f.Admits != nil && f.Admits(port, c) {
			ps.admitted |= 1 << i
		}
	}
}

// arrive shows features frames that came in by a port, and returns those that
// go on.
func (n *Node) arrive(now frame.Time, port uint16, v []frame.Ref) []frame.Ref {
	w := n.vec.arriving[:copy(n.vec.arriving[:], v)] // so that the caller's may stay on its stack
	for b := n.ports[port].arrives; b != 0; b &= b - 1 {
		w = n.stages.features[bits.TrailingZeros32(b)].Arrives(now, port, w)
	}
	return w
}

// admitted shows features frames that came in by a port and passed its list, in a
// copy of the vector, as unwrap.
func (n *Node) admitted(now frame.Time, port uint16, v []frame.Ref) {
	w := n.vec.scratch[:copy(n.vec.scratch[:], v)]
	for b := n.ports[port].admitted; b != 0; b &= b - 1 {
		n.stages.features[bits.TrailingZeros32(b)].Admitted(now, port, w)
	}
}

// controlled reports whether a feature of an own port understands a MAC control frame.
func (n *Node) controlled(port uint16, c wire.MACControl) bool {
	for b := n.ports[port].arc.controls; b != 0; b &= b - 1 {
		if n.stages.features[bits.TrailingZeros32(b)].Control(port, c) {
			return true
		}
	}
	return false
}

// claimed reports whether a feature has queued a frame that it claims.
func (n *Node) claimed(ps *portState, r frame.Ref) bool {
	for b := ps.arc.claims; b != 0; b &= b - 1 {
		if n.stages.features[bits.TrailingZeros32(b)].Claims(r) {
			return true
		}
	}
	return false
}

// notifyPaused calls Paused of the features: the neighbour at a port pauses or resumes
// classes.
func (n *Node) notifyPaused(now frame.Time, port uint16) {
	for b := n.ports[port].arc.paused; b != 0; b &= b - 1 {
		n.stages.features[bits.TrailingZeros32(b)].Paused(now, port)
	}
}

// notifyPauses calls Pauses of the features: the neighbour at a port may have been
// asked to pause.
func (n *Node) notifyPauses(now frame.Time, port uint16) {
	for b := n.ports[port].arc.pauses; b != 0; b &= b - 1 {
		n.stages.features[bits.TrailingZeros32(b)].Pauses(now, port)
	}
}

// showDropped shows features what is dropped.
func (n *Node) showDropped(v []frame.Ref) {
	for b := n.stages.dropped; b != 0; b &= b - 1 {
		n.stages.features[bits.TrailingZeros32(b)].Dropped(v)
	}
}

// arc is the path of a port's frames through the stages of features: for each stage a
// bitmap of the features that have it, by the index in Node.features.
type arc struct {
	queued, left, departs uint32
	claims, released      uint32
	paused, pauses        uint32
	linkLocal, requests   uint32
	sends, sheds          uint32
	departing             uint32 // departs or sheds
	controls              uint32
}

// adoptArc asks the features for their stages at an own port.
func (n *Node) adoptArc(now frame.Time, port uint16, c *PortConfig) {
	a := &n.ports[port].arc
	*a = arc{}
	for i := range n.stages.features {
		if f := &n.stages.features[i]; f.Port != nil {
			s, bit := f.Port(now, port, c), uint32(1)<<i
			for k, of := range [...]*uint32{&a.queued, &a.left, &a.departs, &a.claims, &a.released, &a.paused, &a.pauses, &a.linkLocal, &a.requests, &a.sends, &a.sheds, &a.controls} {
				if s>>k&1 != 0 {
					*of |= bit
				}
			}
		}
	}
	a.departing = a.departs | a.sheds
}

// adoptQueues lets features change what the queues of an own port are made from.
func (n *Node) adoptQueues(port uint16, c *PortConfig, s *scheduler.PortConfig) {
	for i := range n.stages.features {
		if f := &n.stages.features[i]; f.Queues != nil {
			f.Queues(port, c, s)
		}
	}
}

// rerouted calls Routed of the features: routes may have changed.
func (n *Node) rerouted() {
	for i := range n.stages.features {
		if f := &n.stages.features[i]; f.Routed != nil {
			f.Routed()
		}
	}
}

// dismissArc is adoptArc for a port that is gone.
func (n *Node) dismissArc(port uint16) {
	n.ports[port].arc = arc{}
	for i := range n.stages.features {
		if f := &n.stages.features[i]; f.Dismiss != nil {
			f.Dismiss(port)
		}
	}
}
