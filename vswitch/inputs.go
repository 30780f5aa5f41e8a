package vswitch

import (
	"gswitch/buffer"
	"gswitch/frame"
)

// InputQueues hold frames at the ports that they came by until there is room in
// their egress queues, in place of the shared buffer, which holds what the switch
// itself sends then, and copies. Pauses follow them. Each worker has those of its
// egress ports.
type InputQueues interface {
	// Arrive takes in a frame that was forwarded, by Meta.InPort, OutPort, Class and
	// Wire, and sets Meta.Cost, which is more than 0; or refuses it. What Next has to
	// give out at now was taken before.
	Arrive(now frame.Time, r frame.Ref) bool
	// Due returns the instant at which Next has something to do, Never while nothing
	// is under way.
	Due() frame.Time
	// Next returns the next frame that has come to its egress queue by now, and when;
	// Nil if there is none.
	Next(now frame.Time) (frame.Ref, frame.Time)
	// Leave says that a frame of Next left its egress queue, or was dropped there.
	Leave(now frame.Time, m *frame.Meta)
	// Refused reports a frame that several ports send, and for which the shared buffer
	// had no room at one of them.
	Refused(m *frame.Meta)
	// Flush removes frames that Next has not given out, and returns how many it wrote
	// to out: 0 when there are none.
	Flush(out []frame.Ref) int
	// Wants returns the classes for which the neighbour at an ingress port should
	// pause, NextDirty an ingress port for which that changed since it was last
	// returned here.
	Wants(port uint16) uint8
	NextDirty() (port uint16, ok bool)

	// Bytes returns what counts for a pause of a class at an ingress port.
	Bytes(port uint16, class uint8) uint64
	// Each visits the frames of a class that wait at an ingress port, first ones
	// first, as long as visit returns true.
	Each(port uint16, class uint8, visit func(r frame.Ref) bool)
	// Stuck returns the egress port whose full queue holds up a class at an ingress
	// port; false where none does.
	Stuck(port uint16, class uint8) (out uint16, ok bool)
	// Blocked visits the ingress ports whose first frame of a class goes to an egress
	// port.
	Blocked(out uint16, class uint8, visit func(in uint16))
}

// copied are the frames that are sent by several ports. They do not wait in input
// queues, since there they would hold up what comes behind them: a slow port would slow
// all that send something to all ports, and a slow mirror those whose frames it copies.
const copied = frame.IsClone | severalPorts

// severalPorts are the frames that are sent to more than one station, or to one that
// is not known.
const severalPorts = frame.IsMulticast | frame.IsBroadcast | frame.Flooded

// Passage is what the options of a feature with InputQueues report of the way of
// frames through a switch.
type Passage interface {
	// Rate returns the bit/s at which a frame passes from its ingress to its egress
	// queue, in a switch whose fastest port has a rate.
	Rate(fastest uint64) uint64
	// Wait returns for how long a frame waits before that in any case.
	Wait() frame.Time
	// Queues returns the most bytes that wait at an ingress port, and for an egress
	// port.
	Queues() (ingress, egress uint32)
}

// checkInputs reports what stands against the input queues of a configuration,
// such as thresholds that could lose frames, with those that are safe.
func (cfg *Config) checkInputs() error {
	for _, f := range features {
		if f.InputQueued && f.Check != nil && cfg.uses(f) {
			if err := f.Check(cfg); err != nil {
				return err
			}
		}
	}
	return nil
}

// adoptInputs brings the worker in line with the configuration.
func (n *Node) adoptInputs(now frame.Time) {
	var in InputQueues
	for i := range n.features {
		if f := &n.features[i]; f.InputQueues != nil && in == nil {
			in = f.InputQueues(now)
		}
	}
	if n.inputs != nil && in == nil {
		n.dismissInputs(now)
	}
	n.inputs = in
}

// dismissInputs ends the input queues: what waits in them is dropped, what has
// come to its egress queue leaves by it.
func (n *Node) dismissInputs(now frame.Time) {
	n.flushInputs()
	for i := range n.ports {
		if s := n.ports[i].sched; s != nil {
			for q := range 8 {
				s.Each(q, func(r frame.Ref) bool {
					if m := n.arena.Meta(r); m.Pool == buffer.PoolInputs {
						m.Pool = buffer.PoolNone
					}
					return true
				})
			}
		}
	}
	n.inputs = nil
	for i := range n.ports {
		n.wantChanged(now, uint16(i))
	}
}

func (n *Node) flushInputs() {
	for k := n.inputs.Flush(n.scratch[:]); k > 0; k = n.inputs.Flush(n.scratch[:]) {
		n.held -= k
		for _, r := range n.scratch[:k] {
			n.notExpected(n.arena.Meta(r))
		}
		n.dropAll(n.scratch[:k], frame.QueueFlush)
	}
}

// await takes a frame whose egress port is known into the queue of the port it
// came by.
func (n *Node) await(ps *portState, r frame.Ref, m *frame.Meta) {
	if n.inputs.Due() <= n.now {
		n.advanceInputs(n.now)
	}
	switch {
	case ps.dropping>>m.Queue&1 != 0:
		n.drop(r, frame.PFCWatchdog)
	case n.held >= n.lossyHeld && (n.held >= n.maxHeld || n.losslessClasses>>(m.Class&7)&1 == 0):
		n.drop(r, frame.ArenaExhausted)
	case !n.inputs.Arrive(n.now, r):
		n.drop(r, frame.IngressQueue)
	default:
		n.held++
		ps.sched.Expect(int(m.Queue), m.Wire)
	}
}

// advanceInputs puts what has come to its egress queue by now into it.
func (n *Node) advanceInputs(now frame.Time) {
	for r, at := n.inputs.Next(now); r != frame.Nil; r, at = n.inputs.Next(now) {
		n.joinFromInput(at, r)
	}
}

// notExpected takes a frame that no longer waits at an input off what its egress queue
// expects.
func (n *Node) notExpected(m *frame.Meta) {
	if s := n.ports[m.OutPort].sched; s != nil {
		s.Expected(int(m.Queue), m.Wire)
	}
}

// joinFromInput puts a frame that left its input queue into its egress queue, or drops it
// if there is none any more.
func (n *Node) joinFromInput(at frame.Time, r frame.Ref) {
	m := n.arena.Meta(r)
	n.notExpected(m)
	why := frame.Keep
	switch ps := &n.ports[m.OutPort]; {
	case ps.sched == nil || !n.linkUp.has(m.OutPort):
		why = frame.EgressPortDown
	case ps.dropping>>m.Queue&1 != 0:
		why = frame.PFCWatchdog
	default:
		m.Pool = buffer.PoolInputs
		n.join(at, ps, r, m)
		return
	}
	n.inputs.Leave(at, m)
	n.held--
	n.ports[m.OutPort].queueDrops[m.Queue&7]++
	n.drop(r, why)
}

// release gives back what a frame that leaves its egress queue was charged to:
// its ingress port's account in the shared buffer, or the input queues.
func (n *Node) release(now frame.Time, m *frame.Meta) {
	n.held--
	if m.Pool != buffer.PoolInputs {
		n.buffer.Release(m)
		return
	}
	m.Pool = buffer.PoolNone
	n.inputs.Leave(now, m)
}
