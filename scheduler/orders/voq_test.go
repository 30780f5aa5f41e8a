package orders

import (
	"slices"
	"testing"

	"gswitch/frame"
	"gswitch/scheduler"
)

// Ingress ports take turns; frames of one stay in order; a queue that comes
// late gets its turn and no more.
func TestVOQTakesTurns(t *testing.T) {
	a := frame.MustArena(64, 256, 32)
	pool := frame.NewPool(a)
	q := VOQ{}.New(scheduler.Env{})
	put := func(in uint16, n ...int64) {
		for _, k := range n {
			r := pool.Alloc()
			m := a.Reset(r)
			m.InPort, m.Rank = in, k
			q.Enqueue(a, 0, r)
		}
	}
	var got []int64
	take := func(n int) {
		for range n {
			head := q.Head()
			r := q.Dequeue(a, 0)
			if r != head {
				t.Fatalf("Head said %d, Dequeue gave %d", head, r)
			}
			got = append(got, a.Meta(r).Rank)
			pool.Free(r)
		}
	}
	put(3, 30, 31, 32, 33)
	put(200, 90, 91)
	put(64, 60)
	take(3) // 3, 64, 200
	put(0, 1, 2)
	take(6)
	// Port 3 was next already when port 0 got its frames.
	if want := []int64{30, 60, 90, 31, 91, 1, 32, 2, 33}; !slices.Equal(got, want) {
		t.Errorf("served %v, want %v", got, want)
	}
	if q.Len() != 0 || q.Head() != frame.Nil || q.Dequeue(a, 0) != frame.Nil {
		t.Error("an empty queue has a frame")
	}
}

// Whatever comes in goes out once, in order for each ingress port, and no
// port waits for more than one frame of every other.
func TestVOQIsFair(t *testing.T) {
	a := frame.MustArena(4096, 256, 32)
	pool := frame.NewPool(a)
	rng := frame.NewRand(7)
	q := VOQ{}.New(scheduler.Env{})
	next := map[uint16]int64{}   // rank of the next frame put in
	expect := map[uint16]int64{} // rank of the next frame to come out
	waiting := map[uint16]int{}  // frames of others served since a port's last turn
	for range 20000 {
		if rng.Uint32n(2) == 0 && pool.Available() > 0 {
			in := uint16(rng.Uint32n(256))
			r := pool.Alloc()
			m := a.Reset(r)
			m.InPort, m.Rank = in, next[in]
			next[in]++
			q.Enqueue(a, 0, r)
			continue
		}
		r := q.Dequeue(a, 0)
		if r == frame.Nil {
			continue
		}
		m := a.Meta(r)
		if m.Rank != expect[m.InPort] {
			t.Fatalf("port %d: frame %d came before %d", m.InPort, m.Rank, expect[m.InPort])
		}
		expect[m.InPort]++
		for in := range next {
			if in != m.InPort && expect[in] < next[in] {
				if waiting[in]++; waiting[in] > 255 {
					t.Fatalf("port %d waited for %d frames of others", in, waiting[in])
				}
			}
		}
		waiting[m.InPort] = 0
		pool.Free(r)
	}
}

func TestVOQAllocatesNothing(t *testing.T) {
	a := frame.MustArena(64, 256, 32)
	pool := frame.NewPool(a)
	q := VOQ{}.New(scheduler.Env{})
	r := pool.Alloc()
	a.Reset(r).InPort = 5
	if n := testing.AllocsPerRun(100, func() { q.Enqueue(a, 0, r); q.Dequeue(a, 0) }); n != 0 {
		t.Errorf("%v allocations for a frame", n)
	}
}
