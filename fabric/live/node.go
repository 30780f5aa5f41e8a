package live

import "github.com/gswitch/gswitch/frame"

// node is what a worker steps for a host or a switch.
type node struct {
	frame.Stepper
	after  func(now frame.Time) // may be nil
	at     int                  // node of the topology
	worker int
	pool   *frame.Pool
	slow   *backlog // nil: it takes frames as they come
}

// backlog are frames that a slow node has not taken yet.
type backlog struct {
	gap  frame.Time // 0: as fast as it can
	next frame.Time // when it takes the next
	wait []waiting
	head int
	one  [1]frame.Ref
}

type waiting struct {
	ref  frame.Ref
	port uint16
}

// Receive implements frame.Node.
func (n *node) Receive(now frame.Time, port uint16, v []frame.Ref) {
	if n.slow != nil {
		for _, r := range v {
			n.slow.wait = append(n.slow.wait, waiting{r, port})
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
	if b := n.slow; b != nil && b.head < len(b.wait) {
		at = min(at, b.next)
	}
	return at
}

// digest takes the frames of a slow node whose turn has come.
func (n *node) digest(now frame.Time) {
	b := n.slow
	for b.head < len(b.wait) && b.next <= now {
		w := b.wait[b.head]
		b.head++
		// Late is not an occasion to take two at once, but the pace is kept.
		b.next = max(b.next+b.gap, now+b.gap/2)
		b.one[0] = w.ref
		n.Stepper.Receive(now, w.port, b.one[:])
		if n.after != nil {
			n.after(now)
		}
	}
	if b.head == len(b.wait) {
		b.wait, b.head = b.wait[:0], 0
		if b.gap == 0 {
			n.slow = nil
		}
	}
}

// Flush implements dataplane.Flusher.
func (n *node) Flush(frame.Time) {
	if b := n.slow; b != nil {
		for _, w := range b.wait[b.head:] {
			n.pool.Free(w.ref)
		}
		n.slow = nil
	}
}
