package orders

import (
	"math"
	"slices"
	"testing"

	"gswitch/frame"
	"gswitch/scheduler"
)

// put queues a frame of a rank if the order lets it in.
func put(a *frame.Arena, pool *frame.Pool, d scheduler.Discipline, frames int, rank int64) bool {
	r := pool.Alloc()
	m := a.Reset(r)
	m.Rank, m.Wire = rank, 100
	if g, ok := d.(scheduler.Gate); ok && g.Admits(0, m, frames, uint64(100*frames)) != scheduler.Pass {
		pool.Free(r)
		return false
	}
	d.Enqueue(a, 0, r)
	return true
}

func served(a *frame.Arena, pool *frame.Pool, d scheduler.Discipline) (ranks []int64) {
	for r := d.Dequeue(a, 0); r != frame.Nil; r = d.Dequeue(a, 0) {
		ranks = append(ranks, a.Meta(r).Rank)
		pool.Free(r)
	}
	return ranks
}

// The bounds of SP-PIFO, step by step, of its paper's two queues.
func TestSPPIFOBounds(t *testing.T) {
	a := frame.MustArena(64, 256, 32)
	pool := frame.NewPool(a)
	d := SPPIFO{Queues: 2}.New(scheduler.Env{}).(*sppifo)
	for _, c := range []struct {
		rank   int64
		bounds [2]int64
		queue  int
	}{
		{1, [2]int64{0, 1}, 1}, // push-up
		{4, [2]int64{0, 4}, 1},
		{2, [2]int64{2, 4}, 0}, // too good for the second: the first takes it
		{1, [2]int64{1, 3}, 0}, // an inversion in the first, of 1: push-down of both
		{3, [2]int64{1, 3}, 1},
		{2, [2]int64{2, 3}, 0},
		{-7, [2]int64{-7, -6}, 0},
	} {
		before := d.l[c.queue].Len()
		put(a, pool, d, 0, c.rank)
		if got := [2]int64(d.bound); got != c.bounds || d.l[c.queue].Len() != before+1 {
			t.Errorf("rank %d: bounds %v, want %v; %d in queue %d", c.rank, got, c.bounds, d.l[c.queue].Len(), c.queue)
		}
	}
	if got, want := served(a, pool, d), []int64{2, 1, 2, -7, 1, 4, 3}; !slices.Equal(got, want) {
		t.Errorf("served %v, want %v", got, want)
	}
}

// A queue of SP-PIFO that is full drops what comes for it, though others have room.
func TestSPPIFODepth(t *testing.T) {
	a := frame.MustArena(64, 256, 32)
	pool := frame.NewPool(a)
	d := SPPIFO{Queues: 2, Depth: 2}.New(scheduler.Env{})
	var in []bool
	for _, rank := range []int64{5, 5, 5, 1, 1, 1} {
		in = append(in, put(a, pool, d, 0, rank))
	}
	if want := []bool{true, true, false, true, true, false}; !slices.Equal(in, want) {
		t.Errorf("let in %v, want %v", in, want)
	}
}

// On random ranks eight queues invert far fewer pairs than one, and more than
// none: how good an approximation is shows in its order.
func TestSPPIFOInversions(t *testing.T) {
	a := frame.MustArena(4096, 256, 32)
	pool := frame.NewPool(a)
	inversions := func(o scheduler.Order) (n int) {
		rng := frame.NewRand(9)
		d := o.New(scheduler.Env{})
		for range 300 {
			for range 40 {
				put(a, pool, d, 0, int64(rng.Uint32n(100)))
			}
			v := served(a, pool, d)
			for i := range v {
				for _, later := range v[i+1:] {
					if later < v[i] {
						n++
					}
				}
			}
		}
		return n
	}
	fifo, eight, exact := inversions(scheduler.FIFO{}), inversions(SPPIFO{Queues: 8}), inversions(Ranked{})
	if exact != 0 || eight == 0 || eight > fifo/3 {
		t.Errorf("%d pairs inverted first-in first-out, %d with eight queues, %d exactly", fifo, eight, exact)
	}
}

// AIFO lets in by the quantile of a rank among those that came last and by the
// room that is left: C = 4, k = 0, window 1..8 (the paper's figure 3 with other
// numbers).
func TestAIFO(t *testing.T) {
	g := AIFO{Size: 4, Window: 8, Sample: 1}.New(scheduler.Env{})
	m := &frame.Meta{}
	for rank := range int64(8) {
		m.Rank = rank + 1
		g.Admits(0, m, 4, 0)
	}
	for _, c := range []struct {
		rank   int64
		frames int
		want   scheduler.Verdict
	}{
		// Each stands in the window in place of the oldest rank when it is judged.
		{9, 0, scheduler.Pass}, // 7/8 <= 4/4
		{9, 1, scheduler.Pass}, // 6/8 <= 3/4
		{9, 1, scheduler.Pass}, // 5/8
		{9, 2, scheduler.Pass}, // 4/8 <= 2/4
		{9, 3, scheduler.Drop}, // 3/8 > 1/4
		{6, 3, scheduler.Pass}, // 0/8
		{5, 4, scheduler.Drop}, // full
	} {
		m.Rank = c.rank
		if got := g.Admits(0, m, c.frames, 0); got != c.want {
			t.Errorf("rank %d at %d frames: %v, want %v", c.rank, c.frames, got, c.want)
		}
	}
	// A headroom of a half doubles the share that is let in.
	w := newWindow(4, 1)
	for _, r := range []int64{1, 2, 3, 4} {
		w.see(r)
	}
	if w.fits(4, 1, 2, 0) || !w.fits(4, 1, 2, 500) || !w.fits(3, 1, 2, 0) {
		t.Error("the headroom is not what it should be")
	}
	// One in three enters.
	w = newWindow(4, 3)
	for r := range int64(12) {
		w.see(r)
	}
	if got, want := w.rank, []int64{2, 5, 8, 11}; !slices.Equal(got, want) {
		t.Errorf("the window holds %v, want %v", got, want)
	}
}

