package rocc

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"

	"gswitch/frame"
)

// Kind says which flows of a queue are notified (section 3.3.4 of the
// dissertation lists these).
type Kind uint8

const (
	InQueue Kind = iota // those that have a packet in the queue: Flows
	Aged                // those that sent within so many periods
	AFD                 // those of which a sampled packet is kept
	Trap                // the largest, as ElephantTrap finds them
	Bubble              // the largest, as BubbleCache finds them
	kinds
)

// Kinds are the names of the tables.
var Kinds = map[string]Kind{"queue": InQueue, "aged": Aged, "afd": AFD, "trap": Trap, "bubble": Bubble}

// String returns the name of a table.
func (k Kind) String() string {
	for _, name := range slices.Sorted(maps.Keys(Kinds)) {
		if Kinds[name] == k {
			return name
		}
	}
	return "?"
}

// TableConfig chooses a table. Zero is the in-queue table, and the default of
// each number.
type TableConfig struct {
	Kind Kind
	// Flows is how many it can hold. 0 = DefaultFlows of InQueue, FMax/FMin (no more
	// than 1024) of Aged, 1024 of AFD, 128 of Trap and Bubble.
	Flows int
	// Age is after how many periods without a packet (of tables that sample:
	// without a sampled one) a flow is removed; of Bubble, how many make a
	// round. 0 = 10 of Aged and Bubble, 100 of AFD and Trap.
	Age int
	// Sample lets tables that sample look at one in so many packets on average;
	// Bubble begins with it. 0 = 8.
	Sample int
	// Shadow is how many sampled packets AFD keeps. 0 = 1024.
	Shadow int
}

// MaxFlows bounds tables.
const MaxFlows = 1 << 20

// DefaultFlows is how many the in-queue table holds unless set: about
// as many of the smallest frames as make the longest queue that is held, 300 KB
// at 100 Gb/s. It takes some 700 KB.
const DefaultFlows = 4096

// Validate reports the first number that cannot be meant.
func (c *TableConfig) Validate() error {
	switch {
	case c.Kind >= kinds:
		return fmt.Errorf("rocc: unknown table %d", c.Kind)
	case c.Flows < 0 || c.Flows > MaxFlows:
		return fmt.Errorf("rocc: a table of %d flows is not between 1 and %d", c.Flows, MaxFlows)
	case c.Age < 0 || c.Age > 1<<20:
		return fmt.Errorf("rocc: an age of %d periods is not between 1 and %d", c.Age, 1<<20)
	case c.Sample < 0 || c.Sample > maxSample:
		return fmt.Errorf("rocc: one sample in %d packets is not between 1 and %d", c.Sample, maxSample)
	case c.Shadow < 0 || c.Shadow > MaxFlows:
		return fmt.Errorf("rocc: %d sampled packets are not between 1 and %d", c.Shadow, MaxFlows)
	}
	return nil
}

// With returns the configuration with the defaults of a link filled in.
func (c TableConfig) With(p *Params) TableConfig {
	flows, age := DefaultFlows, 100
	switch c.Kind {
	case AFD:
		flows = 1024
	case Aged:
		flows, age = Share(p), 10
	case Trap:
		flows = 128
	case Bubble:
		flows, age = 128, 10
	}
	c.Flows, c.Age, c.Sample, c.Shadow = cmp.Or(c.Flows, flows), cmp.Or(c.Age, age), cmp.Or(c.Sample, 8), cmp.Or(c.Shadow, 1024)
	return c
}

// Share is how many flows can have the least rate, but no more than 1024: more
// could not be held.
func Share(p *Params) int { return int(min(max(1, p.FMax/max(1, p.FMin)), 1024)) }

// maxSample bounds how few packets are looked at.
const maxSample = 1 << 16

// entry is what a table keeps of a flow beside the way to its sender.
type entry struct {
	key   Key
	hash  uint32
	chain uint32 // next with these bits of the hash, +1
	count uint32 // packets that were sampled
	past  uint32 // and of the round before (Bubble)
	seen  uint32 // period of the last one
	life  uint32 // how often the entry was given away
	rank  uint32 // place among the others (Bubble)
}

// Table is a table of flows of any kind but InQueue. It sees packets arrive
// and not leave. Its memory is fixed.
type Table struct {
	kind    Kind
	cfg     TableConfig
	flows   []Flow
	entries []entry
	heads   []uint32 // +1
	free    []uint32
	used    []uint64 // bitmap of entries
	cursor  uint32   // whose turn it is
	hand    uint32   // who is judged next when room is needed
	n       int

	tick uint32
	skip uint32 // packets until the next sample
	gap  uint32 // mean of that
	rng  frame.Rand

	shadow []sample // AFD
	order  []uint32 // Bubble: entries by rank

	largest uint32 // samples of one flow in the last round of Bubble

	// Full counts looked-at packets of flows for which there was no room,
	// Evicted flows that made room for others.
	Full, Evicted uint64
}

