package escape

import (
	"github.com/gswitch/gswitch/frame"
	"github.com/gswitch/gswitch/wire"
)

// none ends a list.
const none = ^uint32(0)

// flow is one of the last flows that left by a port.
type flow struct {
	key   wire.FlowID
	hash  uint32
	in    uint16 // the port that its frames came by
	class uint8

	out    uint32     // tokens that are out
	window uint32     // how many may be
	misses uint8      // tokens in a row that came to nothing
	sent   frame.Time // when the last token left or the last frame came
	rest   frame.Time // no token before

	chain      uint32 // next with these bits of the hash
	prev, next uint32 // by age: towards newer, towards older
	wprev      uint32 // of those with tokens out, by sent
	wnext      uint32
}

// table holds the flows, the one that was seen last first.
type table struct {
	flows          []flow
	heads          []uint32
	n              int // used ones stand first in flows until all are
	newest, oldest uint32
	first, last    uint32 // with tokens out: longest ago, last
	cursor         uint32 // whose turn it is to get a token
}

func newTable(size int) table {
	buckets := 16
	for buckets < 2*size {
		buckets <<= 1
	}
	t := table{flows: make([]flow, size), heads: make([]uint32, buckets), newest: none, oldest: none, first: none, last: none}
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

// enter makes a flow the newest. In place of one that is not known the oldest
// without tokens goes; none if all have some.
func (t *table) enter(hash uint32, key wire.FlowID) uint32 {
	if i := t.newest; i != none && t.flows[i].hash == hash && t.flows[i].key == key {
		return i
	}
	i := t.find(hash, key)
	if i != none {
		t.unage(i)
	} else {
		if i = t.vacate(); i == none {
			return none
		}
		head := t.bucket(hash)
		t.flows[i] = flow{key: key, hash: hash, chain: *head}
		*head = i
	}
	f := &t.flows[i]
	f.prev, f.next = none, t.newest
	if t.newest != none {
		t.flows[t.newest].prev = i
	} else {
		t.oldest = i
	}
	t.newest = i
	return i
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
