package frame

import (
	"math"
	"runtime"
	"testing"
)

func TestRingFullEmptyAndWrap(t *testing.T) {
	r := NewRing(5) // becomes 8
	// Start just below the wrap of the indices.
	for _, i := range []interface{ Store(uint32) }{&r.head, &r.tail} {
		i.Store(math.MaxUint32 - 2)
	}
	r.cachedHead, r.cachedTail = math.MaxUint32-2, math.MaxUint32-2
	v := []Ref{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	out := make([]Ref, 10)
	for range 10 {
		if n := r.Push(v); n != 8 || r.Len() != 8 {
			t.Fatalf("%d frames went into a ring of 8", n)
		}
		if r.Push(v) != 0 {
			t.Fatal("a full ring took a frame")
		}
		if n := r.Pop(out); n != 8 || out[0] != 0 || out[7] != 7 {
			t.Fatalf("%d frames came out: %v", n, out)
		}
		if r.Pop(out) != 0 {
			t.Fatal("an empty ring gave a frame")
		}
	}
}

// One producer and one consumer, batches of random size: everything arrives
// once, in order. Run with -race.
func TestRingBetweenGoroutines(t *testing.T) {
	const total = 200_000
	r := NewRing(256)
	go func() {
		rnd := NewRand(1)
		var v [64]Ref
		for next := Ref(0); next < total; {
			n := min(int(rnd.Uint32n(64))+1, int(total-next))
			for i := range n {
				v[i] = next + Ref(i)
			}
			k := r.Push(v[:n])
			next += Ref(k)
			if k < n {
				runtime.Gosched()
			}
		}
	}()
	var out [48]Ref
	for want := Ref(0); want < total; {
		k := r.Pop(out[:])
		for _, got := range out[:k] {
			if got != want {
				t.Fatalf("got frame %d, want %d", got, want)
			}
			want++
		}
		if k == 0 {
			runtime.Gosched()
		}
	}
}

func BenchmarkRing(b *testing.B) {
	r := NewRing(256)
	var v [64]Ref
	for b.Loop() {
		r.Push(v[:])
		r.Pop(v[:])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/frame")
}
