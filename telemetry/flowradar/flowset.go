package flowradar

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
	layout
	filter []uint64
	cells  []cell
	// Packets and Flows are what was counted: Flows is how many keys the filter
	// did not know, exact except where it is wrong.
	Packets, Flows uint64
}

// New returns an empty flowset. It panics if p is not valid.
func New(p Params) *Flowset {
	if err := p.Validate(); err != nil {
		panic("flowradar: " + err.Error())
	}
	return &Flowset{layout: newLayout(p), filter: make([]uint64, (p.FilterBits+63)/64), cells: make([]cell, p.Cells)}
}

// Reset empties the flowset.
func (f *Flowset) Reset() {
	clear(f.filter)
	clear(f.cells)
	f.Packets, f.Flows = 0, 0
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

// mark sets the filter's bits of a flow and reports whether all were set.
func (f *Flowset) mark(h uint64) bool {
	known := true
	if f.Blocked {
		block, at := (*[8]uint64)(f.filter[uint64(f.block(h))*8:]), uint64(0)
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
