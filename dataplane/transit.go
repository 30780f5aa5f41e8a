package dataplane

import (
	"errors"
	"sync/atomic"

	"github.com/gswitch/gswitch/frame"
)

// transit samples how long frames take from the device of one port to the node
// of another, one frame at a time: the kernel, and the worker of the receiver.
// Neither shows in the lateness of timers or of the emulated link.
type transit struct {
	at   frame.Time    // when the sampled frame was given to the device; before upto
	upto atomic.Uint64 // it has arrived when so many frames have; 0: none is under way
}

// Measure lets the workers measure what frames take from one port to the other
// (WorkerStats.Transit), to which a cable leads that has no other end. Both are
// ports of the engine. Frames that are lost between the two, which
// PortCounters tell, make what follows look later than it is.
func (e *Engine) Measure(from, to *Port) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return ErrStopped
	}
	if e.running {
		return errors.New("what frames take can be measured from the start on only")
	}
	t := &transit{}
	from.line.leaving, to.line.coming = t, t
	return nil
}

// left notes that the device has taken frames, taken in all.
func (t *transit) left(now frame.Time, taken uint64) {
	if t.upto.Load() == 0 {
		t.at = now
		t.upto.Store(taken)
	}
}

// came notes that frames have arrived, got in all, at a node that stood still
// until the given instant.
func (t *transit) came(now frame.Time, got uint64, until frame.Time, late *Histogram) {
	upto := t.upto.Load()
	if upto == 0 || got < upto {
		return
	}
	if t.at >= until {
		late.add(uint64(now - t.at))
	}
	t.upto.Store(0)
}
