package scheduler

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gswitch/frame"
)

// The first frame of a flow leaves from the middle, and the others stay in
// order: [a1 b1 a2 b2 c1], for b twice.
func TestExtractFirst(t *testing.T) {
	cfg := PortConfig{}
	cfg.Queues[3].Discipline = NewFlowFIFO(4)
	g := newRig(t, cfg)
	names := map[frame.Ref]string{}
	for _, name := range []string{"a1", "b1", "a2", "b2", "c1"} {
		r := g.frame(3, 100)
		g.pool.Meta(r).Hash = 5 // all alike: flows are distinguished by what they are
		if name == "c1" {
			g.pool.Meta(r).Hash = 6
		}
		names[r] = name
		g.p.Enqueue(0, r)
	}
	take := func(flow byte) string {
		return names[g.p.ExtractFirst(0, 3, 5, func(r frame.Ref) bool { return names[r][0] == flow })]
	}
	if got := take('b'); got != "b1" {
		t.Fatal(got)
	}
	if n, bytes := g.p.QueueLen(3); n != 4 || bytes != 400 {
		t.Fatal(n, bytes)
	}
	if got := []string{take('b'), take('b'), take('c')}; !slices.Equal(got, []string{"b2", "", ""}) {
		t.Fatal(got)
	}
	var rest []string
	for n := g.p.Dequeue(0, g.out[:1]); n > 0; n = g.p.Dequeue(0, g.out[:1]) {
		rest = append(rest, names[g.out[0]])
	}
	if !slices.Equal(rest, []string{"a1", "a2", "c1"}) {
		t.Fatal(rest)
	}
}

// FlowFIFO does what a plain list does, with hashes that collide in whole and
// in the bits by which a list is found, and more flows than it was made for.
func TestFlowFIFOIsAList(t *testing.T) {
	a := frame.MustArena(256, 256, 64)
	rapid.Check(t, func(t *rapid.T) {
		q := NewFlowFIFO(rapid.IntRange(0, 8).Draw(t, "room"))
		var list []frame.Ref
		flow := map[frame.Ref]int{}
		var free []frame.Ref
		for r := range frame.Ref(256) {
			free = append(free, r)
		}
		row := 0
		flows := rapid.IntRange(1, 60).Draw(t, "flows")
		hash := func(f int) uint32 { return uint32(f/2) * 0x10001 } // two flows each
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0, 1:
				if len(free) == 0 {
					continue
				}
				r := free[0]
				free = free[1:]
				f := rapid.IntRange(0, flows-1).Draw(t, "flow")
				a.Reset(r)
				a.Meta(r).Hash, flow[r] = hash(f), f
				q.Enqueue(a, 0, r)
				list = append(list, r)
			case 2:
				want := frame.Nil
				if len(list) > 0 {
					want, list = list[0], list[1:]
					free = append(free, want)
				}
				if q.Head() != want {
					t.Fatalf("head is %d, want %d", q.Head(), want)
				}
				if got := q.Dequeue(a, 0); got != want {
					t.Fatalf("dequeued %d, want %d", got, want)
				}
			default:
				f := rapid.IntRange(0, flows-1).Draw(t, "flow")
				want := frame.Nil
				if i := slices.IndexFunc(list, func(r frame.Ref) bool { return flow[r] == f }); i >= 0 {
					want = list[i]
					list = slices.Delete(slices.Clone(list), i, i+1)
					free = append(free, want)
				}
				if got := q.ExtractFirst(a, hash(f), func(r frame.Ref) bool { return flow[r] == f }); got != want {
					t.Fatalf("extracted %d, want %d", got, want)
				}
			}
			var got []frame.Ref
			q.Each(a, func(r frame.Ref) bool { got = append(got, r); return true })
			if q.Len() != len(list) || !slices.Equal(got, list) {
				t.Fatalf("holds %v, want %v", got, list)
			}
			// By flows, in two goes, each hash once by its first frame.
			first, seen := map[uint32]frame.Ref{}, map[uint32]bool{}
			for _, r := range slices.Backward(list) {
				first[a.Meta(r).Hash] = r
			}
			visit := func(r frame.Ref) bool {
				if h := a.Meta(r).Hash; first[h] != r || seen[h] {
					t.Fatalf("frame %d of hash %x is not the first, or comes again", r, h)
				} else {
					seen[h] = true
				}
				return true
			}
			left := len(first) / 2
			row = q.EachFlow(a, row, func(r frame.Ref) bool {
				if left--; left < 0 {
					return false
				}
				return visit(r)
			})
			q.EachFlow(a, row, func(r frame.Ref) bool { return !seen[a.Meta(r).Hash] && visit(r) })
			if len(seen) != len(first) {
				t.Fatalf("%d hashes of %d", len(seen), len(first))
			}
		}
	})
}

