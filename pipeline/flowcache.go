package pipeline

import "math/bits"

// FlowCache remembers the result of Ternary lookups for recent keys. It is a
// two-way set-associative table that belongs to one worker.
//
// A result is valid only for the snapshot it came from: when a lookup names
// another Ternary than the one before, everything remembered becomes void at
// once, by counting up a generation.
type FlowCache struct {
	keys []Key     // two per set
	sets []flowSet // beside the keys, so that a key is one cache line
	mask uint64    // of the set index
	t    *Ternary  // snapshot of the current generation
	gen  uint32    // never 0
	_    [4]byte   // Hits and Misses follow on 8 bytes
	Hits uint64    // lookups answered from the cache
	Miss uint64    // lookups answered by the Ternary
}

type flowSet struct {
	gen [2]uint32
	id  [2]uint32
}

// NewFlowCache returns a cache of at least n results (80 bytes each).
func NewFlowCache(n int) *FlowCache {
	sets := 1 << bits.Len(uint(max(n, 2)-1)) / 2
	return &FlowCache{
		keys: make([]Key, 2*sets),
		sets: make([]flowSet, sets),
		mask: uint64(sets - 1),
		gen:  1,
	}
}

// Lookup returns what t.Lookup(k) returns. Mask the key first (Ternary.Mask)
// for the best hit rate.
func (c *FlowCache) Lookup(t *Ternary, k *Key) uint32 {
	if t != c.t {
		c.turn(t)
	}
	n := k.hash() & c.mask
	s := &c.sets[n]
	if s.gen[0] == c.gen && c.keys[2*n] == *k {
		c.Hits++
		return s.id[0]
	}
	if s.gen[1] == c.gen && c.keys[2*n+1] == *k {
		c.Hits++
		return s.id[1]
	}
	return c.miss(t, k, n)
}

// LookupVec writes the id for keys[i] to ids[i].
func (c *FlowCache) LookupVec(t *Ternary, keys []Key, ids []uint32) {
	ids = ids[:len(keys)]
	for i := range keys {
		ids[i] = c.Lookup(t, &keys[i])
	}
}

// miss asks t and remembers; the older of the two results of the set goes.
func (c *FlowCache) miss(t *Ternary, k *Key, n uint64) uint32 {
	c.Miss++
	id := t.Lookup(k)
	s := &c.sets[n]
	c.keys[2*n+1] = c.keys[2*n]
	s.gen[1], s.id[1] = s.gen[0], s.id[0]
	c.keys[2*n] = *k
	s.gen[0], s.id[0] = c.gen, id
	return id
}

// turn begins a generation for t.
func (c *FlowCache) turn(t *Ternary) {
	c.t = t
	if c.gen++; c.gen == 0 {
		clear(c.sets)
		c.gen = 1
	}
}
