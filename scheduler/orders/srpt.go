package orders

import (
	"gswitch/frame"
	"gswitch/scheduler"
)

// SRPT serves the flow that has the frame of least rank, which is how much of it
// remains, and of that flow the frame that came first, so that none starves
// behind later ones of its own flow (Alizadeh et al., "pFabric: Minimal
// Near-Optimal Datacenter Transport", SIGCOMM 2013, section 4.2). Evicted is the
// frame of greatest rank. Of flows that are equal in that the one that waits
// longer is served and the one that waits shorter loses a frame. Each frame costs
// O(log f) of the flows that wait.
type SRPT struct{}

// New implements scheduler.Order.
func (SRPT) New(scheduler.Env) scheduler.Discipline {
	return &srpt{table: make([]int32, 32), heap: [2]flowHeap{{worst: 0}, {worst: 1}}}
}

// String implements scheduler.Order.
func (SRPT) String() string { return "srpt" }

type srpt struct {
	table []int32 // slot+1 of a flow by hash; open addressing with linear probing
	slot  []srptFlow
	free  []int32
	heap  [2]flowHeap // by least rank, by greatest
	n     int
	began uint64
}

// srptFlow is a flow that waits. least and most are its ranks, and how many
// frames have them.
type srptFlow struct {
	scheduler.List
	hash        uint32
	since       uint64
	least, most struct {
		rank int64
		n    int
	}
	at [2]int32 // in the heaps
}

// flowHeap is a binary heap of slots with the place of each.
type flowHeap struct {
	v     []int32
	worst int // 0: least first, 1: greatest first
}

func (h *flowHeap) before(s []srptFlow, i, j int32) bool {
	a, b := &s[i], &s[j]
	if h.worst == 0 {
		return a.least.rank < b.least.rank || a.least.rank == b.least.rank && a.since < b.since
	}
	return a.most.rank > b.most.rank || a.most.rank == b.most.rank && a.since > b.since
}

func (h *flowHeap) set(s []srptFlow, at int, i int32) {
	h.v[at] = i
	s[i].at[h.worst] = int32(at)
}

func (h *flowHeap) push(s []srptFlow, i int32) {
	h.v = append(h.v, i)
	h.set(s, len(h.v)-1, i)
	h.fix(s, len(h.v)-1)
}

func (h *flowHeap) remove(s []srptFlow, at int) {
	n := len(h.v) - 1
	last := h.v[n]
	h.v = h.v[:n]
	if at < n {
		h.set(s, at, last)
		h.fix(s, at)
	}
}

// fix moves the flow at a place to where it belongs.
func (h *flowHeap) fix(s []srptFlow, at int) {
	i := h.v[at]
	for at > 0 && h.before(s, i, h.v[(at-1)/2]) {
		h.set(s, at, h.v[(at-1)/2])
		at = (at - 1) / 2
	}
	for c := 2*at + 1; c < len(h.v); c = 2*at + 1 {
		if c+1 < len(h.v) && h.before(s, h.v[c+1], h.v[c]) {
			c++
		}
		if !h.before(s, h.v[c], i) {
			break
		}
		h.set(s, at, h.v[c])
		at = c
	}
	h.set(s, at, i)
}

func (q *srpt) home(hash uint32) int {
	return int(uint64(hash*2654435769) * uint64(len(q.table)) >> 32)
}

// find returns the place of a flow in the table, or where it would be.
func (q *srpt) find(hash uint32) int {
	i := q.home(hash)
	for q.table[i] != 0 && q.slot[q.table[i]-1].hash != hash {
		i = (i + 1) & (len(q.table) - 1)
	}
	return i
}

// flow returns the slot of a flow, a new one if it does not wait yet.
func (q *srpt) flow(hash uint32) (i int32, begins bool) {
	at := q.find(hash)
	if q.table[at] != 0 {
		return q.table[at] - 1, false
	}
	if n := len(q.free); n > 0 {
		i, q.free = q.free[n-1], q.free[:n-1]
	} else {
		i = int32(len(q.slot))
		q.slot = append(q.slot, srptFlow{})
	}
	f := &q.slot[i]
	f.Init()
	f.hash, f.since = hash, q.began
	q.began++
	q.table[at] = i + 1
	if 2*(len(q.slot)-len(q.free)) > len(q.table) {
		old := q.table
		q.table = make([]int32, 2*len(old))
		for _, s := range old {
			if s != 0 {
				q.table[q.find(q.slot[s-1].hash)] = s
			}
		}
	}
	return i, true
}

