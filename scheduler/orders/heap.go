package orders

import (
	"math"
	"slices"

	"gswitch/frame"
)

// heap is an interval heap (van Leeuwen and Wood, "Interval heaps", The Computer
// Journal 36(3), 1993): a double-ended priority queue. Node k is the
// pair 2k, 2k+1 with the lower entry first, and the interval of a node lies
// within that of its parent (k-1)/2.
type heap struct {
	v   []entry
	seq uint32
}

// entry is a frame with what it is ordered by: no two are equal.
type entry struct {
	rank int64
	seq  uint32
	ref  frame.Ref
}

func (e *entry) before(f *entry) bool {
	return e.rank < f.rank || e.rank == f.rank && e.seq < f.seq
}

func (h *heap) len() int { return len(h.v) }

// first returns the entry of least rank, the oldest among equals. There must be
// one.
func (h *heap) first() *entry { return &h.v[0] }

func (h *heap) push(rank int64, r frame.Ref) {
	if h.seq == math.MaxUint32 {
		h.renumber()
	}
	h.insert(entry{rank, h.seq, r})
	h.seq++
}

func (h *heap) insert(e entry) {
	i := len(h.v)
	h.v = append(h.v, e)
	if i&1 != 0 {
		if e.before(&h.v[i-1]) {
			h.v[i] = h.v[i-1]
			h.up(i-1, e)
		} else {
			h.upMax(i, e)
		}
		return
	}
	if i == 0 {
		return
	}
	p := (i/2 - 1) / 2 * 2
	switch {
	case e.before(&h.v[p]):
		h.up(i, e)
	case h.v[p+1].before(&e):
		h.upMax(i, e)
	}
}

// up lets e rise from the lower place i.
func (h *heap) up(i int, e entry) {
	v := h.v
	for i > 1 {
		p := (i/2 - 1) / 2 * 2
		if !e.before(&v[p]) {
			break
		}
		v[i] = v[p]
		i = p
	}
	v[i] = e
}

// upMax lets e rise from place i, the upper one of its node or its only one.
func (h *heap) upMax(i int, e entry) {
	v := h.v
	for i > 1 {
		p := (i/2-1)/2*2 + 1
		if !v[p].before(&e) {
			break
		}
		v[i] = v[p]
		i = p
	}
	v[i] = e
}

// pop removes and returns the entry of least rank.
func (h *heap) pop() entry {
	v := h.v
	top, n := v[0], len(v)-1
	e := v[n]
	h.v = v[:n]
	if n == 0 {
		return top
	}
	v = h.v
	i := 0
	for c := 2; c < n; c = 2*i + 2 { // the children of node i/2 begin at 2i+2
		if c+2 < n && v[c+2].before(&v[c]) {
			c += 2
		}
		if !v[c].before(&e) {
			break
		}
		v[i] = v[c]
		i = c
		if i+1 < n && v[i+1].before(&e) {
			e, v[i+1] = v[i+1], e
		}
	}
	v[i] = e
	if i+1 < n && v[i+1].before(&e) {
		v[i], v[i+1] = v[i+1], v[i]
	}
	return top
}

// popMax removes and returns the entry of greatest rank, the newest among
// equals.
func (h *heap) popMax() entry {
	v := h.v
	n := len(v) - 1
	if n <= 1 {
		h.v = v[:n]
		return v[n]
	}
	top, e := v[1], v[n]
	h.v = v[:n]
	v = h.v
	i := 1
	for c := 2*i + 1; c-1 < n; c = 2*i + 1 {
		c = min(c, n-1) // a node with one entry
		if d := min(2*i+3, n-1); 2*i+2 < n && v[c].before(&v[d]) {
			c = d
		}
		if !e.before(&v[c]) {
			break
		}
		v[i] = v[c]
		i = c
		if i&1 == 0 { // the only entry of the last node
			break
		}
		if e.before(&v[i-1]) {
			e, v[i-1] = v[i-1], e
		}
	}
	v[i] = e
	if i&1 != 0 && e.before(&v[i-1]) {
		v[i], v[i-1] = v[i-1], v[i]
	}
	return top
}

// renumber makes room for the numbers of the next four thousand million frames.
func (h *heap) renumber() {
	old := slices.Clone(h.v)
	slices.SortFunc(old, func(a, b entry) int {
		if a.before(&b) {
			return -1
		}
		return 1
	})
	h.v, h.seq = h.v[:0], 0
	for _, e := range old {
		h.push(e.rank, e.ref)
	}
}
