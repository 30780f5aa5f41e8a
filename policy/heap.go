package policy

import "slices"

// heap is a heap of packets, four below each, of which one can be removed from its middle.
// Which end is on top says worst: false puts the least key first and the oldest among
// equals, true the greatest and the newest.
type heap struct {
	v     []entry
	worst bool
	cmp   code // nil: keys are compared
	e     *Engine
}

// entry is a packet with what it is compared by. Of the heap that drops, key and
// seq are complements: the least is on top of either heap.
type entry struct {
	key  int64
	seq  uint32
	slot uint32
}

// sooner is 1 if x comes before y, and else 0.
func (x *entry) sooner(y *entry) (n int) {
	if x.key == y.key { // rarely
		return int(uint32(x.seq-y.seq) >> 31)
	}
	if x.key < y.key {
		n = 1
	}
	return n
}

// above reports whether x belongs nearer to the top than y.
func (h *heap) above(x, y *entry) bool {
	if h.cmp == nil {
		return x.sooner(y) != 0
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

// entry returns that of a packet.
func (h *heap) entry(key int64, seq, slot uint32) entry {
	if h.worst {
		return entry{^key, ^seq, slot}
	}
	return entry{key, seq, slot}
}

func (h *heap) push(x entry) {
	h.v = append(h.v, x)
	h.up(len(h.v)-1, 0, x)
}

// sort makes a heap of what was put into v in any order.
func (h *heap) sort() {
	pos := h.pos()
	for i := range h.v {
		pos[h.v[i].slot] = uint32(i)
	}
	for i := (len(h.v) - 2) / 4; i >= 0 && len(h.v) > 1; i-- {
		h.down(i, i, h.v[i])
	}
}

// up lets x rise from place i, to place root at most.
func (h *heap) up(i, root int, x entry) {
	v, pos, keys := h.v, h.pos(), h.cmp == nil
	for i > root {
		k := (i - 1) / 4
		if keys {
			if x.key > v[k].key || x.sooner(&v[k]) == 0 {
				break
			}
		} else if !h.above(&x, &v[k]) {
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
// at most: what comes from the bottom seldom belongs much higher.
func (h *heap) down(i, root int, x entry) {
	if h.cmp == nil {
		i = h.sink(i)
	}
	v, pos := h.v, h.pos()
	for k := 4*i + 1; k < len(v); k = 4*i + 1 {
		for c := k + 1; c < min(4*i+5, len(v)); c++ {
			if h.above(&v[c], &v[k]) {
				k = c
			}
		}
		v[i] = v[k]
		pos[v[i].slot] = uint32(i)
		i = k
	}
	h.up(i, root, x)
}

// sink fills place i from below as far as there are four to choose from, and returns
// which place is left. Which is first of four is found without a jump that depends on
// it, and without waiting for a key to be read by where it stands.
func (h *heap) sink(i int) int {
	v, pos := h.v, h.pos()
	for k := 4*i + 1; k+4 <= len(v); k = 4*i + 1 {
		four := (*[4]entry)(v[k:])
		a, b := four[1].sooner(&four[0]), 2+four[3].sooner(&four[2])
		left, right := min(four[0].key, four[1].key), min(four[2].key, four[3].key)
		second := 0
		if right < left {
			second = 1
		}
		if left == right { // rarely
			second = four[b&3].sooner(&four[a&3])
		}
		a ^= (a ^ b) & -second
		v[i] = four[a&3]
		pos[v[i].slot] = uint32(i)
		i = k + a
	}
	return i
}

func (h *heap) remove(slot uint32) {
	i, n := int(h.pos()[slot]), len(h.v)-1
	x := h.v[n]
	switch h.v = h.v[:n]; {
	case i == n:
	case i > 0 && h.above(&x, &h.v[(i-1)/4]):
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
