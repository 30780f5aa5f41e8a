package inband

// RateTable has the rate of an egress port where the format does not carry
// it. It is filled before use and only read then. The zero pointer is an empty
// table.
type RateTable struct {
	key  []uint64 // node<<16 | port, plus 1 so that 0 is empty
	rate []uint64
	n    int
}

// Set enters the rate of a port in bit/s.
func (t *RateTable) Set(node uint32, port uint16, rate uint64) {
	if 2*t.n >= len(t.key) {
		t.grow()
	}
	k := rateKey(node, port)
	i := t.slot(k)
	if t.key[i] == 0 {
		t.n++
	}
	t.key[i], t.rate[i] = k, rate
}

// Rate returns the rate of a port in bit/s, 0 if it is not known.
func (t *RateTable) Rate(node uint32, port uint16) uint64 {
	if t == nil || t.n == 0 {
		return 0
	}
	return t.rate[t.slot(rateKey(node, port))]
}

func rateKey(node uint32, port uint16) uint64 { return (uint64(node)<<16 | uint64(port)) + 1 }

// slot returns where a key is, or the empty place where it would be: at most
// half of them are taken.
func (t *RateTable) slot(k uint64) int {
	mask := len(t.key) - 1
	i := int(k*0x9e3779b97f4a7c15>>40) & mask
	for t.key[i] != 0 && t.key[i] != k {
		i = (i + 1) & mask
	}
	return i
}

func (t *RateTable) grow() {
	old := *t
	size := max(16, 2*len(old.key))
	t.key, t.rate = make([]uint64, size), make([]uint64, size)
	for i, k := range old.key {
		if k != 0 {
			j := t.slot(k)
			t.key[j], t.rate[j] = k, old.rate[i]
		}
	}
}
