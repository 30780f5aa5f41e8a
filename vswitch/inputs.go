package vswitch

import (
	"gswitch/buffer"
	"gswitch/frame"
)

// InputQueues hold frames at their ingress ports until there is room in their egress
// queues. They replace the shared buffer, which then holds only copies and what the
// switch itself sends. Pauses depend on them. Each worker has those of its egress ports.
type InputQueues interface {
	// Arrive accepts a frame that was forwarded, by Meta.InPort, OutPort, Class and Wire,
	// and sets Meta.Cost, which is greater than 0; or it refuses the frame. What Next can
	// return at now must have been taken before.
	Arrive(now frame.Time, r frame.Ref) bool
	// Due returns the time at which Next has something to do, Never while no frame is on
	// its way.
	Due() frame.Time
	// Next returns the next frame that has reached its egress queue by now, and when; Nil
	// if there is none.
	Next(now frame.Time) (frame.Ref, frame.Time)
	// Leave says that a frame of Next has left its egress queue, or was dropped there.
	Leave(now frame.Time, m *frame.Meta)
	// Refused reports a frame to several ports for which the shared buffer had no room at
	// one of them.
	Refused(m *frame.Meta)
	// Flush removes frames that Next has not returned, and returns how many it wrote to
	// out: 0 if none are left.
	Flush(out []frame.Ref) int
	// Wants returns the classes for which the neighbour at an ingress port should pause.
	// NextDirty returns an ingress port for which that has changed since it last returned
	// that port.
	Wants(port uint16) uint8
	NextDirty() (port uint16, ok bool)

	// Bytes returns the bytes that count towards a pause of a class at an ingress port.
	Bytes(port uint16, class uint8) uint64
	// Each visits the frames of a class that wait at an ingress port, in order, as long
	// as visit returns true.
	Each(port uint16, class uint8, visit func(r frame.Ref) bool)
	// Stuck returns the egress port whose full queue blocks a class at an ingress port;
	// false if none does.
	Stuck(port uint16, class uint8) (out uint16, ok bool)
	// Blocked visits the ingress ports whose first frame of a class goes to an egress
	// port.
	Blocked(out uint16, class uint8, visit func(in uint16))
}

// copied selects frames that are sent through several ports. They do not wait in input
// queues, where they would block the frames behind them: a slow port would slow all
// senders of such frames, and a slow mirror all senders of mirrored frames.
const copied = frame.IsClone | severalPorts

// severalPorts selects frames to more than one station, or to an unknown one.
const severalPorts = frame.IsMulticast | frame.IsBroadcast | frame.Flooded

// Passage describes the path of frames through a switch whose options have InputQueues.
type Passage interface {
	// Rate returns the rate in bit/s at which a frame passes from its ingress to its
	// egress queue, if the switch's fastest port has rate fastest.
	Rate(fastest uint64) uint64
	// Wait returns the least time that a frame waits before that.
	Wait() frame.Time
	// Queues returns the most bytes that wait at an ingress port, and for an egress port.
	Queues() (ingress, egress uint32)
}

// checkInputs reports what is wrong with the input queues of a configuration, such as
// thresholds that could lose frames; the error has the safe ones.
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

// dismissInputs ends the input queues: frames that wait in them are dropped, and those
// that have reached their egress queue leave through it.
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

// await puts a frame whose egress port is known into the queue of its ingress port.
func (n *Node) await(ps *portState, r frame.Ref, m *frame.Meta) {
	if n.inputs.Due() <= n.now {
		n.advanceInputs(n.now)
	}
	switch {
	case ps.dropping>>m.Queue&1 != 0:
		ps.queueDrops[m.Queue]++
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

// advanceInputs moves frames that have reached their egress queue by now into it.
func (n *Node) advanceInputs(now frame.Time) {
	for r, at := n.inputs.Next(now); r != frame.Nil; r, at = n.inputs.Next(now) {
		n.joinFromInput(at, r)
	}
}

// notExpected removes a frame that no longer waits at an input from those that its egress
// queue expects.
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
		n.scratchOne[0] = r
		n.join(at, ps, m, n.scratchOne[:])
		return
	}
	n.inputs.Leave(at, m)
	n.held--
	n.ports[m.OutPort].queueDrops[m.Queue&7]++
	n.drop(r, why)
}