// sample names an entry for as long as it is not given away.
type sample struct{ index, life uint32 }

// none is the life of no entry.
const none = math.MaxUint32

// NewTable returns an empty table of a configuration that With completed. The
// seed decides which packets are sampled.
func NewTable(c TableConfig, seed uint64) *Table {
	t := &Table{kind: c.Kind, cfg: c, flows: make([]Flow, c.Flows), entries: make([]entry, c.Flows), free: make([]uint32, c.Flows),
		heads: make([]uint32, max(16, 1<<bits.Len(uint(c.Flows-1)))), used: make([]uint64, (c.Flows+63)/64), rng: frame.NewRand(seed), gap: 1}
	for i := range t.free {
		t.free[i] = uint32(c.Flows - 1 - i)
	}
	switch c.Kind {
	case AFD:
		t.shadow = make([]sample, c.Shadow)
		for i := range t.shadow {
			t.shadow[i].life = none
		}
	case Bubble:
		t.order = make([]uint32, 0, c.Flows)
	}
	if c.Kind != Aged {
		t.gap = uint32(c.Sample)
	}
	t.skip = 1
	return t
}

// Len returns how many flows there are.
func (t *Table) Len() int { return t.n }

// Skips reports whether the table does not look at this packet. Called once
// for each; if false, Note follows.
func (t *Table) Skips() bool {
	t.skip--
	return t.skip != 0
}

// Note looks at a packet. It returns the flow where that is new, to be filled
// in, else nil.
func (t *Table) Note(hash uint32, key Key) *Flow {
	t.skip = 1
	if t.gap > 1 { // uniform up to twice the mean, so that no pattern of packets hides
		t.skip += uint32(t.rng.Uint64() >> 32 * uint64(2*t.gap-1) >> 32)
	}
	switch t.kind {
	case AFD:
		return t.afd(hash, key)
	case Trap:
		return t.trap(hash, key)
	case Bubble:
		return t.bubble(hash, key)
	default:
		return t.aged(hash, key)
	}
}

// Tick is called once in a period, before the flows are notified.
func (t *Table) Tick() {
	t.tick++
	if t.kind == Bubble && t.tick%uint32(t.cfg.Age) == 0 {
		t.round()
	}
}

// Next returns the flow whose turn it is, nil where that needs no notice. A
// caller asks at most Len times in a period. The flow is to be used before the
// next call of the table.
func (t *Table) Next() *Flow {
	if t.n == 0 {
		return nil
	}
	i := t.following(t.cursor)
	t.cursor = i + 1
	e := &t.entries[i]
	notify := true
	switch t.kind {
	case AFD:
		if e.count == 0 {
			t.remove(i)
			return &t.flows[i]
		}
	case Trap: // a single sample makes no elephant
		notify = e.count > 0
	case Bubble:
		notify = max(e.count, e.past) >= t.largest/small
	}
	if t.kind != Bubble && t.tick-e.seen > uint32(t.cfg.Age) {
		t.remove(i)
	}
	if !notify {
		return nil
	}
	return &t.flows[i]
}

// following returns the first entry in use from i on, around the end.
func (t *Table) following(i uint32) uint32 {
	w := int(i / 64)
	if w >= len(t.used) {
		w, i = 0, 0
	}
	word := t.used[w] &^ (1<<(i%64) - 1)
	for word == 0 {
		if w++; w == len(t.used) {
			w = 0
		}
		word = t.used[w]
	}
	return uint32(w*64 + bits.TrailingZeros64(word))
}

func (t *Table) find(hash uint32, key Key) (uint32, bool) {
	for at := t.heads[hash&uint32(len(t.heads)-1)]; at != 0; at = t.entries[at-1].chain {
		if e := &t.entries[at-1]; e.hash == hash && e.key == key {
			return at - 1, true
		}
	}
	return 0, false
}

// add gives a free entry to a flow; there must be one.
func (t *Table) add(hash uint32, key Key) uint32 {
	i := t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	head := &t.heads[hash&uint32(len(t.heads)-1)]
	t.entries[i] = entry{key: key, hash: hash, chain: *head, seen: t.tick, life: t.entries[i].life + 1}
	*head = i + 1
	t.used[i/64] |= 1 << (i % 64)
	t.n++
	return i
}

func (t *Table) remove(i uint32) {
	gone := &t.entries[i]
	at := &t.heads[gone.hash&uint32(len(t.heads)-1)]
	for *at != i+1 {
		at = &t.entries[*at-1].chain
	}
	*at = gone.chain
	gone.life++
	t.used[i/64] &^= 1 << (i % 64)
	t.free = append(t.free, i)
	t.n--
}
