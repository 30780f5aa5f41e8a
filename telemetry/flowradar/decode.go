package flowradar

import (
	"slices"

	"gswitch/telemetry"
)

// Record is a flow in a slot of one switch.
type Record struct {
	Key
	Traffic
	// Exact says that Packets is what the switch counted. Flows that came out with
	// another switch's help have no counter before Counters, and neither bytes nor ports
	// at all.
	Exact bool
}

// Table is a flowset while it is being decoded.
type Table struct {
	original *Image // what the switch sent; not changed
	work     cells  // what is left of its cells
	// Records are the flows found so far, in the order in which they were.
	Records []Record
	index   map[Key]int
	// foreign says that a flow was taken out whose packets here are not known: what
	// cells hold from then on are not counts of single flows (vector A3).
	foreign bool
	dirty   []uint32 // entries of work that may have become pure
}

// Single decodes a flowset alone (algorithm 7).
func Single(f *Flowset) *Table { return f.Image().Single() }

// Single decodes the image of a flowset alone (algorithm 7).
func (m *Image) Single() *Table {
	t := &Table{original: m, work: m.cells.clone(), index: map[Key]int{}}
	for c := range t.work.v {
		t.dirty = append(t.dirty, uint32(c))
	}
	t.peel()
	return t
}

// peel takes out what pure cells show until there are none, and returns how many
// flows that were.
func (t *Table) peel() int {
	before := len(t.Records)
	for len(t.dirty) > 0 {
		i := t.dirty[len(t.dirty)-1]
		t.dirty = t.dirty[:len(t.dirty)-1]
		c := t.work.v[i]
		if !t.pure(i, c) {
			continue
		}
		r := Record{Key: Key{Addrs: c.addrs, Rest: c.rest & telemetry.FlowMask}, Traffic: unknown}
		// Of a flow that the filter hid packets are left in cells that show others.
		t.foreign = t.foreign || uint64(c.packets) > t.original.Packets
		if !t.foreign {
			in, out := unpackPorts(c.rest)
			r.Traffic, r.Exact = Traffic{Packets: c.packets, Bytes: c.bytes, In: in, Out: out}, true
		}
		t.add(r)
		t.remove(c)
	}
	return len(t.Records) - before
}

// pure reports whether exactly one flow is left in a cell: its key must be one
// that falls there, that the filter knows, and that is not out yet. A flow that
// another switch's filter took for its own by mistake leaves cells behind that
// look pure, and what is peeled of them corrupts their neighbours.
func (t *Table) pure(i uint32, c cell) bool {
	if c.flows != 1 || c.rest>>63 != 0 {
		return false
	}
	k := Key{Addrs: c.addrs, Rest: c.rest & telemetry.FlowMask}
	if _, out := t.index[k]; out || !t.original.Has(k) {
		return false
	}
	_, h := hash(&t.original.keys, k)
	at := t.work.place(i)
	return t.original.place(h, at/t.original.span) == at
}

func (t *Table) add(r Record) {
	t.index[r.Key] = len(t.Records)
	t.Records = append(t.Records, r)
}

// remove takes what a pure cell shows out of the cells of its flow.
func (t *Table) remove(pure cell) {
	_, h := hash(&t.original.keys, Key{Addrs: pure.addrs, Rest: pure.rest & telemetry.FlowMask})
	for j := range uint32(t.original.CellHashes) {
		i := t.work.entry(t.original.place(h, j))
		c := &t.work.v[i]
		c.addrs ^= pure.addrs
		c.rest ^= pure.rest
		c.flows--
		c.packets -= pure.packets
		c.bytes -= pure.bytes
		if c.flows == 1 {
			t.dirty = append(t.dirty, i)
		}
	}
}

// unknown is the traffic of a flow of which only the key is known.
var unknown = Traffic{In: NoPort, Out: NoPort}

// borrow takes out a flow that another switch knows, whose counts and ports here
// are not known; guess is its packets there.
func (t *Table) borrow(k Key, guess uint32) {
	t.foreign = true
	r := Record{Key: k, Traffic: unknown}
	r.Packets = guess
	t.add(r)
	t.remove(cell{addrs: k.Addrs, rest: k.Rest})
}

// FlowsDone reports whether every flow is out.
func (t *Table) FlowsDone() bool {
	for i := range t.work.v {
		if c := &t.work.v[i]; c.flows != 0 || c.addrs != 0 || c.rest&telemetry.FlowMask != 0 {
			return false
		}
	}
	return true
}

// Done reports whether every flow and every counter is known. A flow that the
// filter took for a known one leaves packets behind: then all flows but that one
// are right and no counter can be trusted.
func (t *Table) Done() bool {
	if !t.FlowsDone() || t.foreign {
		return false
	}
	return !slices.ContainsFunc(t.work.v, func(c cell) bool { return c.packets != 0 })
}

// Find returns the record of a flow.
func (t *Table) Find(k Key) (Record, bool) {
	i, ok := t.index[k]
	if !ok {
		return Record{}, false
	}
	return t.Records[i], true
}

// Network goes on decoding tables with each other's help (algorithm 8). near
// lists, for each table, those that its flows may have crossed before or after
// it: the neighbours in the topology. hops, if not nil, gives for a flow of table
// i which others it crossed next to it: with the routes known, flows are tried
// nowhere else, and false positives of the filters do not matter.
func Network(tables []*Table, near [][]int, hops func(i int, k Key) []int) {
	tried := make([]int, len(tables)) // records that were shown to neighbours
	for again := true; again; {
		again = false
		for i, t := range tables {
			for ; tried[i] < len(t.Records); tried[i]++ {
				r := t.Records[tried[i]]
				others := near[i]
				if hops != nil {
					others = hops(i, r.Key)
				}
				for _, j := range others {
					o := tables[j]
					if _, out := o.index[r.Key]; out || o.FlowsOut() || !o.original.Has(r.Key) {
						continue
					}
					o.borrow(r.Key, r.Packets)
					again = true
				}
			}
		}
		for _, t := range tables {
			if t.peel() > 0 {
				again = true
			}
		}
	}
}

// FlowsOut reports whether as many flows are out as the switch counted: nothing is left
// to find.
func (t *Table) FlowsOut() bool { return uint64(len(t.Records)) >= t.original.Flows }
