package flowradar

import "gswitch/telemetry"

// DLeft is the hash table that FlowRadar is compared with (section 4.8.2;
// Broder, Mitzenmacher: "Using Multiple Hash Functions to Improve IP Lookups",
// 2001): a flow goes to the least loaded of one bucket in each of several
// subtables, the leftmost of equals; where all are full it is not counted.
type DLeft struct {
	keys    telemetry.Keys
	buckets uint32 // in each subtable
	depth   uint8  // entries of a bucket
	load    [][]uint8
	// Overflow counts flows that found no place.
	Overflow int
}

// NewDLeft returns a table of that many entries in d subtables with buckets of
// depth entries.
func NewDLeft(entries, d, depth int, seed uint64) *DLeft {
	t := &DLeft{keys: telemetry.NewKeys(seed), buckets: uint32(entries / d / depth), depth: uint8(depth), load: make([][]uint8, d)}
	for i := range t.load {
		t.load[i] = make([]uint8, t.buckets)
	}
	return t
}

// Insert adds a flow that is not in the table yet.
func (t *DLeft) Insert(k Key) {
	_, h := hash(&t.keys, k)
	best, at := -1, uint32(0)
	for i := range t.load {
		b := uint32(uint64(uint32(telemetry.Fold(h, telemetry.Multipliers[i])>>32)) * uint64(t.buckets) >> 32)
		if best < 0 || t.load[i][b] < t.load[best][at] {
			best, at = i, b
		}
	}
	if t.load[best][at] == t.depth {
		t.Overflow++
		return
	}
	t.load[best][at]++
}
