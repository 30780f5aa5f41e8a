package orders

import (
	"fmt"
	"math/bits"

	"gswitch/frame"
	"gswitch/scheduler"
)

// FQ gives each flow its turn, of so many bytes, and one that has just begun goes
// first (Hoeiland-Joergensen et al., "The Flow Queue CoDel Packet Scheduler and
// Active Queue Management Algorithm", RFC 8290). Flows are distinguished by hash, so
// some share a turn. With a target each has CoDel of its own. Evicted is the last
// frame of the flow with most bytes.
type FQ struct {
	Quantum uint32 // bytes of a turn; 0 = 1514
	Flows   int    // hash buckets; 0 = 1024, as in RFC 8290
	CoDel   CoDel  // Target 0: none
}

// New implements scheduler.Order.
func (o FQ) New(scheduler.Env) scheduler.Discipline {
	if o.Quantum == 0 {
		o.Quantum = maxPacket
	}
	if o.Flows == 0 {
		o.Flows = 1024
	}
	q := &fq{FQ: o, flow: make([]fqFlow, o.Flows), some: make([]uint64, (o.Flows+63)/64), bytes: make([]uint32, o.Flows)}
	for i := range q.flow {
		q.flow[i].Init()
	}
	q.fresh, q.old = noFlows, noFlows
	return q
}

// String implements scheduler.Order.
func (o FQ) String() string {
	if o.CoDel.Target > 0 {
		return fmt.Sprintf("fq+%v", o.CoDel)
	}
	return "fq"
}

type fq struct {
	FQ
	flow       []fqFlow
	bytes      []uint32 // of each flow
	some       []uint64 // flows with a frame
	fresh, old flowRing // lists of flows, by number
	n          int
	shedding   bool // the head is dropped: it takes no turn
}

type fqFlow struct {
	scheduler.List
	deficit int32
	next    int32
	listed  bool
	codelState
}

// flowRing is a list of flows linked through fqFlow.next.
type flowRing struct{ head, tail int32 }

var noFlows = flowRing{-1, -1}

func (q *fq) append(l *flowRing, i int32) {
	q.flow[i].next = -1
	if l.head < 0 {
		l.head = i
	} else {
		q.flow[l.tail].next = i
	}
	l.tail = i
}

func (q *fq) unhead(l *flowRing) {
	if l.head = q.flow[l.head].next; l.head < 0 {
		l.tail = -1
	}
}

func (q *fq) of(m *frame.Meta) int32 {
	// Mixed, since the bits that spread flows over ports are alike in all frames
	// of a queue (Knuth's multiplicative hashing).
	return int32(uint64(m.Hash*2654435769) * uint64(len(q.flow)) >> 32)
}

func (q *fq) Enqueue(a *frame.Arena, now frame.Time, r frame.Ref) {
	m := a.Meta(r)
	i := q.of(m)
	f := &q.flow[i]
	f.Enqueue(a, now, r)
	q.bytes[i] += m.Wire
	q.some[i/64] |= 1 << (i % 64)
	q.n++
	if !f.listed {
		f.listed, f.deficit = true, int32(q.Quantum)
		q.append(&q.fresh, i)
	}
}

// turn returns the flow whose turn it is, -1 if none waits.
func (q *fq) turn() int32 {
	for {
		l := &q.fresh
		if l.head < 0 {
			if l = &q.old; l.head < 0 {
				return -1
			}
		}
		i := l.head
		f := &q.flow[i]
		switch {
		case f.deficit <= 0:
			f.deficit += int32(q.Quantum)
			q.unhead(l)
			q.append(&q.old, i)
		case f.Len() > 0:
			return i
		case l == &q.fresh && q.old.head >= 0:
			q.unhead(l) // so that it cannot come first again and again
			q.append(&q.old, i)
		default:
			q.unhead(l)
			f.listed = false
		}
	}
}

func (q *fq) Head() frame.Ref {
	if i := q.turn(); i >= 0 {
		return q.flow[i].Head()
	}
	return frame.Nil
}

func (q *fq) Dequeue(a *frame.Arena, t frame.Time) frame.Ref {
	i := q.turn()
	if i < 0 {
		return frame.Nil
	}
	f := &q.flow[i]
	r := f.Dequeue(a, t)
	n := a.Meta(r).Wire
	if q.shedding {
		q.shedding = false
	} else {
		f.deficit -= int32(n)
	}
	q.took(i, n)
	return r
}

func (q *fq) took(i int32, n uint32) {
	q.n--
	q.bytes[i] -= n
	if q.flow[i].Len() == 0 {
		q.some[i/64] &^= 1 << (i % 64)
	}
}

// Evict implements scheduler.Evictor. Of flows with as many bytes it takes the
// first by number.
func (q *fq) Evict(a *frame.Arena) frame.Ref {
	fat, most := int32(-1), uint32(0)
	for w, b := range q.some {
		for ; b != 0; b &= b - 1 {
			if i := int32(w*64 + bits.TrailingZeros64(b)); q.bytes[i] > most {
				fat, most = i, q.bytes[i]
			}
		}
	}
	if fat < 0 {
		return frame.Nil
	}
	r := q.flow[fat].Evict(a)
	q.took(fat, a.Meta(r).Wire)
	return r
}

// Sheds implements scheduler.Shedder.
func (q *fq) Sheds(t frame.Time, m *frame.Meta, _ uint64) scheduler.Verdict {
	if q.CoDel.Target == 0 {
		return scheduler.Pass
	}
	i := q.of(m)
	v := q.flow[i].judge(&q.CoDel, t, m, uint64(q.bytes[i]-m.Wire))
	q.shedding = v == scheduler.Drop || v == scheduler.Mark && m.Flags&frame.IsECT == 0
	return v
}

func (q *fq) Len() int { return q.n }

func (q *fq) Each(a *frame.Arena, visit func(frame.Ref) bool) {
	on := true
	for w, b := range q.some {
		for ; b != 0 && on; b &= b - 1 {
			q.flow[w*64+bits.TrailingZeros64(b)].Each(a, func(r frame.Ref) bool {
				on = visit(r)
				return on
			})
		}
	}
}
