package escape

import (
	"cmp"
	"slices"

	"gswitch/frame"
	"gswitch/wire"
)

// none ends a list.
const none = ^uint32(0)

// flow is one of the last flows that left by a port. What is looked at for each
// frame stands first.
type flow struct {
	key    wire.FlowID
	hash   uint32
	in     uint16 // the port that its frames came by
	class  uint8
	misses uint8      // tokens in a row that came to nothing
	chain  uint32     // next with these bits of the hash
	out    uint32     // tokens that are out
	window uint32     // how many may be
	rest   frame.Time // no token before
	made   frame.Time // when the last token began here
	stamp  uint64     // order of the last frame, 0: that of prev and next

	sent       frame.Time // when the last token left or the last frame came
	prev, next uint32     // by age: towards newer, towards older
	wprev      uint32     // of those with tokens out, by sent
	wnext      uint32
}

// table holds the flows, the one that was seen last first. A frame only stamps
// its flow; those that were stamped move to the front, in the order of their
// stamps, when a flow comes that is not known, which alone depends on the order.
type table struct {
	flows          []flow
	heads          []uint32
	n              int // used ones stand first in flows until all are
	newest, oldest uint32
	stamped        []uint32
	stamp          uint64 // the last one
	first, last    uint32 // with tokens out: longest ago, last
	cursor         uint32 // whose turn it is to get a token
}

func newTable(size int) table {
	buckets := 16
	for buckets < 4*size {
		buckets <<= 1
	}
	t := table{flows: make([]flow, size), heads: make([]uint32, buckets), stamped: make([]uint32, 0, size), newest: none, oldest: none, first: none, last: none}
	for i := range t.heads {
		t.heads[i] = none
	}
	return t
}

func (t *table) bucket(hash uint32) *uint32 { return &t.heads[hash&uint32(len(t.heads)-1)] }

func (t *table) find(hash uint32, key wire.FlowID) uint32 {
	i := *t.bucket(hash)
	for i != none && (t.flows[i].hash != hash || t.flows[i].key != key) {
		i = t.flows[i].chain
	}
	return i
}

// add enters a flow that is not known in place of the oldest without tokens, and
// returns none if all have some.
func (t *table) add(hash uint32, key wire.FlowID) uint32 {
	t.catchUp()
	i := t.vacate()
	if i == none {
		return none
	}
	head := t.bucket(hash)
	t.flows[i] = flow{key: key, hash: hash, chain: *head, made: -1}
	*head = i
	t.front(i)
	return i
}

// catchUp brings the order by age up to date.
func (t *table) catchUp() {
	if len(t.stamped) > 1 {
		slices.SortFunc(t.stamped, func(a, b uint32) int { return cmp.Compare(t.flows[a].stamp, t.flows[b].stamp) })
	}
	for _, i := range t.stamped {
		t.unage(i)
		t.front(i)
		t.flows[i].stamp = 0
	}
	t.stamped = t.stamped[:0]
}

// front puts a flow that is not in the order by age at its front.
func (t *table) front(i uint32) {
	f := &t.flows[i]
	f.prev, f.next = none, t.newest
	if t.newest != none {
		t.flows[t.newest].prev = i
	} else {
		t.oldest = i
	}
	t.newest = i
}

// lookBack bounds the search for a flow without tokens.
const lookBack = 8

// vacate returns a free record.
func (t *table) vacate() uint32 {
	if t.n < len(t.flows) {
		t.n++
		return uint32(t.n - 1)
	}
	i := t.oldest
	for range lookBack {
		if i == none || t.flows[i].out == 0 {
			break
		}
		i = t.flows[i].prev
	}
	if i == none || t.flows[i].out != 0 {
		return none
	}
	t.unage(i)
	at := t.bucket(t.flows[i].hash)
	for *at != i {
		at = &t.flows[*at].chain
	}
	*at = t.flows[i].chain
	return i
}

// unage takes a flow out of the order by age.
func (t *table) unage(i uint32) {
	f := &t.flows[i]
	if f.prev != none {
		t.flows[f.prev].next = f.next
	} else {
		t.newest = f.next
	}
	if f.next != none {
		t.flows[f.next].prev = f.prev
	} else {
		t.oldest = f.prev
	}
}

// wait makes a flow the last of those with tokens out.
func (t *table) wait(i uint32, now frame.Time) {
	f := &t.flows[i]
	f.sent, f.wprev, f.wnext = now, t.last, none
	if t.last != none {
		t.flows[t.last].wnext = i
	} else {
		t.first = i
	}
	t.last = i
}

// unwait takes it out of them.
func (t *table) unwait(i uint32) {
	f := &t.flows[i]
	if f.wprev != none {
		t.flows[f.wprev].wnext = f.wnext
	} else {
		t.first = f.wnext
	}
	if f.wnext != none {
		t.flows[f.wnext].wprev = f.wprev
	} else {
		t.last = f.wprev
	}
}
