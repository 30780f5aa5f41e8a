package vswitch

import (
	"fmt"

	"gswitch/frame"
	"gswitch/scheduler"
)

// The scheduler decides which frame is dropped for which at an egress queue. Frames that
// it evicts leave the switch here.

// losslessQueues are the egress queues of lossless classes: no frame that waits there is
// evicted for another one.
func (cfg *Config) losslessQueues() (queues uint8) {
	for class, q := range cfg.Class.Queue {
		if cfg.Lossless(class) {
			queues |= 1 << (q & 7)
		}
	}
	return queues
}

// pushOut returns the push-out of a port, from which lossless queues are exempt.
func (cfg *Config) pushOut(p *PortConfig) scheduler.PushOut {
	out := p.Scheduler.PushOut
	out.Exempt |= cfg.losslessQueues()
	return out
}

// validateQueues rejects impossible settings of the ports' egress queues.
func (cfg *Config) validateQueues() error {
	var valid *scheduler.PortConfig // of the last port: most ports have the same, and to check an order may take long
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		if p.Name == "" {
			continue
		}
		if valid == nil || p.Scheduler != *valid {
			if err := p.Scheduler.Validate(); err != nil {
				return fmt.Errorf("port %s: %w", p.Name, err)
			}
			valid = &p.Scheduler
		}
	}
	return nil
}

// admitPushing is buffer.Admit with push-out: once the whole buffer is full, a frame of a
// higher level takes the room of those below it at its port.
func (n *Node) admitPushing(ps *portState, m *frame.Meta) frame.Reason {
	for {
		why := n.buffer.Try(m)
		if why == frame.Keep {
			return why
		}
		r := frame.Nil
		if why == frame.BufferFull {
			r = ps.sched.MakeRoom(n.now, m.Queue)
		}
		if r == frame.Nil {
			return n.buffer.Admit(m) // it counts the refusal
		}
		n.dropPushedOut(ps, r)
	}
}

// pushOut drops the frames that had to make room for one that was just queued, at its
// port and at those that share a buffer with it.
func (n *Node) pushOut(ps *portState, queue uint8) {
	n.pushOutAt(ps, queue)
	for r := ps.sched.PushedElsewhere(queue); r != frame.Nil; r = ps.sched.PushedElsewhere(queue) {
		m := n.arena.Meta(r)
		n.pushOutAt(&n.ports[m.OutPort], m.Queue)
		n.touched.add(m.OutPort) // its next frame may be another one, and leave earlier
	}
}

func (n *Node) pushOutAt(ps *portState, queue uint8) {
	for r := ps.sched.PushOut(n.now, queue); r != frame.Nil; r = ps.sched.PushOut(n.now, queue) {
		n.dropPushedOut(ps, r)
	}
}

// dropPushedOut drops a frame that the scheduler pushed out for another one.
func (n *Node) dropPushedOut(ps *portState, r frame.Ref) {
	n.vec.one[0] = r
	n.leave(n.now, ps, n.vec.one[:])
	n.drop(r, frame.PushedOut)
}

// dropShed drops the frames that the scheduler dropped at the head of its queues.
func (n *Node) dropShed(now frame.Time, ps *portState) {
	for k := ps.sched.TakeShed(n.vec.scratch[:]); k > 0; k = ps.sched.TakeShed(n.vec.scratch[:]) {
		n.dropQueued(now, ps, n.vec.scratch[:k], frame.QueueShed)
	}
	n.flowControl(now)
	n.freeDropped()
}
