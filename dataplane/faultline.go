package dataplane

import (
	"gswitch/fault"
	"gswitch/frame"
	"gswitch/histogram"
)

// FaultCounters count the effects of SetFault and SetLink at a port, in frames.
type FaultCounters struct {
	Lost       [fault.NumLosses]uint64 // sent by the node and lost, by reason
	RxLost     uint64                  // arrived while the link was cut
	Held       uint64                  // held back, so that others overtook them
	Duplicated uint64                  // sent twice
	Uncopied   uint64                  // not sent twice as they should have been, since there was no free chunk
	Flipped    uint64                  // sent with bits inverted
}

// LostFrames returns how many frames that the node sent were lost.
func (c *FaultCounters) LostFrames() (n uint64) {
	for _, k := range c.Lost {
		n += k
	}
	return n
}

// Add adds the counters of another port.
func (c *FaultCounters) Add(o *FaultCounters) {
	for i := range o.Lost {
		c.Lost[i] += o.Lost[i]
	}
	c.RxLost += o.RxLost
	c.Held += o.Held
	c.Duplicated += o.Duplicated
	c.Uncopied += o.Uncopied
	c.Flipped += o.Flipped
}

// lineFault is the fault between a node and the device of a port. A port that has one
// also has a delay line.
type lineFault struct {
	model  fault.Model
	active bool // the model may have an effect
	cut    bool // the link is down
	free   frame.Time
	late   arrivalQueue // frames that others overtake
}

func newLineFault(frames int) *lineFault { return &lineFault{late: newArrivalQueue(frames)} }

// draw returns how many frames the node may be asked for: each may become two, and a slow
// link accepts a frame only when it has sent the previous one.
func (f *lineFault) draw(now frame.Time, d *delayLine) int {
	n := min(d.room(), f.late.room()) / 2
	if f.model.Slows() && n > 0 {
		if f.free > now {
			return 0
		}
		return 1
	}
	return n
}

// launch puts a frame that the node has sent on the link, after applying the faults.
func (w *Worker) launch(now frame.Time, l *line, r frame.Ref) {
	f, m, st := l.fault, w.arena.Meta(r), &l.stats.Faults
	at := departure(m, now)
	if f.model.Slows() {
		span := frame.Time(m.Span)
		at = max(at-span, f.free) + f.model.Span(span)
		f.free = at
	}
	v := fault.Verdict{Loss: fault.LossLink}
	if !f.cut {
		v = f.model.Judge(w.arena.Bytes(r), m)
	}
	if v.Loss != fault.LossNone {
		st.Lost[v.Loss]++
		w.pool.Free(r)
		return
	}
	if v.Flipped {
		st.Flipped++
	}
	if v.Held {
		st.Held++
	}
	second := frame.Nil
	if v.Duplicate {
		if second = w.pool.Copy(r); second == frame.Nil {
			st.Uncopied++
		} else {
			st.Duplicated++
		}
	}
	m.Arrival = l.enter(r, at+v.Late, v.Held)
	l.stamps.enter(w.arena, r, m.Arrival)
	if second != frame.Nil {
		again := l.enter(second, at+v.Late, v.Held)
		w.arena.Meta(second).Arrival = again
		l.stamps.enter(w.arena, second, again)
	}
}

// enter puts a frame on the link and returns when it arrives.
func (l *line) enter(r frame.Ref, depart frame.Time, held bool) frame.Time {
	if held {
		at := depart + l.delay.delay + l.fault.model.ReorderBy()
		l.fault.late.push(r, at)
		return at
	}
	return l.delay.send(r, depart)
}

// launchAll is the node's side of transmitDelayed on a port with a fault.
func (w *Worker) launchAll(now frame.Time, l *line) (moved bool) {
	for left := txVectors * vector; left > 0; {
		room := min(l.fault.draw(now, l.delay), vector, left)
		if room <= 0 {
			break
		}
		n := l.node.Transmit(now, l.number, w.vec[:room])
		if n == 0 {
			break
		}
		moved = true
		left -= n
		w.sent(now, l, w.vec[:n])
		for _, r := range w.vec[:n] {
			w.launch(now, l, r)
		}
		if n < room {
			break
		}
	}
	return moved
}

// arrived moves the frames that have passed the emulated link by now to out, in the order
// of their arrival times; at the same instant, frames that were not overtaken come first.
// It records how late that is.
func (l *line) arrived(now frame.Time, out []frame.Ref, late *histogram.Histogram) int {
	d := l.delay
	if l.fault == nil {
		return d.arrived(now, out, late)
	}
	q := &l.fault.late
	if q.first() > now {
		return d.arrived(now, out, late)
	}
	for n := range out {
		switch a, b := d.first(), q.first(); {
		case a <= now && a <= b:
			late.Observe(now - a)
			out[n] = d.pop()
		case b <= now:
			late.Observe(now - b)
			out[n] = q.pop()
		default:
			return n
		}
	}
	return len(out)
}

// endFault removes the fault from a port when it has no effect any more.
func (l *line) endFault() {
	if f := l.fault; f.active || f.cut || f.late.len() > 0 {
		return
	}
	if !l.cable && l.delay.len() > 0 {
		return
	}
	l.fault = nil
	if !l.cable {
		l.delay = nil
	}
}

// arrives returns when the next frame arrives over the emulated link.
func (l *line) arrives() frame.Time {
	if l.fault == nil {
		return l.delay.first()
	}
	return min(l.delay.first(), l.fault.late.first())
}

// waiting returns how many frames are between the node and the device.
func (l *line) waiting() int {
	n := l.nheld
	if l.delay != nil {
		n += l.delay.len()
	}
	if l.fault != nil {
		n += l.fault.late.len()
	}
	return n
}

// empty frees the frames between the node and the device, and returns how many.
func (l *line) empty(p *frame.Pool) int {
	n := l.waiting()
	for _, r := range l.held[:l.nheld] {
		p.Free(r)
	}
	l.nheld = 0
	if l.delay != nil {
		l.delay.release(p)
	}
	if l.fault != nil {
		l.fault.late.release(p)
	}
	return n
}
