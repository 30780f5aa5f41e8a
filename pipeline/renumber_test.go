package pipeline

import (
	"testing"

	"gswitch/frame"
)

// Other numbers change nothing but the numbers, and the group itself keeps its
// own.
func TestRenumber(t *testing.T) {
	for _, members := range [][]Member{{{4, 1}, {9, 3}, {2, 2}}, {{4, 1}, {9, 0}, {2, 2}}, {{4, 0}}} {
		g, err := NewGroup(ChooseAdaptive, 256, members)
		if err != nil {
			t.Fatal(err)
		}
		if g, err = g.AtPorts([]uint16{70, 3, 64}[:len(members)]); err != nil {
			t.Fatal(err)
		}
		to := []uint32{0, 0, 5, 0, 0, 0, 0, 0, 0, 1} // 2 is 5 now, 4 is 0, 9 is 1
		ng := g.Renumber(to)
		number := func(h uint32) uint32 {
			if h == NoEntry {
				return h
			}
			return to[h]
		}
		up := PortSet{1 << 3, 1<<6 | 1}
		ra, rb := frame.NewRand(1), frame.NewRand(1)
		for i := range uint32(1000) {
			key := i * 2654435769
			if a, b := g.Select(key), ng.Select(key); b != number(a) {
				t.Fatalf("key %d goes to %d, and went to %d", key, b, a)
			}
			a, _ := g.Adaptive(&up, nil, &ra)
			if b, _ := ng.Adaptive(&up, nil, &rb); b != number(a) {
				t.Fatalf("%d is chosen by load, and %d was", b, a)
			}
		}
		for i, m := range g.Members() {
			if m != members[i] || ng.Members()[i] != (Member{to[m.NextHop], m.Weight}) {
				t.Errorf("member %v is %v", m, ng.Members()[i])
			}
		}
	}
}
