package flowradar

import (
	"math"
	"math/bits"

	"gswitch/telemetry"
)

// cell is the exclusive or of the keys that were folded into it, with the ports of
// each flow's first packet above its rest, how many these are, and the packets and
// bytes of all of them.
type cell struct {
	addrs, rest uint64
	packets     uint32
	flows       int32
	bytes       uint64
}

// Flowset is the encoded table of one slot. One goroutine owns it.
type Flowset struct {
	Params
	keys   telemetry.Keys
	filter []uint64
	cells  []cell
	span   uint32 // cells for each hash function
	// Packets and Flows are what was counted: Flows is how many keys the filter
	// did not know, exact except where it is wrong.
	Packets, Flows uint64
}

// New returns an empty flowset. It panics if p is not valid.
func New(p Params) *Flowset {
	if err := p.Validate(); err != nil {
		panic("flowradar: " + err.Error())
	}
	return &Flowset{Params: p, keys: telemetry.NewKeys(p.Seed), filter: make([]uint64, (p.FilterBits+63)/64), cells: make([]cell, p.Cells), span: p.Cells / uint32(p.CellHashes)}
}

// Reset empties the flowset.
func (f *Flowset) Reset() {
	clear(f.filter)
	clear(f.cells)
	f.Packets, f.Flows = 0, 0
}

// Clone returns a copy.
func (f *Flowset) Clone() *Flowset {
	c := *f
	c.filter = append([]uint64(nil), f.filter...)
	c.cells = append([]cell(nil), f.cells...)
	return &c
}

// Update counts packets of a flow (algorithm 6).
func (f *Flowset) Update(k Key, t Traffic) {
	x, y := hash(&f.keys, k)
	fresh := !f.mark(x)
	f.Packets += uint64(t.Packets)
	rest := k.Rest | packPorts(t.In, t.Out)
	if fresh {
		f.Flows++
	}
	for j := range uint32(f.CellHashes) {
		c := &f.cells[f.place(y, j)]
		if fresh {
			c.addrs ^= k.Addrs
			c.rest ^= rest
			c.flows++
		}
		c.packets += t.Packets
		c.bytes += t.Bytes
	}
}

// place returns the cell of hash function j.
func (f *Flowset) place(h uint64, j uint32) uint32 {
	return j*f.span + uint32(uint64(uint32(telemetry.Fold(h, telemetry.Multipliers[j])>>32))*uint64(f.span)>>32)
}

// mark sets the filter's bits of a flow and reports whether all were set.
func (f *Flowset) mark(h uint64) bool {
	known := true
	if f.Blocked {
		block, at := f.block(h), uint64(0)
		for i := range uint64(f.FilterHashes) {
			at = places(at, h, i)
			w, bit := &block[at>>6&7], uint64(1)<<(at&63)
			known = known && *w&bit != 0
			*w |= bit
		}
		return known
	}
	for i := range uint64(f.FilterHashes) {
		w, bit := f.probe(h, i)
		known = known && f.filter[w]&bit != 0
		f.filter[w] |= bit
	}
	return known
}

// Has reports whether the filter knows a flow: always, if it was counted.
func (f *Flowset) Has(k Key) bool {
	h, _ := hash(&f.keys, k)
	if f.Blocked {
		block, at := f.block(h), uint64(0)
		for i := range uint64(f.FilterHashes) {
			if at = places(at, h, i); block[at>>6&7]>>(at&63)&1 == 0 {
				return false
			}
		}
		return true
	}
	for i := range uint64(f.FilterHashes) {
		if w, bit := f.probe(h, i); f.filter[w]&bit == 0 {
			return false
		}
	}
	return true
}

// block returns the 512 bits that have those of a flow.
func (f *Flowset) block(h uint64) *[8]uint64 {
	at := uint64(uint32(h)) * uint64(f.FilterBits/512) >> 32
	return (*[8]uint64)(f.filter[at*8:])
}

// places returns, in its low 9 bits, the place in a block of hash function i, from
// what it returned for i-1. Each has bits of its own: with places drawn by double
// hashing, flows of a block would have one of 2^17 patterns, and one in ten thousand
// of those that a table is for would be taken for another.
func places(before, h, i uint64) uint64 {
	if i%7 == 0 {
		return telemetry.Fold(h, telemetry.Multipliers[i/7%8])
	}
	return before >> 9
}

// probe returns word and bit of the plain filter's hash function i, drawn from h by
// double hashing (Kirsch, Mitzenmacher 2006).
func (f *Flowset) probe(h, i uint64) (word uint32, bit uint64) {
	at := uint32(uint64(uint32(h+i*(h>>32|1))) * uint64(f.FilterBits) >> 32)
	return at / 64, 1 << (at % 64)
}

// Occupancy is the share of the filter's bits that are set.
func (f *Flowset) Occupancy() float64 {
	n := 0
	for _, w := range f.filter {
		n += bits.OnesCount64(w)
	}
	return float64(n) / float64(f.FilterBits)
}

// Wrong is how often the filter takes a flow for its own that is not.
func (f *Flowset) Wrong() float64 { return math.Pow(f.Occupancy(), float64(f.FilterHashes)) }
