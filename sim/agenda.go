package sim

import "gswitch/frame"

// Agenda is what is to be done at an instant: the arrivals of a workload,
// samples, faults. Entries come out in the order of their instants and, at one
// instant, in which they were put down. The zero value is empty.
type Agenda struct {
	heap []Entry // binary, by time and order
	seq  uint64
}

// Entry is something to be done.
type Entry struct {
	At     frame.Time
	Period frame.Time // 0: once; it is up to the owner to put it down again
	Do     func(now frame.Time)

	seq uint64
}

func (e *Entry) before(o *Entry) bool { return e.At < o.At || e.At == o.At && e.seq < o.seq }

// Next returns the instant of the first entry, Never if there is none.
func (a *Agenda) Next() frame.Time {
	if len(a.heap) == 0 {
		return frame.Never
	}
	return a.heap[0].At
}

// Put adds an entry.
func (a *Agenda) Put(e Entry) {
	e.seq = a.seq
	a.seq++
	a.heap = append(a.heap, e)
	for k := len(a.heap) - 1; k > 0 && a.heap[k].before(&a.heap[(k-1)/2]); k = (k - 1) / 2 {
		a.heap[k], a.heap[(k-1)/2] = a.heap[(k-1)/2], a.heap[k]
	}
}

// Take removes the first entry, which must be there.
func (a *Agenda) Take() Entry {
	first := a.heap[0]
	last := len(a.heap) - 1
	a.heap[0] = a.heap[last]
	a.heap[last] = Entry{} // for the garbage collector
	a.heap = a.heap[:last]
	for k := 0; ; {
		child := 2*k + 1
		if child >= last {
			return first
		}
		if child+1 < last && a.heap[child+1].before(&a.heap[child]) {
			child++
		}
		if !a.heap[child].before(&a.heap[k]) {
			return first
		}
		a.heap[k], a.heap[child] = a.heap[child], a.heap[k]
		k = child
	}
}
