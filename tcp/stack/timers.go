package stack

import "gswitch/frame"

// timers is a heap of the connections by when they are due, and by their slot
// where that is the same.
type timers struct {
	heap []uint32
	ends []*end
}

// next returns when the first is due.
func (t *timers) next() frame.Time {
	if len(t.heap) == 0 {
		return frame.Never
	}
	return t.ends[t.heap[0]].due
}

func (t *timers) less(a, b uint32) bool {
	x, y := t.ends[a], t.ends[b]
	return x.due < y.due || x.due == y.due && a < b
}

// set notes when a connection is due.
func (t *timers) set(slot uint32, at frame.Time) {
	e := t.ends[slot]
	if e.due == at {
		return
	}
	e.due = at
	if e.place < 0 {
		e.place = len(t.heap)
		t.heap = append(t.heap, slot)
	}
	t.up(e.place)
	t.down(e.place)
}

func (t *timers) swap(i, j int) {
	t.heap[i], t.heap[j] = t.heap[j], t.heap[i]
	t.ends[t.heap[i]].place, t.ends[t.heap[j]].place = i, j
}

func (t *timers) up(i int) {
	for i > 0 && t.less(t.heap[i], t.heap[(i-1)/2]) {
		t.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (t *timers) down(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(t.heap); c++ {
			if t.less(t.heap[c], t.heap[least]) {
				least = c
			}
		}
		if least == i {
			return
		}
		t.swap(i, least)
		i = least
	}
}

// drop removes a connection.
func (t *timers) drop(slot uint32) {
	i := t.ends[slot].place
	if i < 0 {
		return
	}
	last := len(t.heap) - 1
	t.swap(i, last)
	t.heap = t.heap[:last]
	t.ends[slot].place = -1
	if i < last {
		t.up(i)
		t.down(t.ends[t.heap[i]].place)
	}
}
