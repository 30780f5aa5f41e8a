package policy

import (
	"slices"
	"testing"

	"gswitch/frame"
)

// A queue of two keys gives up whom a search finds, by a heap that is made when it is
// asked first, or there are so many packets, and given up after long without a
// question.
func TestVictimsAreSortedLate(t *testing.T) {
	p, err := load("", `x(a, b) = a.flow < b.flow; q = Queue(5000 pkts); q.procPrio = ranked; q.admPrio = x;`, false)
	if err != nil {
		t.Fatal(err)
	}
	e := p.NewEngine(1, 0)
	h := e.queues[0].adm
	rng := frame.NewRand(2)
	var all []Packet // as they came
	came := uint32(0)
	offer := func() {
		x := Packet{Rank: int64(rng.Uint32n(3000)), Flow: rng.Uint32n(3000), Ref: frame.Ref(came + 1), Size: 100}
		came++
		e.Offer(&x)
		all = append(all, x)
		want := frame.Ref(0)
		if len(all) > 5000 {
			k := 0
			for i := range all {
				if all[i].Flow >= all[k].Flow {
					k = i
				}
			}
			want = all[k].Ref
			all = slices.Delete(all, k, k+1)
		}
		if v := e.Victim(); v == nil && want != 0 || v != nil && v.Ref != want {
			t.Fatalf("packet %d: %v is given up, want %d", came, v, want)
		}
	}
	take := func() {
		k := 0
		for i := range all {
			if all[i].Rank < all[k].Rank {
				k = i
			}
		}
		if got := e.Take().Ref; got != all[k].Ref {
			t.Fatalf("%d leaves, want %d", got, all[k].Ref)
		}
		all = slices.Delete(all, k, k+1)
	}
	for round := range 2 {
		for len(all) < 4096 { // never asked, until there are too many
			offer()
		}
		if round == 0 && !h.lazy {
			t.Error("who is given up is sorted before anybody asks")
		}
		for range 950 { // 46 of them beyond the limit
			offer()
		}
		if h.lazy {
			t.Error("there is no heap of more than a burst")
		}
		for len(all) > 50 {
			take()
		}
		for range 1000 { // without a search
			offer()
			take()
		}
		if !h.lazy || len(h.heap.v) != 0 {
			t.Error("a heap that nobody asks is kept")
		}
		for range 45 { // asked when there are few
			if r := e.TakeWorst(); !worst(all, r) {
				t.Fatalf("%d is given up, which is not the last in the order", r.Ref)
			} else {
				all = slices.DeleteFunc(all, func(x Packet) bool { return x.Ref == r.Ref })
			}
		}
	}
}

// worst reports whether no other is after a packet in the order: of equals the newest is.
func worst(all []Packet, p *Packet) bool {
	return !slices.ContainsFunc(all, func(x Packet) bool {
		return x.Flow > p.Flow || x.Flow == p.Flow && x.Ref > p.Ref
	})
}
