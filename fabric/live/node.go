package live

import (
	"gswitch/dataplane"
	"gswitch/frame"
)

// node is what a worker steps for a host or a switch.
type node struct {
	frame.Stepper
	after  func(now frame.Time) // may be nil
	at     int                  // number in the topology
	worker int
	pool   *frame.Pool
	slow   *backlog // nil if it accepts frames at once
}

// backlog is a ring of frames that a slow node has not accepted yet. When it is full,
// further frames wait in the rings of the ports, and those that do not fit there are lost
// and counted (ringDrops).
type backlog struct {
	gap  frame.Time // 0: as fast as it can
	next frame.Time // when it accepts the next frame
	wait []waiting
	head int
	n    int
	one  [1]frame.Ref
}

type waiting struct {
	ref  frame.Ref
	port uint16
}

// maxBacklog is the largest number of frames that wait for a slow node beyond the rings
// of its ports: enough for a host with 16 senders.
const maxBacklog = 4096

// newBacklog makes a backlog that leaves most of the arena to others.
func newBacklog(gap frame.Time, chunks int) *backlog {
	return &backlog{gap: gap, wait: make([]waiting, max(2*dataplane.MaxVector, min(maxBacklog, chunks/4)))}
}

func (b *backlog) push(w waiting) {
	k := b.head + b.n
	if k >= len(b.wait) {
		k -= len(b.wait)
	}
	b.wait[k] = w
	b.n++
}

func (b *backlog) pop() waiting {
	w := b.wait[b.head]
	if b.head++; b.head == len(b.wait) {
		b.head = 0
	}
	b.n--
	return w
}

// Full implements dataplane.Backpressured.
func (n *node) Full() bool {
	return n.slow != nil && len(n.slow.wait)-n.slow.n < dataplane.MaxVector
}

// Receive implements frame.Node.
func (n *node) Receive(now frame.Time, port uint16, v []frame.Ref) {
	if n.slow != nil {
		for _, r := range v {
			n.slow.push(waiting{r, port})
		}
		n.digest(now)
		return
	}
	n.Stepper.Receive(now, port, v)
	if n.after != nil {
		n.after(now)
	}
}

// Advance implements frame.Node.
func (n *node) Advance(now frame.Time) {
	if n.slow != nil {
		n.digest(now)
	}
	n.Stepper.Advance(now)
	if n.after != nil {
		n.after(now)
	}
}

// Wake implements frame.Node.
func (n *node) Wake(now frame.Time) frame.Time {
	at := n.Stepper.Wake(now)
	if b := n.slow; b != nil && b.n > 0 {
		at = min(at, b.next)
	}
	return at
}

// digest passes on the frames of a slow node that are due.
func (n *node) digest(now frame.Time) {
	b := n.slow
	for b.n > 0 && b.next <= now {
		w := b.pop()
		// Never two at once to catch up, but keep the average pace.
		b.next = max(b.next+b.gap, now+b.gap/2)
		b.one[0] = w.ref
		n.Stepper.Receive(now, w.port, b.one[:])
		if n.after != nil {
			n.after(now)
		}
	}
	if b.n == 0 && b.gap == 0 {
		n.slow = nil
	}
}

// Flush implements dataplane.Flusher. It frees the frames that wait for the node, and
// those that the node holds outside of its ports' queues, as a crossbar does.
func (n *node) Flush(now frame.Time) {
	if b := n.slow; b != nil {
		for b.n > 0 {
			n.pool.Free(b.pop().ref)
		}
		n.slow = nil
	}
	s := n.inner()
	if r, ok := s.(interface{ Inner() frame.Stepper }); ok { // it is recorded
		s = r.Inner()
	}
	if f, ok := s.(dataplane.Flusher); ok {
		f.Flush(now)
	}
}