// filled returns a queue of n frames of so many flows.
func filled(tb testing.TB, n, flows int) (*frame.Arena, *FlowFIFO, []frame.Ref) {
	a := frame.MustArena(n+1, 256, 64)
	q := NewFlowFIFO(flows)
	v := make([]frame.Ref, n)
	for i := range v {
		v[i] = frame.Ref(i)
		a.Reset(v[i])
		a.Meta(v[i]).Hash = uint32(i%flows) * 0x9e3779b1
		q.Enqueue(a, 0, v[i])
	}
	return a, q, v
}

// What taking a frame out of the middle costs does not depend on how long the
// queue is: one frame is compared, and few places of the table are looked at.
func TestExtractFirstLooksAtOne(t *testing.T) {
	for _, size := range []int{100, 10_000} {
		a, q, v := filled(t, size, size/10)
		compared, probed := 0, 0
		same := func(frame.Ref) bool { compared++; return true }
		for _, r := range v {
			hash := a.Meta(r).Hash
			probed += (q.find(hash)-q.home(hash)+len(q.flows))%len(q.flows) + 1
			if q.ExtractFirst(a, hash, same) == frame.Nil {
				t.Fatal("a frame that waits is not found")
			}
		}
		// Linear probing in a table at most half full takes 1.5 places on average
		// (Knuth, volume 3, section 6.4).
		if compared != size || probed > 2*size {
			t.Errorf("%d frames: %d compared, %d places looked at", size, compared, probed)
		}
	}
}

// A queue from which nothing is taken out of the middle keeps no lists of flows,
// and one from which something was does without again when those frames left.
func TestFlowFIFOListsOnDemand(t *testing.T) {
	a, q, v := filled(t, 10, 3)
	if q.used != 0 {
		t.Fatalf("%d flows are listed before one is looked for", q.used)
	}
	q.ExtractFirst(a, a.Meta(v[4]).Hash, func(r frame.Ref) bool { return r == v[4] })
	if q.used != 3 || q.listed != 9 {
		t.Fatalf("%d frames of %d flows are listed, want 9 of 3", q.listed, q.used)
	}
	for _, want := range slices.Delete(slices.Clone(v), 4, 5) {
		a.Reset(v[4])
		q.Enqueue(a, 0, v[4])
		if r := q.Dequeue(a, 0); r != want {
			t.Fatalf("%d left, want %d", r, want)
		}
		if want != v[4] {
			v[4] = want // again at the end
		}
	}
	if q.used != 0 || q.listed != 0 || q.Len() != 9 {
		t.Fatalf("%d flows and %d frames are listed of %d", q.used, q.listed, q.Len())
	}
}

func TestFlowFIFONoAllocation(t *testing.T) {
	a, q, _ := filled(t, 1000, 100)
	same := func(frame.Ref) bool { return true }
	i := uint32(0)
	if n := testing.AllocsPerRun(1000, func() {
		i++
		r := q.ExtractFirst(a, i%100*0x9e3779b1, same)
		q.Enqueue(a, 0, r)
		q.Enqueue(a, 0, q.Dequeue(a, 0))
	}); n != 0 {
		t.Fatal(n)
	}
}

func BenchmarkFlowFIFO(b *testing.B) {
	same := func(frame.Ref) bool { return true }
	for name, size := range map[string]int{"100": 100, "10000": 10000} {
		b.Run("extract-"+name, func(b *testing.B) {
			a, q, v := filled(b, size, size/10)
			for i := 0; i < b.N; i++ {
				q.Enqueue(a, 0, q.ExtractFirst(a, a.Meta(v[i%size]).Hash, same))
			}
		})
		b.Run("dequeue-"+name, func(b *testing.B) {
			a, q, _ := filled(b, size, size/10)
			for i := 0; i < b.N; i++ {
				q.Enqueue(a, 0, q.Dequeue(a, 0))
			}
		})
	}
}

// Whatever the discipline, Each visits the frames that wait, and stops when
// it is reported.
func TestEach(t *testing.T) {
	for name, d := range map[string]Discipline{"fifo": nil, "flows": NewFlowFIFO(4), "list": FIFO{}.New(Env{})} {
		cfg := PortConfig{}
		cfg.Queues[2].Discipline = d
		g := newRig(t, cfg)
		want := map[frame.Ref]bool{}
		for i := range 5 {
			r := g.frame(2, 100)
			g.pool.Meta(r).InPort = uint16(i % 2)
			g.p.Enqueue(0, r)
			want[r] = true
		}
		if n := g.p.Dequeue(0, g.out[:1]); n != 1 {
			t.Fatal(n)
		}
		delete(want, g.out[0])
		n := 0
		if g.p.Each(2, func(r frame.Ref) bool { n++; delete(want, r); return true }); len(want) != 0 || n != 4 {
			t.Errorf("%s: %d visited, %d not", name, n, len(want))
		}
		n = 0
		g.p.Each(2, func(frame.Ref) bool { n++; return n < 3 })
		if n != 3 {
			t.Errorf("%s: %d visited after it was asked to stop at 3", name, n)
		}
		g.p.Each(3, func(frame.Ref) bool { t.Errorf("%s: an empty queue has a frame", name); return true })
	}
}
