package dataplane

import "gswitch/frame"

// arrivalQueue holds frames in the order of the instants at which they arrive. Frames are added nearly in order, so a
// ring suffices that is searched from its end. Its memory is allocated once.
type arrivalQueue struct {
	at         []frame.Time
	ref        []frame.Ref
	mask       uint32
	head, tail uint32
}

func newArrivalQueue(frames int) arrivalQueue {
	size := 1
	for size < frames {
		size <<= 1
	}
	return arrivalQueue{at: make([]frame.Time, size), ref: make([]frame.Ref, size), mask: uint32(size - 1)}
}

func (q *arrivalQueue) len() int  { return int(q.tail - q.head) }
func (q *arrivalQueue) room() int { return len(q.ref) - q.len() }

// push adds a frame behind those that arrive no later.
func (q *arrivalQueue) push(r frame.Ref, at frame.Time) {
	k := q.tail
	q.tail++
	for ; k != q.head && q.at[(k-1)&q.mask] > at; k-- {
		q.at[k&q.mask], q.ref[k&q.mask] = q.at[(k-1)&q.mask], q.ref[(k-1)&q.mask]
	}
	q.at[k&q.mask], q.ref[k&q.mask] = at, r
}

// first returns when the first frame arrives, or Never.
func (q *arrivalQueue) first() frame.Time {
	if q.head == q.tail {
		return frame.Never
	}
	return q.at[q.head&q.mask]
}

// pop takes the first frame out.
func (q *arrivalQueue) pop() frame.Ref {
	r := q.ref[q.head&q.mask]
	q.head++
	return r
}

// each calls f with all frames.
func (q *arrivalQueue) each(f func(frame.Ref)) {
	for i := q.head; i != q.tail; i++ {
		f(q.ref[i&q.mask])
	}
}

// release frees all frames.
func (q *arrivalQueue) release(p *frame.Pool) {
	for q.head != q.tail {
		p.Free(q.pop())
	}
}
