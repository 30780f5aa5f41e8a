package flowradar

import "gswitch/telemetry"

// cell is the exclusive or of the keys that were folded into it, how many these
// are, and the packets of all of them.
type cell struct {
	addrs, rest uint64
	packets     uint32
	flows       int32
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

// Update counts n packets of a flow (algorithm 6).
func (f *Flowset) Update(k Key, n uint32) {
	x, y := hash(&f.keys, k)
	fresh := !f.mark(x)
	f.Packets += uint64(n)
	if fresh {
		f.Flows++
	}
	for j := range uint32(f.CellHashes) {
		c := &f.cells[f.place(y, j)]
		if fresh {
			c.addrs ^= k.Addrs
			c.rest ^= k.Rest
			c.flows++
		}
		c.packets += n
	}
}

// place returns the cell of hash function j.
func (f *Flowset) place(h uint64, j uint32) uint32 {
	return j*f.span + uint32(uint64(uint32(telemetry.Fold(h, telemetry.Multipliers[j])>>32))*uint64(f.span)>>32)
}

// mark sets the filter's bits of a flow and reports whether all were set.
func (f *Flowset) mark(h uint64) bool {
	known := true
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
	for i := range uint64(f.FilterHashes) {
		if w, bit := f.probe(h, i); f.filter[w]&bit == 0 {
			return false
		}
	}
	return true
}

// probe returns word and bit of the filter's hash function i, drawn from h by
// double hashing (Kirsch, Mitzenmacher 2006).
func (f *Flowset) probe(h, i uint64) (word uint32, bit uint64) {
	if f.Blocked {
		block := uint32(uint64(uint32(h)) * uint64(f.FilterBits/512) >> 32)
		at := uint32(h>>32+i*(h>>41|1)) & 511
		return block*8 + at/64, 1 << (at % 64)
	}
	at := uint32(uint64(uint32(h+i*(h>>32|1))) * uint64(f.FilterBits) >> 32)
	return at / 64, 1 << (at % 64)
}

// Occupancy is the share of the filter's bits that are set.
func (f *Flowset) Occupancy() float64 {
	n := 0
	for _, w := range f.filter {
		for ; w != 0; w &= w - 1 {
			n++
		}
	}
	return float64(n) / float64(f.FilterBits)
}
