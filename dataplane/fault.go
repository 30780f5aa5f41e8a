package dataplane

import (
	"errors"
	"fmt"

	"gswitch/fault"
	"gswitch/frame"
)

// Change is a change of the faults of a port or node, with the memory that it needs. Code
// that already runs on the worker, such as a node, applies it with Make, at the exact
// time. Other callers apply it through Worker.Do.
type Change struct {
	worker *Worker
	make   func(now frame.Time)
}

// Worker returns the worker that has to apply the change.
func (c Change) Worker() *Worker { return c.worker }

// Make applies the change. It must be called once, on the worker.
func (c Change) Make(now frame.Time) { c.make(now) }

// FaultChange returns the change that SetFault makes.
func (e *Engine) FaultChange(p *Port, c *fault.Config, seed uint64) (Change, error) {
	if c == nil {
		c = &fault.Config{}
	}
	if err := c.Validate(); err != nil {
		return Change{}, fmt.Errorf("port %s: %w", p.spec.Name, err)
	}
	model, active := fault.NewModel(seed), c.Active()
	model.Set(*c)
	return p.change(func(_ frame.Time, f *lineFault) {
		f.model, f.active = model, active
		p.faulty.Store(active)
	})
}

// LinkChange returns the change that SetLink makes.
func (e *Engine) LinkChange(p *Port, up bool) (Change, error) {
	return p.change(func(now frame.Time, f *lineFault) {
		if f.cut == !up {
			return
		}
		f.cut = !up
		p.cut.Store(!up)
		l := p.line
		if !up {
			l.stats.Faults.Lost[fault.LossLink] += uint64(l.empty(p.worker.pool))
		}
		if l.dev != nil {
			l.node.SetLink(now, l.number, up)
		}
	})
}

// PauseChange returns the change that Pause makes. It has no effect on a node that has
// left the worker by then.
func (e *Engine) PauseChange(worker int, n frame.Node, until frame.Time) (Change, error) {
	w, err := e.worker(worker)
	if err != nil {
		return Change{}, err
	}
	return Change{w, func(frame.Time) { w.pause(n, until) }}, nil
}

// SetFault replaces the faults of the frames that p sends with c; nil or the zero value
// is no fault. The faults are applied between node and device, to frames in the order in
// which the node sends them, with a new random sequence from seed. The change takes
// effect between two loops of the worker and does not disturb traffic: frames that were
// held back before arrive as they would have.
func (e *Engine) SetFault(p *Port, c *fault.Config, seed uint64) error {
	change, err := e.FaultChange(p, c, seed)
	return e.do(change, err)
}

// SetLink cuts the link of p, or restores it. The device stays open: frames that it
// receives meanwhile are lost, as are those on their way to it. The node is notified. The
// far end of a wire or cable is not: it is a port of its own.
func (e *Engine) SetLink(p *Port, up bool) error {
	change, err := e.LinkChange(p, up)
	return e.do(change, err)
}

// Pause stops a node until the given instant. Arriving frames wait below it, as far as
// the rings of its ports have room; its timers and transmissions wait inside. Frames that
// it has already sent continue. A later call replaces an earlier one.
func (e *Engine) Pause(worker int, n frame.Node, until frame.Time) error {
	w, err := e.worker(worker)
	if err != nil {
		return err
	}
	found := false
	err = w.Do(func(frame.Time) { found = w.pause(n, until) })
	if err == nil && !found {
		return fmt.Errorf("the node is not on worker %d", worker)
	}
	return err
}

func (w *Worker) pause(n frame.Node, until frame.Time) (found bool) {
	nd := w.find(n)
	if nd == nil {
		return false
	}
	nd.until, nd.wake = until, frame.Never
	w.sleep.stale = true
	return true
}

func (e *Engine) do(c Change, err error) error {
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return ErrStopped
	}
	return c.worker.Do(c.make)
}

// change returns a change of p's faults.
func (p *Port) change(f func(now frame.Time, f *lineFault)) (Change, error) {
	if p.line == nil {
		return Change{}, errors.New("the port is not open")
	}
	// Allocate here, not on the worker.
	fresh, delay := newLineFault(p.spec.DelayFrames), newDelayLine(p.spec.Delay, p.spec.DelayFrames)
	return Change{p.worker, func(now frame.Time) {
		l := p.line
		if l.fault == nil {
			l.fault = fresh
		}
		if l.delay == nil {
			l.delay = delay
		}
		f(now, l.fault)
	}}, nil
}
