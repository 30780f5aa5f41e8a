package policy

import "math/bits"

// side is one of the two orders that a queue keeps of the same packets: the one that
// it serves by, or the one that it drops by.
//
// Which packet to drop is not needed while there is room. So the heap for that is not
// built until it is needed, and discarded after long without use.
type side struct {
	order  *order
	queue  *queue
	worst  bool // it returns the last in its order
	shared bool // the lists of the other side serve, from their other end
	lazy   bool // its heap is not built
	idle   int  // packets that came since the heap was used
	link   int  // of its lists
	some   uint64
	levels []list
	heap   heap
}

// maxLazy is up to how many packets there need not be a heap: to make one of so many
// takes no longer than a burst does.
const maxLazy = 4096

func newSide(e *Engine, q *queue, o *order, worst bool) *side {
	s := &side{order: o, queue: q, worst: worst, lazy: worst && o.heap(), link: 1}
	if worst {
		s.link = 2
	}
	switch o.kind {
	case byLevels:
		s.levels = lists(o.n)
	case byKey:
		s.heap = heap{worst: worst, e: e}
	case byCompare:
		s.heap = heap{worst: worst, e: e, cmp: o.cmp}
	}
	return s
}

func (s *side) put(e *Engine, i uint32, x *env) {
	switch s.order.kind {
	case byLevels:
		if s.shared {
			return
		}
		k := int(min(max(s.order.key.eval(x)-s.order.lo, 0), int64(s.order.n-1)))
		e.slots[i].level[s.link-1] = uint8(k)
		s.levels[k].append(e.slots, s.link, i)
		s.some |= 1 << k
	case byKey, byCompare:
		switch n := s.queue.n; {
		case s.lazy && n < maxLazy:
		case s.lazy:
			s.build(e)
		default:
			s.heap.push(s.entry(e, i, x))
			if s.idle++; s.worst && s.idle > 16*int(n+1) && n < maxLazy {
				s.lazy, s.heap.v = true, s.heap.v[:0]
			}
		}
	}
}

// entry returns what a packet is compared by.
func (s *side) entry(e *Engine, i uint32, x *env) entry {
	key := int64(0)
	if s.order.kind == byKey {
		key = s.order.key.eval(x)
	}
	return s.heap.entry(key, e.slots[i].seq, i)
}

// build makes the heap, of all that the other side has.
func (s *side) build(e *Engine) {
	s.lazy = false
	s.queue.each(e, func(i uint32) bool {
		x := env{e: e, p: [2]*Packet{&e.slots[i].Packet, nil}, q: [2]*queue{s.queue, nil}}
		s.heap.v = append(s.heap.v, s.entry(e, i, &x))
		return true
	})
	s.heap.sort()
}

func (s *side) take(e *Engine, i uint32) {
	switch s.order.kind {
	case byLevels:
		if s.shared {
			return
		}
		k := e.slots[i].level[s.link-1]
		if s.levels[k].remove(e.slots, s.link, i); s.levels[k].head == none {
			s.some &^= 1 << k
		}
	case byKey, byCompare:
		if !s.lazy {
			s.heap.remove(i)
		}
	}
}

// pick returns the packet at the end that the side serves or drops. all are those of
// the queue, as they came; there must be one.
func (s *side) pick(all *list, other *side) uint32 {
	switch s.order.kind {
	case byLevels:
		of := s
		if s.shared {
			of = other
		}
		if s.worst {
			return of.levels[bits.Len64(of.some)-1].tail
		}
		return of.levels[bits.TrailingZeros64(of.some)].head
	case byKey, byCompare:
		if s.idle = 0; s.lazy {
			s.build(s.heap.e)
		}
		return s.heap.v[0].slot
	}
	if (s.order.kind == byFirst) != s.worst {
		return all.head
	}
	return all.tail
}
