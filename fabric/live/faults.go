package live

import (
	"fmt"

	"github.com/gswitch/gswitch/fault"
	"github.com/gswitch/gswitch/frame"
	"github.com/gswitch/gswitch/sim"
)

// Faults are carried out by a goroutine, soon after a callback asked for them:
// what happens on other workers cannot be waited for on one.

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

// Fault implements vnet.Engine. Frames are judged where they leave the port
// of the sender.
func (e *Engine) Fault(id sim.LinkID, way sim.Way, c fault.Config) error {
	if err := e.checkLink(id, way); err != nil {
		return err
	}
	if err := c.Validate(); err != nil {
		return fmt.Errorf("link %s: %w", e.linkName(id), err)
	}
	p := e.links[id].ports[way]
	r := frame.NewRand(e.spec.Seed ^ uint64(2*int(id)+int(way)+1)<<32)
	seed := r.Uint64()
	return e.later(func() error { return e.dp.SetFault(p, &c, seed) })
}

// SetLink implements vnet.Engine.
func (e *Engine) SetLink(id sim.LinkID, up bool) error {
	if err := e.checkLink(id, sim.Forth); err != nil {
		return err
	}
	l := &e.links[id]
	l.up = up
	return e.later(func() error {
		for _, p := range l.ports {
			if err := e.dp.SetLink(p, up); err != nil {
				return err
			}
		}
		return nil
	})
}

// Pause implements vnet.Engine: frames that arrive wait in the rings of the
// node's ports, as far as those go.
func (e *Engine) Pause(node int, until frame.Time) error {
	if err := e.checkNode(node); err != nil {
		return err
	}
	n := e.nodes[node]
	return e.later(func() error { return e.dp.Pause(n.worker, n, until) })
}

// Slow implements vnet.Engine.
func (e *Engine) Slow(node int, gap frame.Time) error {
	if err := e.checkNode(node); err != nil {
		return err
	}
	n := e.nodes[node]
	return e.later(func() error {
		return e.dp.Worker(n.worker).Do(func(now frame.Time) {
			switch {
			case n.slow != nil:
				n.slow.gap, n.slow.next = max(gap, 0), min(n.slow.next, now+gap)
			case gap > 0:
				n.slow = &backlog{gap: gap, next: now, wait: make([]waiting, 0, 1024)}
			}
		})
	})
}

// Reboot implements vnet.Engine.
func (e *Engine) Reboot(node int, down frame.Time) error {
	if err := e.checkNode(node); err != nil {
		return err
	}
	var cut []sim.LinkID
	for i := range e.links {
		if l := &e.links[i]; l.up && (l.ends[0] == node || l.ends[1] == node) {
			cut = append(cut, sim.LinkID(i))
			if err := e.SetLink(sim.LinkID(i), false); err != nil {
				return err
			}
		}
	}
	e.At(e.Now()+max(down, 0), func(frame.Time) {
		for _, id := range cut {
			if err := e.SetLink(id, true); err != nil {
				e.Stop(err)
			}
		}
	})
	return nil
}

// SetClock implements vnet.Engine: it is refused.
func (e *Engine) SetClock(node int, _ int64, _ frame.Time) error {
	if err := e.checkNode(node); err != nil {
		return err
	}
	return fmt.Errorf("the clock of %s cannot be set on real frames, where all nodes have the clock of the machine: run it in virtual time", e.spec.Plan.Topology.Nodes[e.nodes[node].at].Name)
}

// Storm implements vnet.Engine: it is refused.
func (e *Engine) Storm(id sim.LinkID, way sim.Way, _ sim.Storm) error {
	if err := e.checkLink(id, way); err != nil {
		return err
	}
	return fmt.Errorf("link %s: storms of pause frames exist in virtual time only", e.linkName(id))
}
