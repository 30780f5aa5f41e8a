package flowradar

import (
	"gswitch/frame"
	"gswitch/telemetry"
)

// Entry is a flow in an exact table. A flow that goes several ways through a switch
// has an entry for each.
type Entry struct {
	Key
	Traffic
}

// entry is an Entry as a table keeps it: 40 bytes.
type entry struct {
	addrs, rest uint64 // rest with the ports, as in a cell
	bytes       uint64
	packets     uint32
}

// Exact is a table of the flows of a slot, beside an encoded one or in its place,
// where memory allows it: it needs more for each flow, and decodes itself. One
// goroutine owns it.
type Exact struct {
	keys    telemetry.Keys
	index   []uint32 // by hash: 1 + place in entries; 0: free
	entries []entry
	// Overflow is how many packets found no place for their flow.
	Overflow uint64

	coming  [64]coming // packets whose places have been asked for
	ncoming int
}

// coming is a packet that Put has taken.
type coming struct {
	hash, addrs, rest uint64
	bytes             uint64
}

// NewExact returns a table for that many flows.
func NewExact(flows int) *Exact {
	size := 2
	for size < 2*flows {
		size *= 2
	}
	return &Exact{keys: telemetry.NewKeys(1), index: make([]uint32, size), entries: make([]entry, 0, flows)}
}

// ExactBytes is what a table for that many flows takes.
func ExactBytes(flows int) int {
	size := 2
	for size < 2*flows {
		size *= 2
	}
	return 4*size + 32*flows
}

// Reset empties the table.
func (t *Exact) Reset() {
	clear(t.index)
	t.entries, t.Overflow = t.entries[:0], 0
}

// Update counts packets of a flow.
func (t *Exact) Update(k Key, by Traffic) {
	rest := k.Rest | packPorts(by.In, by.Out)
	t.update(t.hash(k.Addrs, rest), k.Addrs, rest, by.Packets, by.Bytes)
}

// Put counts one packet of a flow by the next Flush. Its place comes into the cache
// meanwhile, together with those of others.
func (t *Exact) Put(k Key, in, out uint16, bytes uint32) {
	if t.ncoming == len(t.coming) {
		t.Flush()
	}
	rest := k.Rest | packPorts(in, out)
	c := &t.coming[t.ncoming]
	c.hash, c.addrs, c.rest, c.bytes = t.hash(k.Addrs, rest), k.Addrs, rest, uint64(bytes)
	frame.Prefetch(&t.index[c.hash&uint64(len(t.index)-1)])
	t.ncoming++
}

// Flush counts what Put has taken, in its order.
func (t *Exact) Flush() {
	for i := range t.coming[:t.ncoming] {
		c := &t.coming[i]
		t.update(c.hash, c.addrs, c.rest, 1, c.bytes)
	}
	t.ncoming = 0
}

func (t *Exact) hash(addrs, rest uint64) uint64 {
	return telemetry.Fold(telemetry.Fold(addrs^t.keys[0], rest^t.keys[1]), t.keys[2]|1)
}

func (t *Exact) update(h, addrs, rest uint64, packets uint32, bytes uint64) {
	mask := uint64(len(t.index) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		at := t.index[i]
		if at == 0 {
			if len(t.entries) == cap(t.entries) {
				t.Overflow += uint64(packets)
				return
			}
			t.entries = append(t.entries, entry{addrs: addrs, rest: rest, packets: packets, bytes: bytes})
			t.index[i] = uint32(len(t.entries))
			return
		}
		if e := &t.entries[at-1]; e.addrs == addrs && e.rest == rest {
			e.packets += packets
			e.bytes += bytes
			return
		}
	}
}

// Len is how many entries there are.
func (t *Exact) Len() int { return len(t.entries) }

// At returns entry i, in the order in which flows came.
func (t *Exact) At(i int) Entry {
	e := &t.entries[i]
	in, out := unpackPorts(e.rest)
	return Entry{Key{Addrs: e.addrs, Rest: e.rest & telemetry.FlowMask}, Traffic{Packets: e.packets, Bytes: e.bytes, In: in, Out: out}}
}
