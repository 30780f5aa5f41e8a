package live

import "github.com/gswitch/gswitch/frame"

// control runs what is to happen at an instant on its worker: arrivals of a
// workload, samples, faults. To the worker it is a node without ports.
type control struct {
	heap []event // binary, by time and order
	seq  uint64
	ran  uint64
}

type event struct {
	at     frame.Time
	seq    uint64
	period frame.Time // 0: once
	fn     func(now frame.Time)
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// Advance implements frame.Node: it runs what is due, in the order of the
// instants and, at one instant, in which it was asked for.
func (c *control) Advance(now frame.Time) {
	for len(c.heap) > 0 && c.heap[0].at <= now {
		e := c.heap[0]
		if e.period == 0 {
			c.pop()
		} else {
			// What was missed is not made up for: samples of one instant tell
			// nothing more.
			again := e
			again.at += (now - e.at) / e.period * e.period
			again.at += e.period
			again.seq = c.seq
			c.seq++
			c.heap[0] = again
			c.sink(0)
		}
		c.ran++
		e.fn(now)
	}
}

func (c *control) next() frame.Time {
	if len(c.heap) == 0 {
		return frame.Never
	}
	return c.heap[0].at
}

func (c *control) push(e event) {
	e.seq = c.seq
	c.seq++
	c.heap = append(c.heap, e)
	for k := len(c.heap) - 1; k > 0 && c.heap[k].before(&c.heap[(k-1)/2]); k = (k - 1) / 2 {
		c.heap[k], c.heap[(k-1)/2] = c.heap[(k-1)/2], c.heap[k]
	}
}

// pop removes the first event.
func (c *control) pop() {
	last := len(c.heap) - 1
	c.heap[0] = c.heap[last]
	c.heap[last] = event{} // for the garbage collector
	c.heap = c.heap[:last]
	c.sink(0)
}

func (c *control) sink(k int) {
	for {
		child := 2*k + 1
		if child >= len(c.heap) {
			return
		}
		if child+1 < len(c.heap) && c.heap[child+1].before(&c.heap[child]) {
			child++
		}
		if !c.heap[child].before(&c.heap[k]) {
			return
		}
		c.heap[k], c.heap[child] = c.heap[child], c.heap[k]
		k = child
	}
}

// Wake implements frame.Node.
func (c *control) Wake(frame.Time) frame.Time { return c.next() }

// Receive implements frame.Node; there are no ports.
func (c *control) Receive(frame.Time, uint16, []frame.Ref) {}

// Transmit implements frame.Node.
func (c *control) Transmit(frame.Time, uint16, []frame.Ref) int { return 0 }

// SetLink implements frame.Node.
func (c *control) SetLink(frame.Time, uint16, bool) {}
