package hostnic

import (
	"math/bits"

	"gswitch/frame"
)

// wheel is a hierarchical timer wheel over the queue pairs of a NIC, exact to
// the nanosecond (Varghese and Lauck 1987, scheme 7). Each queue pair is in
// it at most once. A timer stands at the level of the highest 6-bit digit in
// which its instant differs from the wheel's own, in the slot of that digit:
// so everything at a level is due before anything above it, and the next slot
// is found by counting zeros. A slot keeps its earliest instant and is
// redistributed to the levels below when that comes; each timer moves down at
// most once per level, whatever their number.
type wheel struct {
	cur    frame.Time // never later than the time of the last call of pop
	levels uint16     // not empty
	used   [wheelLevels]uint64
	head   [wheelLevels][64]uint32
	least  [wheelLevels][64]frame.Time // no timer of the slot is earlier
	node   []wheelNode
}

const (
	digit       = 6
	wheelLevels = 11 // 66 bits
	noNode      = ^uint32(0)
)

type wheelNode struct {
	at         frame.Time
	next, prev uint32
	slot       int16 // level<<digit | slot, -1 where it is not in the wheel
}

// grow makes room for one more queue pair.
func (w *wheel) grow() { w.node = append(w.node, wheelNode{slot: -1}) }

// armed returns when timer i is due, Never if it is not in the wheel.
func (w *wheel) armed(i uint32) frame.Time {
	if w.node[i].slot < 0 {
		return frame.Never
	}
	return w.node[i].at
}

// arm makes timer i due at the given instant, wherever it was before.
func (w *wheel) arm(i uint32, at frame.Time) {
	if n := &w.node[i]; n.slot >= 0 {
		if n.at == at {
			return
		}
		w.remove(i)
	}
	if at == frame.Never {
		return
	}
	w.insert(i, max(at, w.cur))
}

func (w *wheel) insert(i uint32, at frame.Time) {
	level := 0
	if d := uint64(at ^ w.cur); d != 0 {
		level = (bits.Len64(d) - 1) / digit
	}
	s := int(at>>(digit*level)) & 63
	n := &w.node[i]
	n.at, n.prev, n.slot = at, noNode, int16(level<<digit|s)
	if w.used[level]>>s&1 == 0 {
		w.used[level] |= 1 << s
		w.levels |= 1 << level
		n.next = noNode
		w.least[level][s] = at
	} else {
		n.next = w.head[level][s]
		w.node[n.next].prev = i
		if at < w.least[level][s] {
			w.least[level][s] = at
		}
	}
	w.head[level][s] = i
}

// remove takes timer i out of the wheel, if it is in it.
func (w *wheel) remove(i uint32) {
	n := &w.node[i]
	if n.slot < 0 {
		return
	}
	level, s := int(n.slot)>>digit, int(n.slot)&63
	if n.next != noNode {
		w.node[n.next].prev = n.prev
	}
	if n.prev != noNode {
		w.node[n.prev].next = n.next
	} else if w.head[level][s] = n.next; n.next == noNode {
		w.empty(level, s)
	}
	n.slot = -1
}

func (w *wheel) empty(level, s int) {
	if w.used[level] &^= 1 << s; w.used[level] == 0 {
		w.levels &^= 1 << level
	}
}

// next returns when the earliest timer is due, Never if there is none. It may
// be too early where the earliest of a slot was removed; pop then puts it
// right.
func (w *wheel) next() frame.Time {
	if w.levels == 0 {
		return frame.Never
	}
	level := bits.TrailingZeros16(w.levels)
	return w.least[level][bits.TrailingZeros64(w.used[level])]
}

// pop takes out a timer that is due at now. It is to be called until it
// finds none.
func (w *wheel) pop(now frame.Time) (uint32, bool) {
	for w.levels != 0 {
		level := bits.TrailingZeros16(w.levels)
		s := bits.TrailingZeros64(w.used[level])
		at := w.least[level][s]
		if at > now {
			return 0, false
		}
		i := w.head[level][s]
		w.cur = at
		if level == 0 { // all of one instant
			w.remove(i)
			return i, true
		}
		w.empty(level, s)
		for i != noNode {
			next := w.node[i].next
			w.insert(i, w.node[i].at)
			i = next
		}
	}
	w.cur = max(w.cur, now)
	return 0, false
}
