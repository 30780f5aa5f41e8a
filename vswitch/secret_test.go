package vswitch

import "testing"

// Neighbours that were chosen to stand in one row under one secret are spread
// under another: an attacker without a switch's own cannot make lookups long.
func TestChosenNeighborsAreSpread(t *testing.T) {
	at, elsewhere := newNeighborTable(MaxNeighbors, 7), newNeighborTable(MaxNeighbors, 8)
	want, slots, found := uint32(0), map[uint32]int{}, 0
	for a := uint64(1); found < 200; a++ {
		if a > 1<<28 {
			t.Fatal("no 200 neighbours share a slot: the table does not hash them")
		}
		k := addrKey{0x20010db800000000, a << 20}
		if h := at.home(1, k) & at.mask; found == 0 || h == want {
			want = h
			slots[elsewhere.home(1, k)&elsewhere.mask]++
			found++
		}
	}
	for _, n := range slots {
		if n > 4 {
			t.Errorf("of 200 neighbours that share a slot under one secret %d share one under another", n)
		}
	}
	// Addresses that are alike but for their highest bits are, too.
	clear(slots)
	for a := range uint64(4096) {
		slots[at.home(1, addrKey{0x20010db800000000, a << 52})&at.mask]++
	}
	if len(slots) < 3000 {
		t.Errorf("4096 addresses that differ in their highest bits begin at %d slots", len(slots))
	}
}
