package orders

import (
	"math/bits"

	"gswitch/frame"
	"gswitch/scheduler"
)

// VOQ is the order of an input-queued switch with virtual output queues: frames
// from one ingress port leave in order, and the ingress ports take turns, one
// frame each. It is how the switches of IRN's evaluation serve an output (Mittal
// et al., SIGCOMM 2018, section 4.1).
type VOQ struct{}

// String implements scheduler.Order.
func (VOQ) String() string { return "voq" }

type voq struct {
	in   [voqPorts]frame.FIFO
	some [voqPorts / 64]uint64 // ingress ports with a frame
	turn int                   // the ingress port whose frame is Head
	n    int
}

// voqPorts is how many ingress ports are distinguished; port numbers beyond it
// share.
const voqPorts = 256

// New implements scheduler.Order.
func (VOQ) New(scheduler.Env) scheduler.Discipline {
	q := &voq{}
	for i := range q.in {
		q.in[i].Init()
	}
	return q
}

// Enqueue implements scheduler.Discipline.
func (q *voq) Enqueue(a *frame.Arena, _ frame.Time, r frame.Ref) {
	i := int(a.Meta(r).InPort) % voqPorts
	q.in[i].Push(a, r)
	q.some[i/64] |= 1 << (i % 64)
	if q.n == 0 {
		q.turn = i
	}
	q.n++
}

// Head implements scheduler.Discipline.
func (q *voq) Head() frame.Ref {
	if q.n == 0 {
		return frame.Nil
	}
	return q.in[q.turn].Head()
}

// Dequeue implements scheduler.Discipline.
func (q *voq) Dequeue(a *frame.Arena, _ frame.Time) frame.Ref {
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
func (q *voq) after(i int) int {
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

// Len implements scheduler.Discipline.
func (q *voq) Len() int { return q.n }

// Each implements scheduler.Discipline.
func (q *voq) Each(a *frame.Arena, visit func(frame.Ref) bool) {
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
