package sim

import "github.com/gswitch/gswitch/frame"

// controls are what the user of the engine wants done at an instant: the
// arrivals of a workload, samples, faults. Those of one instant run in the
// order in which they were asked for, before anything else that happens then.
type controls struct {
	heap []control // binary, by time and order
	seq  uint64
}

type control struct {
	at     frame.Time
	seq    uint64
	period frame.Time // 0: once
	fn     func(now frame.Time)
}

func (c *control) before(o *control) bool {
	return c.at < o.at || c.at == o.at && c.seq < o.seq
}

// At calls fn at t, or now if t has passed.
func (e *Engine) At(t frame.Time, fn func(now frame.Time)) {
	e.ctl.push(control{at: max(t, e.now), fn: fn})
}

// Every calls fn at first and then once in each period, which must be
// positive, as long as the engine runs.
func (e *Engine) Every(first, period frame.Time, fn func(now frame.Time)) {
	e.ctl.push(control{at: max(first, e.now), period: max(period, 1), fn: fn})
}

// control runs the control event that is due.
func (e *Engine) control() {
	c := e.ctl.pop()
	e.count.Events++
	c.fn(e.now)
	if c.period > 0 {
		c.at += c.period
		e.ctl.push(c)
	}
	e.layOut()
}

func (h *controls) next() frame.Time {
	if len(h.heap) == 0 {
		return frame.Never
	}
	return h.heap[0].at
}

func (h *controls) push(c control) {
	c.seq = h.seq
	h.seq++
	h.heap = append(h.heap, c)
	k := len(h.heap) - 1
	for k > 0 && h.heap[k].before(&h.heap[(k-1)/2]) {
		h.heap[k], h.heap[(k-1)/2] = h.heap[(k-1)/2], h.heap[k]
		k = (k - 1) / 2
	}
}

func (h *controls) pop() control {
	first := h.heap[0]
	last := len(h.heap) - 1
	h.heap[0] = h.heap[last]
	h.heap[last] = control{} // for the garbage collector
	h.heap = h.heap[:last]
	for k := 0; ; {
		c := 2*k + 1
		if c >= last {
			break
		}
		if c+1 < last && h.heap[c+1].before(&h.heap[c]) {
			c++
		}
		if !h.heap[c].before(&h.heap[k]) {
			break
		}
		h.heap[k], h.heap[c] = h.heap[c], h.heap[k]
		k = c
	}
	return first
}

// layOut gives nodes and directions that were added their slots.
func (e *Engine) layOut() {
	if e.laid {
		return
	}
	e.laid = true
	e.queue.reset(e.now, len(e.dirs), len(e.nodes))
	for i := range e.dirs {
		dir := &e.dirs[i]
		if at := dir.nextArrival(); at != frame.Never {
			e.queue.set(int32(i), max(at, e.now))
		}
		if dir.txAt != frame.Never {
			e.queue.set(e.queue.firstTx+int32(i), max(dir.txAt, e.now))
		}
	}
	for i := range e.nodes {
		if at := e.nodes[i].timerAt; at != frame.Never {
			e.queue.set(e.queue.firstTimer+int32(i), max(at, e.now))
		}
	}
}
