package dataplane

import (
	"errors"
	"fmt"

	"gswitch/fault"
	"gswitch/frame"
)

// Change is a change of what goes wrong at a port or a node, with the memory
// that it takes. Whoever is on the worker already, a node for example, makes it
// by Make, so that it comes when it is due; others let Worker.Do do so.
type Change struct {
	worker *Worker
	make   func(now frame.Time)
}

// Worker returns whose thread makes the change.
func (c Change) Worker() *Worker { return c.worker }

// Make makes the change. It is to be called once, on the worker.
func (c Change) Make(now frame.Time) { c.make(now) }

// FaultChange is what SetFault does.
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

// LinkChange is what SetLink does.
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

// PauseChange is what Pause does. A node that is not on the worker when it is
// made is left alone.
func (e *Engine) PauseChange(worker int, n frame.Node, until frame.Time) (Change, error) {
	w, err := e.worker(worker)
	if err != nil {
		return Change{}, err
	}
	return Change{w, func(frame.Time) { w.pause(n, until) }}, nil
}

// SetFault puts c, which says what goes wrong with the frames that p sends,
// in place of what was set before; nil, or the zero value, is nothing. Frames
// are judged in the order in which the node sends them, with random numbers
// that seed begins anew, between the node and the device. It takes effect
// between two loops of the worker and disturbs no traffic: what was held back
// before arrives as it would have.
func (e *Engine) SetFault(p *Port, c *fault.Config, seed uint64) error {
	change, err := e.FaultChange(p, c, seed)
	return e.do(change, err)
}

// SetLink cuts the link of p, or restores it. Its device stays: what it receives
// meanwhile is lost, as is what was on its way to it. The node is notified. The
// far end of a wire, or of a cable, is not: it has a port of its own.
func (e *Engine) SetLink(p *Port, up bool) error {
	change, err := e.LinkChange(p, up)
	return e.do(change, err)
}

// Pause stops a node until the given instant: what arrives waits below it, as
// far as the rings of its ports go, its timers and its transmissions wait
// inside. What it has sent goes on. A later call replaces it.
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

// change is one of what goes wrong at p.
func (p *Port) change(f func(now frame.Time, f *lineFault)) (Change, error) {
	if p.line == nil {
		return Change{}, errors.New("the port is not open")
	}
	// Memory is made here, not on the worker.
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
