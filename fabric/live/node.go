package live

import (
	"gswitch/dataplane"
	"gswitch/frame"
)

// node is what a worker steps for a host or a switch.
type node struct {
	frame.Stepper
	after  func(now frame.Time) // may be nil
	at     int                  // node of the topology
	worker int
	pool   *frame.Pool
	slow   *backlog // nil: it takes frames as they come
}

// backlog are frames that a slow node has not taken yet, in a ring. Where it is
// full the others wait in the rings of the ports, and what does not fit there
// is lost and counted (ringDrops).
type backlog struct {
	gap  frame.Time // 0: as fast as it can
	next frame.Time // when it takes the next
	wait []waiting
	head int
	n    int
	one  [1]frame.Ref
}

type waiting struct {
	ref  frame.Ref
	port uint16
}

// maxBacklog is how many frames wait for a slow node at most, beyond the rings
// of its ports: what a host with 16 senders may have under way.
const maxBacklog = 4096

// newBacklog leaves most of the arena to others.
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

// digest takes the frames of a slow node whose turn has come.
func (n *node) digest(now frame.Time) {
	b := n.slow
	for b.n > 0 && b.next <= now {
		w := b.pop()
		// Late is not an occasion to take two at once, but the pace is kept.
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

// Flush implements dataplane.Flusher: what waits for the node, and what the
// node itself has outside of its ports' queues, as a crossbar has.
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
