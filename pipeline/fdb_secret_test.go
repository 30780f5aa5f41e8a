package pipeline

import (
	"testing"

	"gswitch/frame"
)

// Addresses that were chosen to fill the two buckets of a station keep it from
// being learned under the secret that they were chosen by, and under no other.
func TestChosenAddressesAreSpread(t *testing.T) {
	const secret, room = 7, 64
	tables := map[uint64]*FDB{}
	for s := range uint64(20) {
		tables[s] = NewFDB(room, 0, s)
	}
	f := tables[secret]
	victim := MACKey(1, 0x020000000001)
	b, c := f.pair(victim)
	var chosen []uint64
	for mac := uint64(0x02000000ff00); len(chosen) < 2*fdbWays; mac++ {
		k := MACKey(1, mac)
		if x, y := f.pair(k); x == b && y == c || x == c && y == b {
			chosen = append(chosen, k)
		}
	}
	for s, f := range tables {
		for _, k := range chosen {
			f.Learn(frame.Second, k, 1)
		}
		r, _ := f.Learn(frame.Second, victim, 2)
		if _, there := f.Lookup(victim); there == (s == secret) || f.Len() > room/2 {
			t.Errorf("secret %d: the station is %v, with %d of %d entries", s, r, f.Len(), room)
		}
	}
}
