package policy

import "slices"

// heap is a binary heap of packets that also gives up one from its middle. Which
// end is on top says worst: false puts the least key first and the oldest among
// equals, true the greatest and the newest.
//
// Who is given up is not asked while there is room. So a heap of those is no more
// than a bag until it is asked, and again once it was not asked for long.
type heap struct {
	v      []entry
	worst  bool
	sorted bool // false: a bag
	idle   int  // packets that came since it was asked
	cmp    code // nil: keys are compared
	e      *Engine
}

// maxBag is up to how many packets a heap is a bag: to sort so many takes no longer
// than a burst does.
const maxBag = 4096

// entry is a packet with what it is compared by. Of the heap that gives up, key and
// seq are complements: the least is on top of either heap.
type entry struct {
	key  int64
	seq  uint32
	slot uint32
}

func (x *entry) before(y *entry) bool {
	return x.key < y.key || x.key == y.key && int32(x.seq-y.seq) < 0
}

// above reports whether x belongs nearer to the top than y.
func (h *heap) above(x, y *entry) bool {
	if h.cmp == nil {
		return x.before(y)
	}
	if h.worst {
		x, y = y, x
	}
	env := env{e: h.e, p: [2]*Packet{&h.e.slots[x.slot].Packet, &h.e.slots[y.slot].Packet}}
	if h.cmp.eval(&env) != 0 {
		return true
	}
	env.p[0], env.p[1] = env.p[1], env.p[0]
	return h.cmp.eval(&env) == 0 && h.e.slots[x.slot].older(&h.e.slots[y.slot].Packet)
}

// pos is where packets stand in this heap.
func (h *heap) pos() []uint32 {
	if h.worst {
		return h.e.admPos
	}
	return h.e.procPos
}

func (h *heap) push(x entry) {
	if h.worst {
		x.key, x.seq = ^x.key, ^x.seq
	}
	h.v = append(h.v, x)
	n := len(h.v)
	h.idle++
	switch {
	case h.sorted:
		h.up(n-1, 0, x)
		h.sorted = !h.worst || n > maxBag || h.idle <= 16*n
	case h.worst && n <= maxBag:
		h.pos()[x.slot] = uint32(n - 1)
	default:
		h.sort()
	}
}

// sort makes a heap of a bag.
func (h *heap) sort() {
	h.sorted = true
	for i := range h.v {
		h.pos()[h.v[i].slot] = uint32(i)
	}
	for i := len(h.v)/2 - 1; i >= 0; i-- {
		h.down(i, i, h.v[i])
	}
}

// top returns the slot of the packet on top; there must be one.
func (h *heap) top() uint32 {
	if h.idle = 0; !h.sorted {
		h.sort()
	}
	return h.v[0].slot
}

// up lets x rise from place i, to place root at most.
func (h *heap) up(i, root int, x entry) {
	v, pos := h.v, h.pos()
	for i > root {
		k := (i - 1) / 2
		if h.cmp == nil && !x.before(&v[k]) || h.cmp != nil && !h.above(&x, &v[k]) {
			break
		}
		v[i] = v[k]
		pos[v[i].slot] = uint32(i)
		i = k
	}
	v[i] = x
	pos[x.slot] = uint32(i)
}

// down fills place i from below, and lets x rise from where that ends, to place root
// at most: what comes from the bottom seldom belongs much higher, and the way down is
// one comparison a level, whose outcome nothing waits for.
func (h *heap) down(i, root int, x entry) {
	v, pos := h.v, h.pos()
	for k := 2*i + 1; k < len(v); k = 2*i + 1 {
		if k+1 < len(v) {
			if h.cmp != nil {
				if h.above(&v[k+1], &v[k]) {
					k++
				}
			} else if a, b := v[k].key, v[k+1].key; a != b {
				step := 0
				if b < a {
					step = 1
				}
				k += step
			} else if int32(v[k+1].seq-v[k].seq) < 0 {
				k++
			}
		}
		v[i] = v[k]
		pos[v[i].slot] = uint32(i)
		i = k
	}
	h.up(i, root, x)
}

func (h *heap) remove(slot uint32) {
	i, n := int(h.pos()[slot]), len(h.v)-1
	x := h.v[n]
	switch h.v = h.v[:n]; {
	case i == n:
	case !h.sorted:
		h.v[i] = x
		h.pos()[x.slot] = uint32(i)
	case i > 0 && h.above(&x, &h.v[(i-1)/2]):
		h.up(i, 0, x)
	default:
		h.down(i, 0, x)
	}
}

// list is a list of packets through one of their links.
type list struct{ head, tail uint32 }

const none = 1<<32 - 1

type link struct{ next, prev uint32 }

func (l *list) append(s []slot, k int, i uint32) {
	s[i].link[k] = link{none, l.tail}
	if l.tail == none {
		l.head = i
	} else {
		s[l.tail].link[k].next = i
	}
	l.tail = i
}

func (l *list) remove(s []slot, k int, i uint32) {
	x := s[i].link[k]
	if x.prev == none {
		l.head = x.next
	} else {
		s[x.prev].link[k].next = x.next
	}
	if x.next == none {
		l.tail = x.prev
	} else {
		s[x.next].link[k].prev = x.prev
	}
}

func lists(n int) []list { return slices.Repeat([]list{{none, none}}, n) }
