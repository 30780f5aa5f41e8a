package orders

import (
	"fmt"
	"math"
	"math/bits"

	"gswitch/frame"
	"gswitch/scheduler"
)

// Buckets is Ranked to within a width: ranks of one bucket are served first-in
// first-out. A ring of 4096 buckets moves along with the least rank, and two
// levels of bitmaps find the first one in O(1) (Saeed et al., "Eiffel: Efficient
// and Flexible Software Packet Scheduling", NSDI 2019: the circular find-first-set
// queue). Ranks before the ring count as its first bucket; those behind it wait in
// a heap, at the cost of Ranked, until it reaches them: a width is well chosen if
// few do.
type Buckets struct {
	Width int64 // ranks of a bucket, at least 1
}

// New implements scheduler.Order.
func (o Buckets) New(scheduler.Env) scheduler.Discipline {
	q := &buckets{width: max(o.Width, 1)}
	if q.width&(q.width-1) == 0 {
		q.shift, q.shifts = uint(bits.TrailingZeros64(uint64(q.width))), true
	}
	for i := range q.ring {
		q.ring[i].Init()
	}
	return q
}

// String implements scheduler.Order.
func (o Buckets) String() string { return fmt.Sprintf("buckets(%d)", max(o.Width, 1)) }

const (
	bucketCount = 4096
	bucketBack  = bucketCount / 4 // buckets kept for ranks before the first that came
)

type buckets struct {
	width  int64
	shift  uint
	shifts bool

	base int64 // number of the first bucket of the ring
	n    int
	ring [bucketCount]scheduler.List // bucket b stands at b mod 4096
	some [bucketCount / 64]uint64    // places with a frame
	word uint64                      // words of some that are not 0

	far heap // behind the ring, by bucket
}

// bucket returns the number of the bucket of a rank.
func (q *buckets) bucket(rank int64) int64 {
	if q.shifts {
		return rank >> q.shift
	}
	b := rank / q.width
	if rank%q.width < 0 {
		b--
	}
	return b
}

func (q *buckets) Enqueue(a *frame.Arena, _ frame.Time, r frame.Ref) {
	b := q.bucket(a.Meta(r).Rank)
	if q.n == 0 {
		q.base = b - bucketBack
	}
	q.n++
	q.put(a, r, b)
}

func (q *buckets) put(a *frame.Arena, r frame.Ref, b int64) {
	b = max(b, q.base)
	if b-q.base >= bucketCount {
		q.far.push(b, r)
		return
	}
	i := int(uint64(b) % bucketCount)
	q.ring[i].Enqueue(a, 0, r)
	q.some[i/64] |= 1 << (i % 64)
	q.word |= 1 << (i / 64)
}

// first returns the place of the first bucket of the ring with a frame. There
// must be one.
func (q *buckets) first() int {
	s := int(uint64(q.base) % bucketCount)
	w := s / 64
	if b := q.some[w] >> (s % 64) << (s % 64); b != 0 {
		return w*64 + bits.TrailingZeros64(b)
	}
	if b := q.word & (math.MaxUint64 << w << 1); b != 0 {
		w = bits.TrailingZeros64(b)
	} else {
		w = bits.TrailingZeros64(q.word)
	}
	return w*64 + bits.TrailingZeros64(q.some[w])
}

// last returns the place of the last one.
func (q *buckets) last() int {
	s := int(uint64(q.base) % bucketCount) // the ring ends before it
	w := s / 64
	if b := q.some[w] & (1<<(s%64) - 1); b != 0 {
		return w*64 + bits.Len64(b) - 1
	}
	if b := q.word & (1<<w - 1); b != 0 {
		w = bits.Len64(b) - 1
	} else {
		w = bits.Len64(q.word) - 1
	}
	return w*64 + bits.Len64(q.some[w]) - 1
}

func (q *buckets) took(i int) {
	q.n--
	if q.ring[i].Len() == 0 {
		if q.some[i/64] &^= 1 << (i % 64); q.some[i/64] == 0 {
			q.word &^= 1 << (i / 64)
		}
	}
}

func (q *buckets) Head() frame.Ref {
	if q.n == 0 {
		return frame.Nil
	}
	return q.ring[q.first()].Head()
}

func (q *buckets) Dequeue(a *frame.Arena, t frame.Time) frame.Ref {
	if q.n == 0 {
		return frame.Nil
	}
	i := q.first()
	r := q.ring[i].Dequeue(a, t)
	q.took(i)
	q.follow(a, i)
	return r
}

// follow moves the ring on when half of it lies behind the place that was served
// last, or when nothing is left in it, and takes in what it reaches then.
func (q *buckets) follow(a *frame.Arena, i int) {
	at := q.base + int64((uint64(i)-uint64(q.base))%bucketCount)
	switch {
	case q.word == 0 && q.far.len() > 0:
		q.base = q.far.first().rank - bucketBack
	case at-q.base < bucketCount/2:
		return
	default:
		q.base = at - bucketBack
	}
	for q.far.len() > 0 && q.far.first().rank-q.base < bucketCount {
		e := q.far.pop()
		q.put(a, e.ref, e.rank)
	}
}

// Evict removes the newest frame of the last bucket.
func (q *buckets) Evict(a *frame.Arena) frame.Ref {
	if q.far.len() > 0 {
		q.n--
		return q.far.popMax().ref
	}
	if q.n == 0 {
		return frame.Nil
	}
	i := q.last()
	r := q.ring[i].Evict(a)
	q.took(i)
	return r
}

func (q *buckets) Len() int { return q.n }

func (q *buckets) Each(a *frame.Arena, visit func(frame.Ref) bool) {
	on := true
	each := func(r frame.Ref) bool {
		on = visit(r)
		return on
	}
	for w := q.word; w != 0 && on; w &= w - 1 {
		k := bits.TrailingZeros64(w)
		for b := q.some[k]; b != 0 && on; b &= b - 1 {
			q.ring[k*64+bits.TrailingZeros64(b)].Each(a, each)
		}
	}
	for k := 0; on && k < q.far.len(); k++ {
		on = visit(q.far.v[k].ref)
	}
}
