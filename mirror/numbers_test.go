package mirror

import "testing"

// upTo are the numbers from 0 to n.
func upTo(n uint32) (v []uint32) {
	for k := range n + 1 {
		v = append(v, k)
	}
	return v
}

// Missing are packets whose numbers were used and that did not arrive: of each worker by itself, whatever
// order copies come in, and not what was before a switch began anew.
func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		name    string
		numbers []uint32
		missing uint64
	}{
		{"all", []uint32{7, 8, 9, 10}, 0},
		{"some", []uint32{7, 9, 13}, 4},
		{"overtaken", []uint32{1, 3, 2, 4, 6, 5}, 0},
		{"overtaken from the first on", []uint32{3, 1, 2, 6}, 2},
		{"wrapped", []uint32{1<<32 - 2, 1<<32 - 1, 1, 0, 2}, 0},
		{"anew", []uint32{100_000, 100_003, 0, 1, 3}, 3},
		{"anew, from the upper half", []uint32{3_000_000_000, 3_000_000_001, 0, 1, 3}, 1},
		{"anew, before one could tell by the number", append(upTo(1000), append(upTo(1000), 1005, 1010)...), 8},
		{"many", []uint32{7, 5008, 5009}, 5000},
		{"many, then overtaken", []uint32{7, 5009, 5008}, 5000},
		{"many, and the numbers begin again", []uint32{1<<32 - 10, 1<<32 - 9, 4999, 5000, 5002}, 5008},
		{"anew around 0", []uint32{1 << 31, 1<<31 + 1, 1<<32 - 1, 0, 2}, 1},
		{"made up", []uint32{7, 8, 2_000_000_000, 9, 10, 12}, 1},
		{"made up, twice", []uint32{7, 8, 1_000_000, 1_000_000, 9, 10, 12}, 1},
		{"made up, a little ahead", []uint32{7, 8, 1_000_000, 9, 10, 12}, 1},
		{"made up, behind", []uint32{1_000_007, 1_000_008, 3, 1_000_009, 1_000_011, 900_000, 1_000_012}, 1},
		{"made up, of those that come", append([]uint32{0, 1, 4000}, upTo(5000)[2:]...), 0},
	} {
		var n Numbers
		for _, k := range c.numbers {
			for engine := range uint8(2) { // whose numbers are apart
				n.Add(&Copied{Switch: addr(0), Numbered: true, Engine: engine, Sequence: k + uint32(engine)*1_000_000})
			}
		}
		if n.Missing != 2*c.missing {
			t.Errorf("%s: %d are missing of two workers, want %d", c.name, n.Missing, 2*c.missing)
		}
	}
}
