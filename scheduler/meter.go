package scheduler

import (
	"slices"

	"gswitch/frame"
	"gswitch/histogram"
)

// Inversions says how far the order of a queue is from that of its ranks.
type Inversions struct {
	Frames uint64            // that left while one of smaller rank waited
	Gap    histogram.Buckets // of those: by how much the least rank that waited was smaller
}

// meter tracks the least rank that waits, exactly and for any order: a heap of
// ranks, and one of those among them that are gone, which leave both when they
// come to the top.
type meter struct {
	in, out rankHeap
	seen    Inversions
}

func (k *meter) add(rank int64) { k.in.push(rank) }

func (k *meter) remove(rank int64) {
	k.out.push(rank)
	for len(k.out) > 0 && k.out[0] == k.in[0] {
		k.in.pop()
		k.out.pop()
	}
	if len(k.out) > 64 && 2*len(k.out) > len(k.in) {
		k.tidy()
	}
}

// served notes that a frame left its queue, of which it was taken out.
func (k *meter) served(rank int64) {
	if len(k.in) > 0 && k.in[0] < rank {
		k.seen.Frames++
		k.seen.Gap.Observe(frame.Time(rank - k.in[0]))
	}
}

// tidy takes out what is gone, so that a frame which never leaves does not keep
// the ranks of all that did.
func (k *meter) tidy() {
	slices.Sort(k.in)
	slices.Sort(k.out)
	out, kept := k.out, k.in[:0]
	for _, rank := range k.in {
		if len(k.out) > 0 && k.out[0] == rank {
			k.out = k.out[1:]
			continue
		}
		kept = append(kept, rank)
	}
	k.in, k.out = kept, out[:0] // what is sorted is a heap
}

// rankHeap is a binary heap, the least first.
type rankHeap []int64

func (h *rankHeap) push(rank int64) {
	v := append(*h, rank)
	i := len(v) - 1
	for ; i > 0 && rank < v[(i-1)/2]; i = (i - 1) / 2 {
		v[i] = v[(i-1)/2]
	}
	v[i] = rank
	*h = v
}

func (h *rankHeap) pop() {
	v := (*h)[:len(*h)-1]
	last := (*h)[len(v)]
	*h = v
	if len(v) == 0 {
		return
	}
	i := 0
	for c := 1; c < len(v); c = 2*i + 1 {
		if c+1 < len(v) && v[c+1] < v[c] {
			c++
		}
		if v[c] >= last {
			break
		}
		v[i] = v[c]
		i = c
	}
	v[i] = last
}

// measure begins or ends to count inversions of a queue.
func (q *queue) measure(a *frame.Arena, on bool) {
	switch {
	case !on:
		q.meter = nil
	case q.meter == nil:
		k := &meter{}
		q.disc.Each(a, func(r frame.Ref) bool {
			k.add(a.Meta(r).Rank)
			return true
		})
		q.meter = k
	}
}

// Inversions returns what was counted of a queue, and false if nothing is.
func (p *Port) Inversions(queue int) (Inversions, bool) {
	if k := p.q[queue&7].meter; k != nil {
		return k.seen, true
	}
	return Inversions{}, false
}

// Serving returns what holds the frames of a queue that come now, nil where it is
// first-in first-out, and how many wait that came under an order before it.
func (p *Port) Serving(queue int) (d Discipline, draining int) {
	q := &p.q[queue&7]
	if v, ok := q.disc.(*versions); ok {
		return v.last, v.Len() - v.last.Len()
	}
	return q.disc, 0
}

// Admitting returns what decides for frames that come to a queue, or nil.
func (p *Port) Admitting(queue int) Gate { return p.q[queue&7].admits }

// Names names the order of a queue and its admission; the last is "" where it
// has none.
func (p *Port) Names(queue int) (order, admission string) {
	q := &p.q[queue&7]
	if order = "fifo"; q.order != nil {
		order = q.order.String()
	}
	if q.admission != nil {
		admission = q.admission.String()
	}
	return order, admission
}
