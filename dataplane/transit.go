package dataplane

import (
	"errors"
	"sync/atomic"

	"gswitch/frame"
	"gswitch/histogram"
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
// PortCounters report, make what follows look later than it is.
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
func (t *transit) came(now frame.Time, got uint64, until frame.Time, late *histogram.Histogram) {
	upto := t.upto.Load()
	if upto == 0 || got < upto {
		return
	}
	if t.at >= until {
		late.Observe(now - t.at)
	}
	t.upto.Store(0)
}

// maxPassages bounds what Passages notes of a direction of a port.
const maxPassages = 4096

// Passages notes when frames passed a port, the Stride-th, the one after as
// many again, and so on, for a far end in another process to be compared with:
// both count the same frames. Beyond a bound every other one is dropped and
// Stride doubles.
type Passages struct {
	Stride uint64
	At     []frame.Time // of frame number (i+1) * Stride, counted from 1
	// Still is, for arrivals, until when the node stood still (Engine.Pause), or
	// was full, which is not the frame's delay.
	Still []frame.Time
	next  uint64
}

func newPassages() *Passages {
	return &Passages{Stride: 1, At: make([]frame.Time, 0, maxPassages), Still: make([]frame.Time, 0, maxPassages), next: 1}
}

// pass notes that frames up to number upto have passed by now.
func (p *Passages) pass(now frame.Time, upto uint64, still frame.Time) {
	for p.next <= upto {
		if len(p.At) == maxPassages {
			p.halve()
			continue
		}
		p.At, p.Still = append(p.At, now), append(p.Still, still)
		p.next += p.Stride
	}
}

// halve keeps those whose number is a multiple of twice the stride.
func (p *Passages) halve() {
	for i := range maxPassages / 2 {
		p.At[i], p.Still[i] = p.At[2*i+1], p.Still[2*i+1]
	}
	p.At, p.Still = p.At[:maxPassages/2], p.Still[:maxPassages/2]
	p.Stride *= 2
	p.next = uint64(len(p.At)+1) * p.Stride
}

// Transit adds to late how long the frames took that both ends of a cable noted:
// left by the one that sent, came by the one that received them. Clocks of
// different processors agree to some nanoseconds, so none took less than nothing.
func Transit(left, came *Passages, late *histogram.Histogram) {
	if left.Stride == 0 || came.Stride == 0 {
		return
	}
	stride := max(left.Stride, came.Stride) // both are powers of two
	for n := stride; ; n += stride {
		i, k := n/left.Stride-1, n/came.Stride-1
		if i >= uint64(len(left.At)) || k >= uint64(len(came.At)) || k >= uint64(len(came.Still)) {
			return
		}
		if left.At[i] >= came.Still[k] {
			late.Observe(came.At[k] - left.At[i])
		}
	}
}

// Note lets the worker of p note when frames pass, both ways, for Port.Passages:
// where the far end of the cable is a port of another process, with the same
// clock. Frames that are lost between the two make what follows look wrong.
func (e *Engine) Note(p *Port) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return ErrStopped
	}
	if e.running {
		return errors.New("what frames take can be measured from the start on only")
	}
	p.line.sentAt, p.line.gotAt = newPassages(), newPassages()
	return nil
}

// Passages returns what Note asked for: when the device took the frames that
// were sent, and when those received came to the node. It is for after
// Engine.Halt, and nil without Note.
func (p *Port) Passages() (left, came *Passages) { return p.line.sentAt, p.line.gotAt }
