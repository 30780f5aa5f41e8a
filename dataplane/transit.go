package dataplane

import (
	"errors"
	"sync/atomic"

	"gswitch/frame"
	"gswitch/histogram"
)

// transit samples how long frames take from the device of one port to the node of
// another, one frame at a time. That includes the kernel and the receiving worker, which
// the lateness of timers and of the emulated link do not show.
type transit struct {
	at   frame.Time    // when the sampled frame was given to the device; written before upto
	upto atomic.Uint64 // it has arrived when this many frames have; 0: no sample is in flight
}

// Measure makes the workers measure how long frames take from one port to the other
// (WorkerStats.Transit). Both are ports of the engine, joined by a cable with no other
// ends. If frames are lost between the two, which PortCounters report, later samples
// appear later than they are.
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

// left records that the device has accepted frames; taken is their total.
func (t *transit) left(now frame.Time, taken uint64) {
	if t.upto.Load() == 0 {
		t.at = now
		t.upto.Store(taken)
	}
}

// came records that frames have arrived at a node that was paused until the given
// instant; got is their total.
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

// maxPassages bounds the times that Passages records for one direction of a port.
const maxPassages = 4096

// Passages records when every Stride-th frame passed a port, for comparison with a far
// end in another process: both count the same frames. When the bound is reached, every
// other entry is dropped and Stride doubles.
type Passages struct {
	Stride uint64
	At     []frame.Time // of frame number (i+1) * Stride, counted from 1
	// Still is, for arrivals, the time until which the node was paused (Engine.Pause) or
	// full, which does not count as delay of the frame.
	Still []frame.Time
	next  uint64
}

func newPassages() *Passages {
	return &Passages{Stride: 1, At: make([]frame.Time, 0, maxPassages), Still: make([]frame.Time, 0, maxPassages), next: 1}
}

// pass records that frames up to number upto have passed by now.
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

// halve keeps the entries whose number is a multiple of twice the stride.
func (p *Passages) halve() {
	for i := range maxPassages / 2 {
		p.At[i], p.Still[i] = p.At[2*i+1], p.Still[2*i+1]
	}
	p.At, p.Still = p.At[:maxPassages/2], p.Still[:maxPassages/2]
	p.Stride *= 2
	p.next = uint64(len(p.At)+1) * p.Stride
}

// Transit adds to late the transit times of the frames that both ends of a cable
// recorded: left by the sender, came by the receiver. The clocks of different processors
// agree to some nanoseconds, so negative times count as 0.
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

// Note makes the worker of p record when frames pass, in both directions, for
// Port.Passages: for cables whose far end is a port of another process with the same
// clock. If frames are lost between the two, later entries are wrong.
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

// Passages returns what Note recorded: when the device accepted the frames sent, and when
// received frames reached the node. Call it after Engine.Halt. It returns nil without
// Note.
func (p *Port) Passages() (left, came *Passages) { return p.line.sentAt, p.line.gotAt }
