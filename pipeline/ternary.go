package pipeline

import (
	"fmt"
	"math/bits"
	"slices"
)

// NoEntry is what a lookup returns where nothing matches.
const NoEntry = 1<<32 - 1

// Ternary finds the rule with the highest priority that holds for a Key. It
// does what a TCAM does, by tuple-space search (Srinivasan, Suri and Varghese,
// SIGCOMM 1999): rules whose masks are equal form a tuple with one hash table.
// Tuples are tried in the order of their best rule, and the search ends when
// no later tuple can win. Where there are many tuples, two prefix lookups first
// rule out those without a rule for the frame's addresses, see pruner.
//
// Prefix lengths are rounded down when a tuple is formed, and each candidate
// is verified against its own mask (as in TupleMerge, Daly et al., ToN 2019),
// so that an ACL over all prefix lengths makes a few tuples and not a
// thousand. Port ranges are verified the same way.
//
// A Ternary is an immutable snapshot. Rules are known by their id, which stays
// the same in derived snapshots; a freed id is used again for a later rule.
type Ternary struct {
	tuples  []tuple
	entries []ternaryEntry // buckets, each sorted by rank
	rules   []ternaryRule  // by id
	count   int
	src     *pruner // nil where there are few tuples
	dst     *pruner
	union   Key // bits that any rule looks at
	needs   Needs
}

type ternaryRule struct {
	Rule
	used bool
}

type tuple struct {
	mask  Key
	slots []ternarySlot // a power of two, at most half full
	best  uint32        // lowest rank in it
}

// ternarySlot names the bucket of one masked key.
type ternarySlot struct {
	tag   uint32 // upper half of the hash
	first uint32 // 1 + index of its first entry, 0 if the slot is empty
}

type ternaryEntry struct {
	value, mask Key
	src, dst    PortRange
	rank        uint32 // position in the order of precedence, 0 is best
	id          uint32
	last        bool // of its bucket
}

// bucketLimit is how many rules may share a masked key before the next one
// goes to a tuple with its exact mask: verifying one rule costs about as much
// as half a tuple.
const bucketLimit = 6

// NewTernary returns a table of rules; the id of a rule is its index.
func NewTernary(rules []Rule) (*Ternary, error) {
	t := &Ternary{}
	t, _, err := t.With(rules...)
	return t, err
}

// With returns a table with more rules, and their ids. On error nothing
// changes and the message names the index of the rule.
func (t *Ternary) With(rules ...Rule) (*Ternary, []uint32, error) {
	all := slices.Clone(t.rules)
	ids := make([]uint32, len(rules))
	free := 0
	for i := range rules {
		if err := rules[i].check(); err != nil {
			return nil, nil, fmt.Errorf("ternary rule %d: %w", i, err)
		}
		for free < len(all) && all[free].used {
			free++
		}
		if free == len(all) {
			all = append(all, ternaryRule{})
		}
		all[free] = ternaryRule{Rule: rules[i], used: true}
		ids[i] = uint32(free)
	}
	return buildTernary(all), ids, nil
}

// Without returns a table without the rules of the given ids. Ids without a
// rule are ignored.
func (t *Ternary) Without(ids ...uint32) *Ternary {
	all := slices.Clone(t.rules)
	for _, id := range ids {
		if int(id) < len(all) {
			all[id] = ternaryRule{}
		}
	}
	return buildTernary(all)
}

// Len returns the number of rules.
func (t *Ternary) Len() int { return t.count }

// IDs returns a number above every id: the length that a slice of per-entry
// counters needs.
func (t *Ternary) IDs() int { return len(t.rules) }

// Tuples returns how many hash tables the rules fell into, the worst-case
// number of probes of a lookup.
func (t *Ternary) Tuples() int { return len(t.tuples) }

// Rule returns the rule of an id.
func (t *Ternary) Rule(id uint32) (Rule, bool) {
	if int(id) >= len(t.rules) || !t.rules[id].used {
		return Rule{}, false
	}
	return t.rules[id].Rule, true
}

// Action returns what the rule id does. The id must come from a lookup in t.
func (t *Ternary) Action(id uint32) Action { return t.rules[id].Action }

// Needs returns what BuildKey must read for this table.
func (t *Ternary) Needs() Needs { return t.needs }

// Mask clears the bits of k that no rule looks at, so that frames which differ
// only there share an entry of a FlowCache.
func (t *Ternary) Mask(k *Key) { k.and(&t.union) }

// Lookup returns the id of the best rule that holds for k, or NoEntry.
func (t *Ternary) Lookup(k *Key) uint32 {
	best, id := uint32(NoEntry), uint32(NoEntry)
	if t.src == nil {
		for i := range t.tuples {
			if t.tuples[i].best >= best {
				break
			}
			best, id = t.probe(&t.tuples[i], k, best, id)
		}
		return id
	}
	words := (len(t.tuples) + 63) / 64
	src := t.src.tuples(k[3], k[4], k[7], words)
	dst := t.dst.tuples(k[5], k[6], k[7], words)
	for w, s := range src {
		for may := s & dst[w]; may != 0; may &= may - 1 {
			tp := &t.tuples[w<<6|bits.TrailingZeros64(may)]
			if tp.best >= best {
				return id
			}
			best, id = t.probe(tp, k, best, id)
		}
	}
	return id
}

