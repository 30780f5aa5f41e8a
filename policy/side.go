package policy

import "math/bits"

// side is one of the two orders that a queue keeps of the same packets: the one that
// it serves by, or the one that it gives up by.
type side struct {
	order  *order
	worst  bool // it is asked for the last in its order
	shared bool // the lists of the other side serve, from their other end
	link   int  // of its lists
	some   uint64
	levels []list
	heap   heap
}

func newSide(e *Engine, o *order, worst bool) *side {
	s := &side{order: o, worst: worst, link: 1}
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

func (s *side) key(x *env) int64 {
	if s.order.kind == byLevels || s.order.kind == byKey {
		return s.order.key.eval(x)
	}
	return 0
}

func (s *side) put(e *Engine, i uint32, x *env) {
	switch s.order.kind {
	case byLevels:
		if s.shared {
			return
		}
		k := int(min(max(s.key(x)-s.order.lo, 0), int64(s.order.n-1)))
		e.slots[i].level[s.link-1] = uint8(k)
		s.levels[k].append(e.slots, s.link, i)
		s.some |= 1 << k
	case byKey, byCompare:
		s.heap.push(entry{s.key(x), e.slots[i].seq, i})
	}
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
		s.heap.remove(i)
	}
}

// pick returns the packet at the end that the side is asked for. all are those of
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
		return s.heap.top()
	}
	if (s.order.kind == byFirst) != s.worst {
		return all.head
	}
	return all.tail
}