// PACKS drops the greatest ranks as an exact queue would, and orders the others by
// queues: with a window of all ranks the first queue takes the best part.
func TestPACKS(t *testing.T) {
	a := frame.MustArena(512, 256, 32)
	pool := frame.NewPool(a)
	d := PACKS{Queues: 4, Depth: 2, Window: 8, Sample: 1}.New(scheduler.Env{}).(*packs)
	for r := range int64(8) {
		d.w.see(r)
	}
	d.w.sample = 1 << 30 // the window stays 0 to 7: a rank's quantile is an eighth of it
	for _, c := range []struct {
		rank  int64
		queue int // -1: dropped
	}{
		{0, 0}, {7, 3}, // 0 <= 2/8; 7/8 <= 8/8 and no less
		{2, 1},           // 2/8 > 1/8; <= 3/8
		{1, 0},           // 1/8 <= 1/8
		{6, -1}, {5, -1}, // 6/8, 5/8 > (0+1+2+1)/8
		{4, 3}, // 4/8 <= (0+1+2+1)/8
		{4, -1},
		{0, 1}, // the first is full: the next that has room
	} {
		before := make([]int, 4)
		for i := range before {
			before[i] = d.l[i].Len()
		}
		in := put(a, pool, d, 0, c.rank)
		at := -1
		for i := range before {
			if d.l[i].Len() > before[i] {
				at = i
			}
		}
		if at != c.queue || in != (at >= 0) {
			t.Errorf("rank %d joins queue %d, want %d", c.rank, at, c.queue)
		}
	}
	if got, want := served(a, pool, d), []int64{0, 1, 2, 0, 7, 4}; !slices.Equal(got, want) {
		t.Errorf("served %v, want %v", got, want)
	}
}

// Random serves each frame that waits with the same probability.
func TestRandomIsUniform(t *testing.T) {
	a := frame.MustArena(64, 256, 32)
	pool := frame.NewPool(a)
	const n, rounds = 5, 20_000
	d := Random{}.New(scheduler.Env{Seed: 5})
	var first, place [n]int
	for range rounds {
		for k := range int64(n) {
			put(a, pool, d, 0, k)
		}
		for at, k := range served(a, pool, d) {
			if at == 0 {
				first[k]++
			}
			if k == n-1 {
				place[at]++
			}
		}
	}
	for i := range n {
		for _, count := range []int{first[i], place[i]} {
			if math.Abs(float64(count)-rounds/n) > 5*math.Sqrt(rounds/n) {
				t.Errorf("first %v, place of the last %v, want about %d each", first, place, rounds/n)
			}
		}
	}
}

// Ranks far behind the ring wait for it in any case, and none is lost or
// overtaken by more than a bucket while nothing better comes.
func TestBucketsBehindTheRing(t *testing.T) {
	a := frame.MustArena(2048, 256, 32)
	pool := frame.NewPool(a)
	rng := frame.NewRand(4)
	for range 50 {
		d := Buckets{Width: 8}.New(scheduler.Env{})
		put(a, pool, d, 0, 0)
		for range 500 {
			put(a, pool, d, 0, int64(rng.Uint32n(1<<uint(rng.Uint32n(24)))))
		}
		v := served(a, pool, d)
		if len(v) != 501 || !slices.IsSortedFunc(v, func(a, b int64) int { return int(a/8 - b/8) }) {
			t.Fatalf("%d served: %v", len(v), v)
		}
	}
}

// The numbers by which equals are distinguished may run out.
func TestHeapRenumbers(t *testing.T) {
	var h heap
	h.seq = math.MaxUint32 - 5
	rng := frame.NewRand(8)
	for i := range 40 {
		h.push(int64(rng.Uint32n(3)), frame.Ref(i))
	}
	last := entry{rank: -1}
	for h.len() > 0 {
		e := h.pop()
		if e.rank < last.rank || e.rank == last.rank && e.ref < last.ref {
			t.Fatalf("%+v leaves after %+v", e, last)
		}
		last = e
	}
	if h.seq > 100 {
		t.Errorf("the next number is %d", h.seq)
	}
}
