package live

import (
	"fmt"

	"gswitch/frame"
	"gswitch/sim"
)

// timed steps a node by its own oscillator: it converts the times that the node is given
// and those that it returns, as in virtual time.
type timed struct {
	frame.Stepper
	osc   *sim.Oscillator
	arena *frame.Arena
}

// Receive implements frame.Node.
func (t *timed) Receive(now frame.Time, port uint16, v []frame.Ref) {
	for _, r := range v {
		if m := t.arena.Meta(r); m.Stamp != 0 {
			m.Stamp = t.osc.Local(m.Stamp)
		}
	}
	t.Stepper.Receive(t.osc.Local(now), port, v)
}

// Transmit implements frame.Node.
func (t *timed) Transmit(now frame.Time, port uint16, out []frame.Ref) int {
	n := t.Stepper.Transmit(t.osc.Local(now), port, out)
	for _, r := range out[:n] {
		if m := t.arena.Meta(r); m.Depart > 0 {
			start, end := t.osc.Engine(m.Depart), t.osc.Engine(m.Depart+frame.Time(m.Span))
			m.Depart, m.Span = start, uint32(end-start)
		}
	}
	return n
}

// Advance implements frame.Node.
func (t *timed) Advance(now frame.Time) { t.Stepper.Advance(t.osc.Local(now)) }

// SetLink implements frame.Node.
func (t *timed) SetLink(now frame.Time, port uint16, up bool) {
	t.Stepper.SetLink(t.osc.Local(now), port, up)
}

// Wake implements frame.Node.
func (t *timed) Wake(now frame.Time) frame.Time {
	at := t.Stepper.Wake(t.osc.Local(now))
	if at == frame.Never {
		return at
	}
	return t.osc.Engine(at)
}

// inner returns the node without its oscillator.
func (n *node) inner() frame.Stepper {
	if t, ok := n.Stepper.(*timed); ok {
		return t.Stepper
	}
	return n.Stepper
}

// local returns the node's own time.
func (n *node) local(at frame.Time) frame.Time {
	if t, ok := n.Stepper.(*timed); ok {
		return t.osc.Local(at)
	}
	return at
}

// LocalTime implements vnet.Engine. Callbacks may ask only for nodes on their own worker.
func (e *Engine) LocalTime(node int, at frame.Time) frame.Time { return e.nodes[node].local(at) }

// SetClock implements vnet.Engine, as in sim.Engine. For a step back, the oscillator runs
// at half speed until the step is done.
func (e *Engine) SetClock(node int, drift int64, step frame.Time) error {
	if err := e.checkNode(node); err != nil {
		return err
	}
	n := e.nodes[node]
	if drift < -sim.MaxDrift || drift > sim.MaxDrift {
		return fmt.Errorf("%s: a drift of %d parts per billion is beyond %d", e.spec.Plan.Topology.Nodes[n.at].Name, drift, sim.MaxDrift)
	}
	if !e.owns(n.at) {
		return nil
	}
	if e.tape != nil {
		e.tape.Lose("a node has a clock of its own from here on, which is not recorded")
	}
	return e.on(n.worker, func(now frame.Time) {
		base := n.local(now)
		if step >= 0 {
			n.use(sim.NewOscillator(now, base+step, drift))
			return
		}
		slow := sim.NewOscillator(now, base, -sim.MaxDrift)
		n.use(slow)
		e.ctl[n.worker].Put(sim.Entry{At: slow.Engine(base - step), Do: func(now frame.Time) { // half speed loses as much time as it gains
			if n.Stepper.(*timed).osc == slow { // not set again in the meantime
				n.use(sim.NewOscillator(now, slow.Local(now), drift))
			}
		}})
	})
}

// use gives a node an oscillator.
func (n *node) use(o *sim.Oscillator) { n.Stepper = &timed{n.inner(), o, n.pool.Arena} }
