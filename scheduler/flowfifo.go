package scheduler

import "gswitch/frame"

// FlowFIFO is first-in first-out, and returns the first frame of a flow from
// wherever it stands. All frames stand in one list (Meta.QNext). Where frames
// are taken out of the middle, those with one hash also stand in a list of their
// own (Meta.Rank is the next), and all know the one before (Meta.QPrev): that is
// made for a frame when one is first looked for behind it, so a queue from which
// nothing is taken out costs no more than a plain one. Each frame is entered
// once, so each operation takes the time of a look-up on average, however long
// the queue is. Only frames of other flows with the same 32 bits of hash are
// passed over one by one.
type FlowFIFO struct {
	head, tail frame.Ref
	n          int
	flows      []flowList // open addressing with linear probing
	used       int
	listed     int       // how many frames, from the head on, are in lists of flows
	last       frame.Ref // the last of them
}

// flowList is the frames of one hash. It is empty where head is frame.Nil.
type flowList struct {
	hash       uint32
	head, tail frame.Ref
}

// NewFlowFIFO returns an empty queue with room for frames of so many flows; it
// makes itself more where there are more.
func NewFlowFIFO(flows int) *FlowFIFO {
	size := 16
	for size < 2*flows {
		size <<= 1
	}
	q := &FlowFIFO{head: frame.Nil, tail: frame.Nil, last: frame.Nil}
	q.grow(size)
	return q
}

func (q *FlowFIFO) grow(size int) {
	old := q.flows
	q.flows = make([]flowList, size)
	for i := range q.flows {
		q.flows[i].head = frame.Nil
	}
	for _, l := range old {
		if l.head != frame.Nil {
			q.flows[q.find(l.hash)] = l
		}
	}
}

// home is where the search for a hash begins. Its bits are mixed, since those
// that spread flows over ports are alike in all frames of a queue (Knuth's
// multiplicative hashing).
func (q *FlowFIFO) home(hash uint32) int {
	return int(uint64(hash*2654435769) * uint64(len(q.flows)) >> 32)
}

// find returns where the list of a hash is, or would be.
func (q *FlowFIFO) find(hash uint32) int {
	i := q.home(hash)
	for q.flows[i].head != frame.Nil && q.flows[i].hash != hash {
		if i++; i == len(q.flows) {
			i = 0
		}
	}
	return i
}

// Enqueue implements Discipline.
func (q *FlowFIFO) Enqueue(a *frame.Arena, _ frame.Time, r frame.Ref) {
	a.Meta(r).QNext = frame.Nil
	if q.n == 0 {
		q.head = r
	} else {
		a.Meta(q.tail).QNext = r
	}
	q.tail = r
	q.n++
}

// list enters the frames that are not in lists of flows yet.
func (q *FlowFIFO) list(a *frame.Arena) {
	r := q.head
	if q.listed > 0 {
		r = a.Meta(q.last).QNext
	}
	for ; q.listed < q.n; q.listed++ {
		m := a.Meta(r)
		m.QPrev, m.Rank = q.last, int64(frame.Nil)
		q.last = r
		l := &q.flows[q.find(m.Hash)]
		if l.head != frame.Nil {
			a.Meta(l.tail).Rank = int64(r)
			l.tail = r
		} else {
			*l = flowList{m.Hash, r, r}
			if q.used++; 2*q.used > len(q.flows) {
				q.grow(2 * len(q.flows))
			}
		}
		r = m.QNext
	}
}

// Head implements Discipline.
func (q *FlowFIFO) Head() frame.Ref { return q.head }

// Len implements Discipline.
func (q *FlowFIFO) Len() int { return q.n }

// Dequeue implements Discipline.
func (q *FlowFIFO) Dequeue(a *frame.Arena, _ frame.Time) frame.Ref {
	if q.listed > 0 || q.n == 0 {
		return q.dequeueListed(a)
	}
	return q.pop(a)
}

// pop removes the head of a queue of which no frame is in a list.
func (q *FlowFIFO) pop(a *frame.Arena) frame.Ref {
	r := q.head
	if q.head = a.Meta(r).QNext; q.head == frame.Nil {
		q.tail = frame.Nil
	}
	q.n--
	return r
}

func (q *FlowFIFO) dequeueListed(a *frame.Arena) frame.Ref {
	r := q.head
	if r != frame.Nil {
		// The oldest of all is the oldest of its flow.
		q.remove(a, q.find(a.Meta(r).Hash), frame.Nil, r)
	}
	return r
}

// ExtractFirst implements Extractor.
func (q *FlowFIFO) ExtractFirst(a *frame.Arena, hash uint32, same func(frame.Ref) bool) frame.Ref {
	q.list(a)
	i := q.find(hash)
	before := frame.Nil
	for r := q.flows[i].head; r != frame.Nil; r = frame.Ref(a.Meta(r).Rank) {
		if same(r) {
			q.remove(a, i, before, r)
			return r
		}
		before = r
	}
	return frame.Nil
}

// Each implements Discipline: the frames come in order.
func (q *FlowFIFO) Each(a *frame.Arena, visit func(frame.Ref) bool) {
	for r := q.head; r != frame.Nil && visit(r); r = a.Meta(r).QNext {
	}
}

// EachFlow calls visit with the first frame of each hash, from place from of
// the table on and once around, until it returns false. It returns from where to
// go on the next time.
func (q *FlowFIFO) EachFlow(a *frame.Arena, from int, visit func(frame.Ref) bool) int {
	q.list(a)
	mask := len(q.flows) - 1
	for k := range len(q.flows) {
		if r := q.flows[(from+k)&mask].head; r != frame.Nil && !visit(r) {
			return (from + k) & mask
		}
	}
	return from & mask
}

// remove takes out a frame that stands behind before in list i.
func (q *FlowFIFO) remove(a *frame.Arena, i int, before, r frame.Ref) {
	m := a.Meta(r)
	prev, next := m.QPrev, m.QNext
	if r == q.head {
		q.head, prev = next, frame.Nil
	} else {
		a.Meta(prev).QNext = next
	}
	switch {
	case r == q.last:
		q.last = prev // no frame behind it has a link to the one before
	case next != frame.Nil:
		a.Meta(next).QPrev = prev
	}
	if next == frame.Nil {
		q.tail = prev
	}
	q.n--
	q.listed--

	l, after := &q.flows[i], frame.Ref(m.Rank)
	if l.tail == r {
		l.tail = before
	}
	if before != frame.Nil {
		a.Meta(before).Rank = int64(after)
	} else if l.head = after; after == frame.Nil {
		q.vacate(i)
	}
}

// vacate closes the gap that the list at i left: lists behind it that were
// probed past it move up.
func (q *FlowFIFO) vacate(i int) {
	q.used--
	mask := len(q.flows) - 1
	for k := (i + 1) & mask; q.flows[k].head != frame.Nil; k = (k + 1) & mask {
		if (k-q.home(q.flows[k].hash))&mask >= (k-i)&mask {
			q.flows[i] = q.flows[k]
			q.flows[k].head = frame.Nil
			i = k
		}
	}
}
