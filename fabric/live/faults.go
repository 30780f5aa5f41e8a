package live

import (
	"fmt"

	"gswitch/dataplane"
	"gswitch/fault"
	"gswitch/frame"
	"gswitch/sim"
)

// Faults on the callbacks' worker take effect before its next event, at the instant for
// which they were scheduled. Those on other workers go through the worker's mailbox,
// where their lateness is measured. If there are several processes, each injects the
// faults of its own ports and nodes, by the clock.

// on runs f on a worker as soon as possible.
func (e *Engine) on(worker int, f func(now frame.Time)) error {
	switch {
	case e.phase == closed:
		return dataplane.ErrStopped
	case e.phase != running: // workers are not running
		f(e.Now())
		return nil
	case worker == 0:
		e.ctl[0].Put(sim.Entry{At: 0, Do: f}) // before anything else that is due
		return nil
	}
	return e.dp.Worker(worker).Post(e.Now(), f)
}

// carryOut makes a change on the worker that owns it.
func (e *Engine) carryOut(c dataplane.Change, err error) error {
	if err != nil {
		return err
	}
	return e.on(c.Worker().Index(), c.Make)
}

func (e *Engine) checkLink(id sim.LinkID, way sim.Way) error {
	if id < 0 || int(id) >= len(e.links) || way > sim.Back {
		return fmt.Errorf("there is no direction %d of link %d", way, id)
	}
	return nil
}

func (e *Engine) checkNode(node int) error {
	if node < 0 || node >= len(e.nodes) {
		return fmt.Errorf("there is no node %d", node)
	}
	return nil
}

// Fault implements vnet.Engine. The model is applied to frames as they leave the sender's
// port.
func (e *Engine) Fault(id sim.LinkID, way sim.Way, c fault.Config) error {
	if err := e.checkLink(id, way); err != nil {
		return err
	}
	if err := c.Validate(); err != nil {
		return fmt.Errorf("link %s: %w", e.linkName(id), err)
	}
	p := e.links[id].ports[way]
	if p == nil {
		return nil // the process that has the port does it
	}
	r := frame.NewRand(e.spec.Seed ^ uint64(2*int(id)+int(way)+1)<<32)
	seed := r.Uint64()
	return e.carryOut(e.dp.FaultChange(p, &c, seed))
}

// SetLink implements vnet.Engine.
func (e *Engine) SetLink(id sim.LinkID, up bool) error {
	if err := e.checkLink(id, sim.Forth); err != nil {
		return err
	}
	l := &e.links[id]
	l.cut = !up
	return e.showLink(l)
}

// showLink tells the ports of a link whether it is up.
func (e *Engine) showLink(l *link) error {
	for _, p := range l.ports {
		if p == nil {
			continue
		}
		if err := e.carryOut(e.dp.LinkChange(p, l.up())); err != nil {
			return err
		}
	}
	return nil
}

// Pause implements vnet.Engine: arriving frames wait in the rings of the node's ports, as
// far as these have room.
func (e *Engine) Pause(node int, until frame.Time) error {
	if err := e.checkNode(node); err != nil {
		return err
	}
	n := e.nodes[node]
	if !e.owns(n.at) {
		return nil
	}
	return e.carryOut(e.dp.PauseChange(n.worker, n, until))
}

// Slow implements vnet.Engine.
func (e *Engine) Slow(node int, gap frame.Time) error {
	if err := e.checkNode(node); err != nil {
		return err
	}
	n := e.nodes[node]
	if !e.owns(n.at) {
		return nil
	}
	var fresh *backlog
	if gap > 0 {
		fresh = newBacklog(gap, e.chunks())
	}
	return e.on(n.worker, func(now frame.Time) {
		switch {
		case n.slow != nil:
			n.slow.gap, n.slow.next = max(gap, 0), min(n.slow.next, now+gap)
		case gap > 0:
			n.slow = fresh
			n.slow.next = now
		}
	})
}

// Reboot implements vnet.Engine. A link that a fault cuts in the meantime stays down.
func (e *Engine) Reboot(node int, down frame.Time) error {
	if err := e.checkNode(node); err != nil {
		return err
	}
	return e.on(0, func(now frame.Time) {
		e.reboot(node, 1)
		e.At(now+max(down, 0), func(frame.Time) { e.reboot(node, -1) })
	})
}

// reboot counts, for each link of a node, the ends that are rebooting.
func (e *Engine) reboot(node, by int) {
	for i := range e.links {
		l := &e.links[i]
		if l.ends[0] != node && l.ends[1] != node {
			continue
		}
		l.reboots += by
		if err := e.showLink(l); err != nil {
			e.Stop(err)
		}
	}
}

// Storm implements vnet.Engine: it is not supported.
func (e *Engine) Storm(id sim.LinkID, way sim.Way, _ sim.Storm) error {
	if err := e.checkLink(id, way); err != nil {
		return err
	}
	return fmt.Errorf("link %s: storms of pause frames exist in virtual time only", e.linkName(id))
}
