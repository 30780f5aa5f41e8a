package sim

import (
	"fmt"

	"gswitch/fault"
	"gswitch/frame"
)

// Faults of links and nodes as a whole. All act at once; At does them later.

// SetLink takes a link down or up, at both ends. Frames on a link that goes
// down are lost.
func (e *Engine) SetLink(id LinkID, up bool) error {
	if _, err := e.direction(id, Forth); err != nil {
		return err
	}
	e.setLink(int32(2*id), up, fault.LossLink)
	return nil
}

func (e *Engine) setLink(d int32, up bool, cause fault.Loss) {
	if e.dirs[d].up == up {
		return
	}
	for k := d; k < d+2; k++ {
		e.dirs[k].up = up
		if !up {
			e.empty(k, cause)
		}
	}
	e.notifyLink(d, up)
}

// notifyLink notifies both nodes of the link of direction d.
func (e *Engine) notifyLink(d int32, up bool) {
	for k := d; k < d+2; k++ {
		dir := &e.dirs[k]
		n := &e.nodes[dir.from]
		n.step.SetLink(n.local(e.now), dir.fromPort, up)
		e.markDirty(dir.from)
	}
}

// Pause stops a node until the given instant: what arrives waits before it,
// its timers and its transmissions wait inside. A later call replaces it.
func (e *Engine) Pause(node int, until frame.Time) error {
	if err := e.checkNode(node); err != nil {
		return err
	}
	e.nodes[node].pausedUntil = until
	e.inStep("a node pauses")
	e.markDirty(int32(node))
	return nil
}

// Slow makes a node take at most one frame in gap ns over all its ports, as a
// host that does not keep up; others wait before it, on their links. 0 ends it.
func (e *Engine) Slow(node int, gap frame.Time) error {
	if err := e.checkNode(node); err != nil {
		return err
	}
	e.nodes[node].gap = max(gap, 0)
	e.inStep("a node is slow")
	return nil
}

// Reboot takes all links of a node down for the given time. It drops what it
// has queued for them, and what is on them is lost.
func (e *Engine) Reboot(node int, down frame.Time) error {
	if err := e.checkNode(node); err != nil {
		return err
	}
	var cut []int32 // links that were up
	for _, d := range e.nodes[node].ports {
		if d != noDir && e.dirs[d].up {
			cut = append(cut, d&^1)
			e.setLink(d&^1, false, fault.LossReboot)
		}
	}
	e.At(e.now+max(down, 0), func(frame.Time) {
		for _, d := range cut {
			e.setLink(d, true, fault.LossNone)
		}
	})
	return nil
}

// SetClock lets a node's own time run faster by drift (parts per billion,
// negative: slower) and puts it forward or back by step, from now on. The node
// must not see time go back: a step back is made up by a clock that runs at
// half speed until it is done, as adjtime does. The ports of a fast node start
// a frame up to a nanosecond late, since it does not see each of its own.
func (e *Engine) SetClock(node int, drift int64, step frame.Time) error {
	if err := e.checkNode(node); err != nil {
		return err
	}
	if drift < -MaxDrift || drift > MaxDrift {
		return fmt.Errorf("node %d: a drift of %d parts per billion is beyond %d", node, drift, MaxDrift)
	}
	n := &e.nodes[node]
	base := n.local(e.now)
	if step >= 0 {
		n.clock = NewOscillator(e.now, base+step, drift)
		e.rearmNode(int32(node))
		return nil
	}
	n.clock = NewOscillator(e.now, base, -ppb/2)
	c := n.clock
	done := c.Engine(base - step) // half speed loses as much as it gains
	e.At(done, func(now frame.Time) {
		if e.nodes[node].clock == c { // it was not set since
			e.nodes[node].clock = NewOscillator(now, e.nodes[node].local(now), drift)
			e.rearmNode(int32(node))
		}
	})
	e.rearmNode(int32(node))
	return nil
}

// LocalTime returns the own time of a node at an instant, which is not before its
// clock was set last.
func (e *Engine) LocalTime(node int, at frame.Time) frame.Time { return e.nodes[node].local(at) }

// rearmNode asks a node anew when it wants to be called: its clock changed.
func (e *Engine) rearmNode(i int32) {
	e.layOut()
	for _, d := range e.nodes[i].ports {
		if d != noDir {
			e.part(i).offer(d, &e.nodes[i])
		}
	}
	e.markDirty(i)
}

func (e *Engine) checkNode(node int) error {
	if node < 0 || node >= len(e.nodes) {
		return fmt.Errorf("there is no node %d", node)
	}
	return nil
}
