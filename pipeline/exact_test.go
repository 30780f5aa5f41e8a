package pipeline

import (
	"fmt"
	"math/rand"
	"sync"
	"sync/atomic"
	"testing"
)

func TestExactProperty(t *testing.T) {
	for seed := int64(0); seed < 30; seed++ {
		rng := rand.New(rand.NewSource(seed))
		type version struct {
			t   *Exact[[2]uint64]
			ref map[[2]uint64]uint32
		}
		now := version{&Exact[[2]uint64]{}, map[[2]uint64]uint32{}}
		history := []version{now}
		for step := 0; step < 60; step++ {
			ref := make(map[[2]uint64]uint32, len(now.ref))
			for k, v := range now.ref {
				ref[k] = v
			}
			b := now.t.Edit()
			for n := rng.Intn(40); n > 0; n-- {
				k := [2]uint64{uint64(rng.Intn(8)), uint64(rng.Intn(16))}
				if _, known := ref[k]; rng.Intn(2) == 0 {
					v := rng.Uint32()
					b.Set(k, v)
					ref[k] = v
				} else {
					if b.Delete(k) != known {
						t.Fatal("Delete does not say what was there")
					}
					delete(ref, k)
				}
			}
			now = version{b.Build(), ref}
			history = append(history, now)
		}
		for i, v := range history {
			if v.t.Len() != len(v.ref) {
				t.Fatalf("version %d: %d entries, want %d", i, v.t.Len(), len(v.ref))
			}
			for a := uint64(0); a < 9; a++ {
				for c := uint64(0); c < 17; c++ {
					want, wantOK := v.ref[[2]uint64{a, c}]
					if got, ok := v.t.Lookup([2]uint64{a, c}); got != want || ok != wantOK {
						t.Fatalf("version %d: Lookup = %d %v, want %d %v", i, got, ok, want, wantOK)
					}
				}
			}
			for k, got := range v.t.All() {
				if v.ref[k] != got {
					t.Fatalf("All yields %v -> %d, want %d", k, got, v.ref[k])
				}
			}
		}
	}
}

func TestExactWithWithout(t *testing.T) {
	var empty Exact[Key]
	k := Key{7: 1}
	one := empty.With(k, 5)
	none := one.Without(k)
	if v, ok := one.Lookup(k); v != 5 || !ok {
		t.Errorf("With: %d %v", v, ok)
	}
	for _, e := range []*Exact[Key]{&empty, none} {
		if _, ok := e.Lookup(k); ok || e.Len() != 0 {
			t.Error("an empty table has an entry")
		}
	}
}

func TestExactSnapshotSwap(t *testing.T) {
	var table atomic.Pointer[Exact[[2]uint64]]
	table.Store((&Exact[[2]uint64]{}).With([2]uint64{1}, 0).With([2]uint64{2}, 0))
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 3 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for !stop.Load() {
				e := table.Load()
				a, _ := e.Lookup([2]uint64{1})
				b, _ := e.Lookup([2]uint64{2})
				if a != b {
					t.Errorf("torn update: %d and %d", a, b)
					return
				}
			}
		}()
	}
	for v := uint32(0); v < 500; v++ {
		b := table.Load().Edit()
		b.Set([2]uint64{1}, v)
		b.Set([2]uint64{uint64(v) + 3}, v)
		b.Set([2]uint64{2}, v)
		table.Store(b.Build())
	}
	stop.Store(true)
	wg.Wait()
}

func TestExactLookupDoesNotAllocate(t *testing.T) {
	e := (&Exact[Key]{}).With(Key{1: 1}, 1)
	keys, out := make([]Key, 64), make([]uint32, 64)
	if n := testing.AllocsPerRun(100, func() { e.LookupVec(keys, out, NoEntry) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkExact(b *testing.B) {
	benchExact(b, "128bit", func(r *rand.Rand) [2]uint64 { return [2]uint64{r.Uint64(), r.Uint64()} })
	benchExact(b, "512bit", func(r *rand.Rand) (k Key) {
		for i := range k {
			k[i] = r.Uint64()
		}
		return k
	})
}

func benchExact[K ExactKey](b *testing.B, name string, random func(*rand.Rand) K) {
	for _, n := range []int{10, 1000, 100000} {
		rng := rand.New(rand.NewSource(1))
		builder := (&Exact[K]{}).Edit()
		all := make([]K, n)
		for i := range all {
			all[i] = random(rng)
			builder.Set(all[i], uint32(i))
		}
		t := builder.Build()
		const probes = 1 << 10 // keys arrive in cache
		keys, out := make([]K, probes), make([]uint32, 64)
		for i := range keys {
			keys[i] = all[rng.Intn(n)]
		}
		b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
			for i := 0; i < b.N; i++ {
				at := i * 64 & (probes - 1)
				t.LookupVec(keys[at:at+64], out, NoEntry)
			}
			perFrame(b, 64)
		})
	}
}
