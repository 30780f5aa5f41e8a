package dataplane

import (
	"errors"
	"fmt"

	"github.com/gswitch/gswitch/fault"
	"github.com/gswitch/gswitch/frame"
)

// SetFault puts c, which says what goes wrong with the frames that p sends,
// in place of what was set before; nil, or the zero value, is nothing. Frames
// are judged in the order in which the node sends them, with random numbers
// that seed begins anew, between the node and the device. It takes effect
// between two loops of the worker and disturbs no traffic: what was held back
// before arrives as it would have.
func (e *Engine) SetFault(p *Port, c *fault.Config, seed uint64) error {
	if c == nil {
		c = &fault.Config{}
	}
	if err := c.Validate(); err != nil {
		return fmt.Errorf("port %s: %w", p.spec.Name, err)
	}
	model := fault.NewModel(seed)
	model.Set(*c)
	e.mu.Lock()
	defer e.mu.Unlock()
	p.faulty = c.Active()
	return e.withFault(p, func(_ frame.Time, f *lineFault) { f.model, f.active = model, p.faulty })
}

// SetLink cuts the link of p, or mends it. Its device stays: what it receives
// meanwhile is lost, as is what was on its way to it. The node is told. The
// far end of a wire, or of a cable, is not: it has a port of its own.
func (e *Engine) SetLink(p *Port, up bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p.cut == !up {
		return nil
	}
	p.cut = !up
	return e.withFault(p, func(now frame.Time, f *lineFault) {
		f.cut = !up
		l := p.line
		if !up {
			l.stats.Faults.Lost[fault.LossLink] += uint64(l.empty(p.worker.pool))
		}
		if l.dev != nil {
			l.node.SetLink(now, l.number, up)
		}
	})
}

// Pause stops a node until the given instant: what arrives waits below it, as
// far as the rings of its ports go, its timers and its transmissions wait
// inside. What it has sent goes on. A later call replaces it.
func (e *Engine) Pause(worker int, n frame.Node, until frame.Time) error {
	w, err := e.worker(worker)
	if err != nil {
		return err
	}
	var nd *node
	err = w.Do(func(frame.Time) {
		if nd = w.find(n); nd != nil {
			nd.until, nd.wake = until, frame.Never
			w.sleep.stale = true
		}
	})
	if err == nil && nd == nil {
		return fmt.Errorf("the node is not on worker %d", worker)
	}
	return err
}

// withFault lets the worker of p change what goes wrong there.
func (e *Engine) withFault(p *Port, change func(now frame.Time, f *lineFault)) error {
	if e.stopped {
		return ErrStopped
	}
	if p.line == nil {
		return errors.New("the port is not open")
	}
	// Memory is made here, not on the worker.
	fresh, delay := newLineFault(p.spec.DelayFrames), newDelayLine(p.spec.Delay, p.spec.DelayFrames)
	return p.worker.Do(func(now frame.Time) {
		l := p.line
		if l.fault == nil {
			l.fault = fresh
		}
		if l.delay == nil {
			l.delay = delay
		}
		change(now, l.fault)
	})
}
