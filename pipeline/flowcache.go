package pipeline

import "math/bits"

// FlowCache caches the results of Ternary lookups for recent keys. It is a
// four-way set-associative table that belongs to one worker.
//
// A result is valid only for the snapshot it came from: when a lookup names
// another Ternary than the one before, everything cached becomes void at
// once, by counting up a generation.
type FlowCache struct {
	keys []Key // flowWays per set; a key is one cache line
	sets []flowSet
	mask uint64   // of the set index
	gen  uint64   // generation << 32, never 0
	t    *Ternary // snapshot of the current generation

	Hits   uint64 // lookups answered from the cache
	Misses uint64 // lookups answered by the Ternary
}

const flowWays = 4

// flowSet is one cache line that says which way may hold a key.
type flowSet struct {
	mark [flowWays]uint64 // generation << 32 | upper half of the hash
	id   [flowWays]uint32
	next uint32 // way that the next new key takes
	_    [12]byte
}

// NewFlowCache returns a cache of at least n results, 80 bytes each. Twice as
// many as there are flows at a time is a good size.
func NewFlowCache(n int) *FlowCache {
	sets := 1 << bits.Len(uint(max(n-1, 0)/flowWays))
	return &FlowCache{
		keys: make([]Key, flowWays*sets),
		sets: make([]flowSet, sets),
		mask: uint64(sets - 1),
		gen:  1 << 32,
	}
}

// Lookup returns what t.Lookup(k) returns. Mask the key first (Ternary.Mask)
// for the best hit rate.
func (c *FlowCache) Lookup(t *Ternary, k *Key) uint32 {
	if t != c.t {
		c.turn(t)
	}
	h := k.hash()
	n, mark := h&c.mask, c.gen|h>>32
	s := &c.sets[n]
	for way := range s.mark {
		if s.mark[way] == mark && k.equal(&c.keys[n*flowWays+uint64(way)]) {
			c.Hits++
			return s.id[way]
		}
	}
	return c.miss(t, k, n, mark)
}

// LookupVec writes the id for keys[i] to ids[i]. Frames of one flow come in
// trains: a key like the one before it is not looked up again.
func (c *FlowCache) LookupVec(t *Ternary, keys []Key, ids []uint32) {
	ids = ids[:len(keys)]
	for i := range keys {
		if i > 0 && keys[i][0] == keys[i-1][0] && keys[i].equal(&keys[i-1]) {
			c.Hits++
			ids[i] = ids[i-1]
			continue
		}
		ids[i] = c.Lookup(t, &keys[i])
	}
}

// miss looks t up and puts the answer in the place of the set's oldest.
func (c *FlowCache) miss(t *Ternary, k *Key, n, mark uint64) uint32 {
	c.Misses++
	s := &c.sets[n]
	way := s.next % flowWays
	s.next = way + 1
	c.keys[n*flowWays+uint64(way)] = *k
	s.mark[way], s.id[way] = mark, t.Lookup(k)
	return s.id[way]
}

// turn begins a generation for t.
func (c *FlowCache) turn(t *Ternary) {
	c.t = t
	if c.gen += 1 << 32; c.gen == 0 {
		clear(c.sets)
		c.gen = 1 << 32
	}
}
