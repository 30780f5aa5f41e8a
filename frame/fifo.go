package frame

// FIFO is an intrusive queue of frames, linked through Meta.QNext. It needs
// no memory of its own. The zero value is not ready: use NewFIFO or Init.
type FIFO struct {
	head, tail Ref
	n          int
}

// Init makes q empty.
func (q *FIFO) Init() { q.head, q.tail, q.n = Nil, Nil, 0 }

// Len returns the number of frames.
func (q *FIFO) Len() int { return q.n }

// Head returns the oldest frame, or Nil.
func (q *FIFO) Head() Ref {
	if q.n == 0 {
		return Nil
	}
	return q.head
}

// Push appends r.
func (q *FIFO) Push(a *Arena, r Ref) {
	a.meta[r].QNext = Nil
	if q.n == 0 {
		q.head = r
	} else {
		a.meta[q.tail].QNext = r
	}
	q.tail = r
	q.n++
}

// PushAll appends the frames of v, which is not empty, in their order.
func (q *FIFO) PushAll(a *Arena, v []Ref) {
	for i, r := range v[:len(v)-1] {
		a.meta[r].QNext = v[i+1]
	}
	last := v[len(v)-1]
	a.meta[last].QNext = Nil
	if q.n == 0 {
		q.head = v[0]
	} else {
		a.meta[q.tail].QNext = v[0]
	}
	q.tail = last
	q.n += len(v)
}

// Pop removes and returns the oldest frame, or Nil.
func (q *FIFO) Pop(a *Arena) Ref {
	if q.n == 0 {
		return Nil
	}
	r := q.head
	q.head = a.meta[r].QNext
	q.n--
	return r
}
