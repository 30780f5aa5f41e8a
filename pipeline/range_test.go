package pipeline

import (
	"fmt"
	"math/rand"
	"testing"
)

func TestRangeProperty(t *testing.T) {
	for seed := int64(0); seed < 200; seed++ {
		rng := rand.New(rand.NewSource(seed))
		table := &Range{}
		var ref [300]uint32 // value + 1
		for step := 0; step < 40; step++ {
			lo := uint32(rng.Intn(290))
			if rng.Intn(4) == 0 {
				for _, v := range table.Intervals() {
					if v.Lo == lo {
						clear(ref[v.Lo : v.Hi+1])
					}
				}
				table = table.Without(lo)
				continue
			}
			v := Interval{lo, lo + uint32(rng.Intn(10)), rng.Uint32() >> 1}
			free := true
			for _, r := range ref[v.Lo : v.Hi+1] {
				free = free && r == 0
			}
			next, err := table.With(v)
			if free != (err == nil) {
				t.Fatalf("With(%v) over %v: %v", v, table.Intervals(), err)
			}
			if free {
				table = next
				for i := v.Lo; i <= v.Hi; i++ {
					ref[i] = v.Value + 1
				}
			}
			for x := range ref {
				got, ok := table.Lookup(uint32(x))
				if ok != (ref[x] != 0) || ok && got != ref[x]-1 {
					t.Fatalf("Lookup(%d) = %d %v, want %d", x, got, ok, ref[x])
				}
			}
		}
	}
}

func TestRangeEdges(t *testing.T) {
	if _, err := NewRange([]Interval{{5, 4, 0}}); err == nil {
		t.Error("an empty interval is accepted")
	}
	r, err := NewRange([]Interval{{1<<32 - 1, 1<<32 - 1, 2}, {0, 0, 1}})
	if err != nil {
		t.Fatal(err)
	}
	xs, values := []uint32{0, 1, 1<<32 - 2, 1<<32 - 1}, make([]uint32, 4)
	r.LookupVec(xs, values, 9)
	if fmt.Sprint(values) != "[1 9 9 2]" {
		t.Errorf("values %v", values)
	}
}

func TestRangeLookupDoesNotAllocate(t *testing.T) {
	r, _ := NewRange([]Interval{{1, 5, 1}, {6, 9, 2}})
	xs, values := make([]uint32, 64), make([]uint32, 64)
	if n := testing.AllocsPerRun(100, func() { r.LookupVec(xs, values, NoEntry) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkRange(b *testing.B) {
	for _, n := range []int{10, 1000, 100000} {
		intervals := make([]Interval, n)
		for i := range intervals {
			intervals[i] = Interval{uint32(i * 16), uint32(i*16 + 10), uint32(i)}
		}
		table, err := NewRange(intervals)
		if err != nil {
			b.Fatal(err)
		}
		rng := rand.New(rand.NewSource(1))
		xs, values := make([]uint32, 1<<12), make([]uint32, 64)
		for i := range xs {
			xs[i] = uint32(rng.Intn(16 * n))
		}
		b.Run(fmt.Sprintf("lookup/%d", n), func(b *testing.B) {
			for i := 0; i < b.N; i++ {
				at := i * 64 & (len(xs) - 1)
				table.LookupVec(xs[at:at+64], values, NoEntry)
			}
			perFrame(b, 64)
		})
	}
}
