package policy

import "math/bits"

// side is one of the two orders that a queue keeps of the same packets: the one that
// it serves by, or the one that it gives up by.
//
// Who is given up is not asked while there is room. So a heap of those is not made
// until it is asked for, and given up again when it was not for long.
type side struct {
	order  *order
	queue  *queue
	worst  bool // it is asked for the last in its order
	shared bool // the lists of the other side serve, from their other end
	asleep bool // its heap is not made
	idle   int  // packets that came since the heap was asked
	link   int  // of its lists
	some   uint64
	levels []list
	heap   heap
}

// maxAsleep is up to how many packets there need not be a heap: to make one of so many
// takes no longer than a burst does.
const maxAsleep = 4096

func newSide(e *Engine, q *queue, o *order, worst bool) *side {
	s := &side{order: o, queue: q, worst: worst, asleep: worst && o.heap(), link: 1}
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
		case s.asleep && n < maxAsleep:
		case s.asleep:
			s.wake(e)
		default:
			s.heap.push(s.entry(e, i, x))
			if s.idle++; s.worst && s.idle > 16*int(n+1) && n < maxAsleep {
				s.asleep, s.heap.v = true, s.heap.v[:0]
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

// wake makes the heap, of all that the other side has.
func (s *side) wake(e *Engine) {
	s.asleep = false
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
		if !s.asleep {
			s.heap.remove(i)
		}
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
		if s.idle = 0; s.asleep {
			s.wake(s.heap.e)
		}
		return s.heap.v[0].slot
	}
	if (s.order.kind == byFirst) != s.worst {
		return all.head
	}
	return all.tail
}
