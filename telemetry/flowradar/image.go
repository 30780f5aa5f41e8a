package flowradar

import (
	"maps"
	"math"
	"math/bits"
	"slices"
)

// Image is a flowset as a collector has it. What it takes goes by the bytes of the
// report that brought it, not by the table that the report announces: of a table with
// little in it there are only the parts that are not zero.
type Image struct {
	layout
	Packets, Flows uint64
	filter         []uint64
	blocks         map[uint32]uint32 // nil: the filter has all words; otherwise where in it a block of eight is
	cells          cells
}

// Image returns the flowset as it is, with its own memory: it must not change before the
// image is decoded.
func (f *Flowset) Image() *Image {
	return &Image{layout: f.layout, Packets: f.Packets, Flows: f.Flows, filter: f.filter, cells: cells{v: f.cells}}
}

// mostlyZero is how many times larger a table is than what a report has of it, where only
// that is kept.
const mostlyZero = 4

// newImage returns an empty image for so many bytes of a report.
func newImage(p Params, bytes int) *Image {
	m := &Image{layout: newLayout(p)}
	if words := int(p.FilterBits+63) / 64; words*8 <= mostlyZero*bytes {
		m.filter = make([]uint64, words)
	} else {
		m.blocks = map[uint32]uint32{}
	}
	if int(p.Cells)*cellMemory <= mostlyZero*bytes {
		m.cells.v = make([]cell, p.Cells)
	} else {
		m.cells.index = map[uint32]uint32{}
	}
	return m
}

// set sets a word of the filter.
func (m *Image) set(w uint32, v uint64) {
	if m.blocks == nil {
		m.filter[w] = v
		return
	}
	at, there := m.blocks[w/8]
	if !there {
		at = uint32(len(m.filter) / 8)
		m.blocks[w/8] = at
		m.filter = append(m.filter, make([]uint64, 8)...)
	}
	m.filter[at*8+w%8] = v
}

// word returns a word of the filter.
func (m *Image) word(w uint32) uint64 {
	if m.blocks == nil {
		return m.filter[w]
	}
	if at, there := m.blocks[w/8]; there {
		return m.filter[at*8+w%8]
	}
	return 0
}

// Has reports whether the filter knows a flow: always, if it was counted.
func (m *Image) Has(k Key) bool {
	h, _ := hash(&m.keys, k)
	if m.Blocked {
		block, at := m.block(h), uint64(0)
		if m.blocks != nil {
			where, there := m.blocks[block]
			if !there {
				return false
			}
			block = where
		}
		words := (*[8]uint64)(m.filter[uint64(block)*8:])
		for i := range uint64(m.FilterHashes) {
			if at = places(at, h, i); words[at>>6&7]>>(at&63)&1 == 0 {
				return false
			}
		}
		return true
	}
	for i := range uint64(m.FilterHashes) {
		if w, bit := m.probe(h, i); m.word(w)&bit == 0 {
			return false
		}
	}
	return true
}

// Occupancy is the share of the filter's bits that are set.
func (m *Image) Occupancy() float64 {
	n := 0
	for _, w := range m.filter {
		n += bits.OnesCount64(w)
	}
	return float64(n) / float64(m.FilterBits)
}

// Wrong is the filter's rate of false positives.
func (m *Image) Wrong() float64 { return math.Pow(m.Occupancy(), float64(m.FilterHashes)) }

// cells are those of a table that are kept: all, or those that were asked for.
type cells struct {
	v     []cell
	at    []uint32          // the place of each in the table
	index map[uint32]uint32 // by its place; nil: v has all
}

// entry returns where in v the cell of a place is, and has it there.
func (c *cells) entry(place uint32) uint32 {
	if c.index == nil {
		return place
	}
	i, there := c.index[place]
	if !there {
		i = uint32(len(c.v))
		c.index[place] = i
		c.v, c.at = append(c.v, cell{}), append(c.at, place)
	}
	return i
}

// place is the inverse of entry.
func (c *cells) place(i uint32) uint32 {
	if c.index == nil {
		return i
	}
	return c.at[i]
}

func (c *cells) clone() cells {
	return cells{v: slices.Clone(c.v), at: slices.Clone(c.at), index: maps.Clone(c.index)}
}

// image returns the encoded table of a report.
func (r *Report) image() *Image {
	if r.Encoded != nil {
		return r.Encoded.Image()
	}
	return r.Image
}

// cellMemory is what a cell takes in memory, in bytes.
const cellMemory = 32