// remove takes a flow that waits no longer out of the table; flows behind it that
// were probed past it move up.
func (q *srpt) remove(i int32) {
	at, mask := q.find(q.slot[i].hash), len(q.table)-1
	q.table[at] = 0
	for k := (at + 1) & mask; q.table[k] != 0; k = (k + 1) & mask {
		if (k-q.home(q.slot[q.table[k]-1].hash))&mask >= (k-at)&mask {
			q.table[at], q.table[k] = q.table[k], 0
			at = k
		}
	}
	q.free = append(q.free, i)
}

func (q *srpt) Enqueue(a *frame.Arena, now frame.Time, r frame.Ref) {
	m := a.Meta(r)
	i, begins := q.flow(m.Hash)
	f := &q.slot[i]
	f.Enqueue(a, now, r)
	q.n++
	if begins {
		f.least.rank, f.least.n = m.Rank, 1
		f.most = f.least
		q.heap[0].push(q.slot, i)
		q.heap[1].push(q.slot, i)
		return
	}
	switch l := &f.least; {
	case m.Rank == l.rank:
		l.n++
	case m.Rank < l.rank:
		l.rank, l.n = m.Rank, 1
		q.heap[0].fix(q.slot, int(f.at[0]))
	}
	switch l := &f.most; {
	case m.Rank == l.rank:
		l.n++
	case m.Rank > l.rank:
		l.rank, l.n = m.Rank, 1
		q.heap[1].fix(q.slot, int(f.at[1]))
	}
}

// took brings a flow in line with that a frame of the given rank left it.
func (q *srpt) took(a *frame.Arena, i int32, rank int64) {
	q.n--
	f := &q.slot[i]
	if f.Len() == 0 {
		q.heap[0].remove(q.slot, int(f.at[0]))
		q.heap[1].remove(q.slot, int(f.at[1]))
		q.remove(i)
		return
	}
	if rank == f.least.rank {
		f.least.n--
	}
	if rank == f.most.rank {
		f.most.n--
	}
	if f.least.n == 0 || f.most.n == 0 {
		f.survey(a)
		q.heap[0].fix(q.slot, int(f.at[0]))
		q.heap[1].fix(q.slot, int(f.at[1]))
	}
}

// survey finds the least and the greatest rank of a flow again.
func (f *srptFlow) survey(a *frame.Arena) {
	f.least.n, f.most.n = 0, 0
	for r := f.Head(); r != frame.Nil; r = a.Meta(r).QNext {
		rank := a.Meta(r).Rank
		switch l := &f.least; {
		case l.n == 0 || rank < l.rank:
			l.rank, l.n = rank, 1
		case rank == l.rank:
			l.n++
		}
		switch l := &f.most; {
		case l.n == 0 || rank > l.rank:
			l.rank, l.n = rank, 1
		case rank == l.rank:
			l.n++
		}
	}
}

func (q *srpt) Head() frame.Ref {
	if q.n == 0 {
		return frame.Nil
	}
	return q.slot[q.heap[0].v[0]].Head()
}

func (q *srpt) Dequeue(a *frame.Arena, t frame.Time) frame.Ref {
	if q.n == 0 {
		return frame.Nil
	}
	i := q.heap[0].v[0]
	r := q.slot[i].Dequeue(a, t)
	q.took(a, i, a.Meta(r).Rank)
	return r
}

// Evict removes the newest frame of greatest rank of the flow that has one.
func (q *srpt) Evict(a *frame.Arena) frame.Ref {
	if q.n == 0 {
		return frame.Nil
	}
	i := q.heap[1].v[0]
	f := &q.slot[i]
	r := f.Tail()
	for a.Meta(r).Rank != f.most.rank {
		r = a.Meta(r).QPrev
	}
	f.Remove(a, r)
	q.took(a, i, a.Meta(r).Rank)
	return r
}

func (q *srpt) Len() int { return q.n }

func (q *srpt) Each(a *frame.Arena, visit func(frame.Ref) bool) {
	on := true
	for _, i := range q.heap[0].v {
		if !on {
			return
		}
		q.slot[i].Each(a, func(r frame.Ref) bool {
			on = visit(r)
			return on
		})
	}
}
