package flowradar

import "gswitch/telemetry"

// layout is where in a flowset a flow is.
type layout struct {
	Params
	keys telemetry.Keys
	span uint32 // cells for each hash function
}

func newLayout(p Params) layout {
	return layout{Params: p, keys: telemetry.NewKeys(p.Seed), span: p.Cells / uint32(p.CellHashes)}
}

// place returns the cell of hash function j.
func (f *layout) place(h uint64, j uint32) uint32 {
	return j*f.span + uint32(uint64(uint32(telemetry.Fold(h, telemetry.Multipliers[j])>>32))*uint64(f.span)>>32)
}

// block returns which 512 bits have those of a flow.
func (f *layout) block(h uint64) uint32 {
	return uint32(uint64(uint32(h)) * uint64(f.FilterBits/512) >> 32)
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
func (f *layout) probe(h, i uint64) (word uint32, bit uint64) {
	at := uint32(uint64(uint32(h+i*(h>>32|1))) * uint64(f.FilterBits) >> 32)
	return at / 64, 1 << (at % 64)
}
