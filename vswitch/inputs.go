package vswitch

import (
	"gswitch/buffer"
	"gswitch/frame"
)

// InputQueues hold frames at their ingress ports until there is room in their egress
// queues. They replace the shared buffer, which then holds only copies and what the
// switch itself sends. Pauses depend on them. Each worker has those of its egress ports.
type InputQueues interface {
	// Arrive accepts frames that were forwarded, by Meta.InPort, OutPort, Class and Wire,
	// and sets Meta.Cost, which is greater than 0; or it refuses them, and returns which,
	// as a bitmap: there are at most 64. What Next can return at now must have been taken
	// before.
	Arrive(now frame.Time, v []frame.Ref) (refused uint64)
	// Due returns the time at which Next has something to do, Never while no frame is on
	// its way.
	Due() frame.Time
	// Next writes the next frames that have reached their egress queues by now to out,
	// those of one instant, and returns how many and when; 0 if there are none.
	Next(now frame.Time, out []frame.Ref) (k int, at frame.Time)
	// Leave says that frames of Next have left their egress queues, or were dropped there,
	// and sets their Meta.Cost to 0.
	Leave(now frame.Time, v []frame.Ref)
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
	for i := range n.stages.features {
		if f := &n.stages.features[i]; f.InputQueues != nil && in == nil {
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
	for k := n.inputs.Flush(n.vec.scratch[:]); k > 0; k = n.inputs.Flush(n.vec.scratch[:]) {
		n.chunks.held -= k
		for _, r := range n.vec.scratch[:k] {
			n.notExpected(n.arena.Meta(r))
		}
		n.dropAll(n.vec.scratch[:k], frame.QueueFlush)
	}
}

// await puts the frames of a train, whose egress port is known, into the queue of their
// ingress port.
func (n *Node) await(ps *portState, v []frame.Ref) {
	if n.inputs.Due() <= n.now {
		n.advanceInputs(n.now)
	}
	m := n.arena.Meta(v[0])
	queue, class := m.Queue, m.Class&7 // it may be dropped
	if ps.dropping>>queue&1 != 0 {
		ps.queueDrops[queue] += uint64(len(v))
		n.dropAll(v, frame.PFCWatchdog)
		return
	}
	room, why := n.chunks.lossy, frame.IngressQueue
	if n.flow.lossless>>class&1 != 0 {
		room, why = n.chunks.limit, frame.HeadroomFull
	}
	for fit := min(room-n.chunks.held, len(v)); fit > 0; fit = min(room-n.chunks.held, len(v)) {
		refused := n.inputs.Arrive(n.now, v[:fit])
		for i, r := range v[:fit] {
			if refused>>i&1 != 0 {
				n.drop(r, why)
				continue
			}
			n.chunks.held++
			ps.sched.Expect(int(queue), n.arena.Meta(r).Wire)
		}
		v = v[fit:]
	}
	n.dropAll(v, frame.ArenaExhausted)
}

// advanceInputs moves frames that have reached their egress queue by now into it.
func (n *Node) advanceInputs(now frame.Time) {
	for k, at := n.inputs.Next(now, n.vec.crossed[:]); k > 0; k, at = n.inputs.Next(now, n.vec.crossed[:]) {
		for i := range k {
			n.joinFromInput(at, n.vec.crossed[i:i+1])
		}
	}
}

// notExpected removes a frame that no longer waits at an input from those that its egress
// queue expects.
func (n *Node) notExpected(m *frame.Meta) {
	if s := n.ports[m.OutPort].sched; s != nil {
		s.Expected(int(m.Queue), m.Wire)
	}
}

// joinFromInput puts the one frame of v, which left its input queue, into its egress queue,
// or drops it if there is none any more.
func (n *Node) joinFromInput(at frame.Time, v []frame.Ref) {
	m := n.arena.Meta(v[0])
	n.notExpected(m)
	why := frame.Keep
	switch ps := &n.ports[m.OutPort]; {
	case ps.sched == nil || !n.linkUp.has(m.OutPort):
		why = frame.EgressPortDown
	case ps.dropping>>m.Queue&1 != 0:
		why = frame.PFCWatchdog
	default:
		m.Pool = buffer.PoolInputs
		n.join(at, ps, m, v)
		return
	}
	n.inputs.Leave(at, v)
	n.chunks.held--
	n.ports[m.OutPort].queueDrops[m.Queue&7]++
	n.drop(v[0], why)
}
