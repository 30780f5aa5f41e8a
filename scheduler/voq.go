package scheduler

import (
	"math/bits"

	"gswitch/frame"
)

// VOQ is the discipline of an input-queued switch with virtual output queues:
// frames from one ingress port leave in order, and the ingress ports take
// turns, one frame each. It is how the switches of IRN's evaluation serve an
// output (Mittal et al., SIGCOMM 2018, section 4.1).
type VOQ struct {
	in   [voqPorts]frame.FIFO
	some [voqPorts / 64]uint64 // ingress ports with a frame
	turn int                   // the ingress port whose frame is Head
	n    int
}

// voqPorts is how many ingress ports are told apart; port numbers beyond it
// share.
const voqPorts = 256

// NewVOQ returns an empty queue.
func NewVOQ() *VOQ {
	q := &VOQ{}
	for i := range q.in {
		q.in[i].Init()
	}
	return q
}

// Enqueue implements Discipline.
func (q *VOQ) Enqueue(a *frame.Arena, _ frame.Time, r frame.Ref) {
	i := int(a.Meta(r).InPort) % voqPorts
	q.in[i].Push(a, r)
	q.some[i/64] |= 1 << (i % 64)
	if q.n == 0 {
		q.turn = i
	}
	q.n++
}

// Head implements Discipline.
func (q *VOQ) Head() frame.Ref {
	if q.n == 0 {
		return frame.Nil
	}
	return q.in[q.turn].Head()
}

// Dequeue implements Discipline.
func (q *VOQ) Dequeue(a *frame.Arena, _ frame.Time) frame.Ref {
	if q.n == 0 {
		return frame.Nil
	}
	i := q.turn
	r := q.in[i].Pop(a)
	if q.in[i].Len() == 0 {
		q.some[i/64] &^= 1 << (i % 64)
	}
	q.n--
	q.turn = q.after(i)
	return r
}

// after returns the first ingress port with a frame after i, in a circle.
func (q *VOQ) after(i int) int {
	w := i / 64
	if b := q.some[w] &^ (2<<(i%64) - 1); b != 0 {
		return w*64 + bits.TrailingZeros64(b)
	}
	for k := 1; k <= len(q.some); k++ {
		if v := (w + k) % len(q.some); q.some[v] != 0 {
			return v*64 + bits.TrailingZeros64(q.some[v])
		}
	}
	return i
}

// Len implements Discipline.
func (q *VOQ) Len() int { return q.n }

// Each implements Lister.
func (q *VOQ) Each(a *frame.Arena, visit func(frame.Ref) bool) {
	for i := range q.in {
		r := q.in[i].Head()
		for n := q.in[i].Len(); n > 0; n-- {
			if !visit(r) {
				return
			}
			r = a.Meta(r).QNext
		}
	}
}
