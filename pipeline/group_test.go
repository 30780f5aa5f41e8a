package pipeline

import (
	"fmt"
	"math"
	"math/rand"
	"testing"

	"gswitch/frame"
)

func owned(g *Group) map[uint32]int {
	n := map[uint32]int{}
	for _, nh := range g.Buckets() {
		n[nh]++
	}
	return n
}

// Random sequences of changes: members get their shares, a departure moves
// only the buckets of the member that departs, and an arrival moves buckets only to it.
func TestGroupProperty(t *testing.T) {
	for seed := int64(0); seed < 300; seed++ {
		rng := rand.New(rand.NewSource(seed))
		n := 64 << rng.Intn(4)
		g, err := NewGroup(ChooseHash, n, nil)
		if err != nil {
			t.Fatal(err)
		}
		var members []Member
		next := uint32(0)
		for step := 0; step < 40; step++ {
			before := append([]uint32(nil), g.Buckets()...)
			was := append([]Member(nil), members...)
			var came, went uint32 = NoEntry, NoEntry
			if len(members) > 0 && rng.Intn(2) == 0 {
				i := rng.Intn(len(members))
				went = members[i].NextHop
				members = append(append([]Member(nil), members[:i]...), members[i+1:]...)
			} else if len(members) < 16 {
				came = next
				members = append(append([]Member(nil), members...), Member{next, uint32(1 + rng.Intn(4))})
				next++
			}
			if g, err = g.WithMembers(members); err != nil {
				t.Fatal(err)
			}
			for i, nh := range g.Buckets() {
				switch {
				case nh == before[i] || len(was) == 0 || before[i] == NoEntry:
				case went != NoEntry && before[i] != went:
					t.Fatalf("seed %d: %d went, but a bucket moved from %d to %d", seed, went, before[i], nh)
				case went == NoEntry && nh != came:
					t.Fatalf("seed %d: %d came, but a bucket moved from %d to %d", seed, came, before[i], nh)
				}
			}
			sum := uint32(0)
			for _, m := range members {
				sum += m.Weight
			}
			has := owned(g)
			for _, m := range members {
				share := float64(m.Weight) * float64(n) / float64(sum)
				// A departure may leave a member short by what the others'
				// rounding took; an arrival never by a whole bucket.
				if d := float64(has[m.NextHop]) - share; d >= 1 || came != NoEntry && d <= -1 || d < -float64(len(members)) {
					t.Fatalf("seed %d: %d of %d buckets, share %.2f", seed, has[m.NextHop], n, share)
				}
			}
			if len(members) == 0 && has[NoEntry] != n {
				t.Fatal("an empty group chooses somebody")
			}
		}
	}
}

func TestGroupWeightZeroDrains(t *testing.T) {
	g, err := NewGroup(ChooseHash, 64, []Member{{1, 1}, {2, 1}})
	if err != nil {
		t.Fatal(err)
	}
	d, err := g.WithMembers([]Member{{1, 0}, {2, 1}})
	if err != nil {
		t.Fatal(err)
	}
	if o := owned(d); o[2] != 64 || owned(g)[1] != 32 {
		t.Errorf("drained: %v, before: %v", o, owned(g))
	}
}

func TestGroupRefuses(t *testing.T) {
	if _, err := NewGroup(ChooseHash, 0, nil); err == nil {
		t.Error("no buckets are accepted")
	}
	for _, m := range [][]Member{{{1, 1}, {1, 2}}, {{NoEntry, 1}}, {{1, 1}, {2, 1}, {3, 1}}} {
		if _, err := NewGroup(ChooseHash, 2, m); err == nil {
			t.Errorf("%v is accepted", m)
		}
	}
}

func TestGroupSpreads(t *testing.T) {
	members := []Member{{10, 1}, {20, 2}, {30, 5}}
	g, err := NewGroup(ChooseHash, 800, members)
	if err != nil {
		t.Fatal(err)
	}
	hashes := frame.NewRand(2)
	n := map[uint32]float64{}
	const frames = 80000
	for range frames {
		n[g.Select(uint32(hashes.Uint64()))]++
	}
	for _, m := range members {
		if want := frames / 8 * float64(m.Weight); math.Abs(n[m.NextHop]/want-1) > 0.05 {
			t.Errorf("next hop %d got %.0f of %.0f", m.NextHop, n[m.NextHop], want)
		}
	}
	first := g.Select(77)
	for range 100 {
		if g.Select(77) != first {
			t.Fatal("a flow changes its way")
		}
	}
}

func TestGroupDoesNotAllocate(t *testing.T) {
	g, err := NewGroup(ChooseHash, 256, []Member{{1, 1}, {2, 1}})
	if err != nil {
		t.Fatal(err)
	}
	sum := uint32(0)
	if n := testing.AllocsPerRun(100, func() { sum += g.Select(sum) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkGroup(b *testing.B) {
	for _, n := range []int{2, 64} {
		members := make([]Member, n)
		for i := range members {
			members[i] = Member{uint32(i), 1}
		}
		g, err := NewGroup(ChooseHash, 1024, members)
		if err != nil {
			b.Fatal(err)
		}
		rng := frame.NewRand(1)
		h, out := make([]uint32, 64), make([]uint32, 64)
		for i := range h {
			h[i] = uint32(rng.Uint64())
		}
		b.Run(fmt.Sprintf("select/%d", n), func(b *testing.B) {
			for i := 0; i < b.N; i++ {
				for j, key := range h {
					out[j] = g.Select(key)
				}
			}
			perFrame(b, 64)
		})
	}
}