// probe looks into one tuple for a rule better than rank best, and returns its
// rank and id, or best and id.
func (t *Ternary) probe(tp *tuple, k *Key, best, id uint32) (uint32, uint32) {
	h := k.hashMasked(&tp.mask)
	tag, size := uint32(h>>32), uint32(len(tp.slots)-1)
	for n := uint32(h); ; n++ {
		s := tp.slots[n&size]
		if s.first == 0 {
			return best, id
		}
		if s.tag != tag {
			continue
		}
		for j := s.first - 1; ; j++ {
			e := &t.entries[j]
			if e.rank >= best {
				break
			}
			if e.holds(k) {
				best, id = e.rank, e.id
				break
			}
			if e.last {
				break
			}
		}
	}
}

func (e *ternaryEntry) holds(k *Key) bool {
	return k.matches(&e.value, &e.mask) &&
		e.src.holds(uint16(k[0]>>keySrcPortShift)) &&
		e.dst.holds(uint16(k[0]>>keyDstPortShift))
}

// LookupVec writes the id for keys[i] to ids[i].
func (t *Ternary) LookupVec(keys []Key, ids []uint32) {
	ids = ids[:len(keys)]
	for i := range keys {
		ids[i] = t.Lookup(&keys[i])
	}
}

// group collects the rules of a tuple while the table is built.
type group struct {
	mask    Key
	buckets map[Key][]uint32 // masked value -> ids in order of precedence
	order   []Key            // keys of buckets in order of arrival
	best    uint32
}

func buildTernary(rules []ternaryRule) *Ternary {
	t := &Ternary{rules: rules}
	var order []uint32
	for id := range rules {
		if rules[id].used {
			order = append(order, uint32(id))
		}
	}
	slices.SortStableFunc(order, func(a, b uint32) int {
		return int(int64(rules[b].Priority) - int64(rules[a].Priority))
	})
	t.count = len(order)

	// Groups come into being in the order of their best rule, which is the
	// order in which a lookup wants them.
	var groups []*group
	byMask := map[Key]*group{}
	get := func(mask Key, rank uint32) *group {
		g := byMask[mask]
		if g == nil {
			g = &group{mask: mask, buckets: map[Key][]uint32{}, best: rank}
			byMask[mask] = g
			groups = append(groups, g)
		}
		return g
	}
	ranks := make([]uint32, len(rules))
	for rank, id := range order {
		r := &rules[id]
		ranks[id] = uint32(rank)
		t.union.or(&r.Mask)
		if !r.SrcPort.any() {
			t.union[0] |= 0xffff << keySrcPortShift
		}
		if !r.DstPort.any() {
			t.union[0] |= 0xffff << keyDstPortShift
		}
		g := get(relax(r.Mask), uint32(rank))
		v := r.Value
		v.and(&g.mask)
		if len(g.buckets[v]) >= bucketLimit && g.mask != r.Mask {
			g = get(r.Mask, uint32(rank))
			v = r.Value
		}
		if g.buckets[v] == nil {
			g.order = append(g.order, v)
		}
		g.buckets[v] = append(g.buckets[v], id)
	}
	t.needs = t.union.needs()

	t.entries = make([]ternaryEntry, 0, len(order))
	t.tuples = make([]tuple, len(groups))
	var src, dst []address
	for i, g := range groups {
		tp := &t.tuples[i]
		tp.mask, tp.best = g.mask, g.best
		tp.slots = make([]ternarySlot, 1<<bits.Len(uint(2*len(g.order)-1)))
		for _, v := range g.order {
			h := v.hashMasked(&g.mask)
			n := uint32(h)
			size := uint32(len(tp.slots) - 1)
			for tp.slots[n&size].first != 0 {
				n++
			}
			tp.slots[n&size] = ternarySlot{tag: uint32(h >> 32), first: uint32(len(t.entries)) + 1}
			for _, id := range g.buckets[v] {
				r := &rules[id]
				src = append(src, address{addressOf(&r.Match, 3), i})
				dst = append(dst, address{addressOf(&r.Match, 5), i})
				t.entries = append(t.entries, ternaryEntry{
					value: r.Value, mask: r.Mask, src: r.SrcPort, dst: r.DstPort, rank: ranks[id], id: id,
				})
			}
			t.entries[len(t.entries)-1].last = true
		}
	}
	if len(groups) >= pruneFrom {
		t.src, t.dst = newPruner(src, len(groups)), newPruner(dst, len(groups))
	}
	return t
}

// relax shortens the IP prefixes of a mask: IPv4 to a multiple of 8 bits, IPv6
// to a multiple of 16. A mask that is no prefix stays as it is.
func relax(m Key) Key {
	m[3], m[4] = relaxIP(m[3], m[4])
	m[5], m[6] = relaxIP(m[5], m[6])
	return m
}

func relaxIP(hi, lo uint64) (uint64, uint64) {
	n, ok := prefixLen(hi, lo)
	if !ok {
		return hi, lo
	}
	if n > 96 {
		n = 96 + (n-96)&^7 // IPv4, or the tail of an IPv6 address, where prefixes are rare
	} else {
		n &^= 15
	}
	return prefixMask(n), prefixMask(n - 64)
}
