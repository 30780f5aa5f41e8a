package sim

import (
	"fmt"
	"slices"
	"testing"

	"gswitch/frame"
)

// The calendar against a plain list, over near, far and equal times.
func TestCalendarAgainstAList(t *testing.T) {
	for seed := range uint64(20) {
		rnd := frame.NewRand(seed)
		var q calendar
		const dirs, nodes = 40, 20
		q.reset(0, dirs, nodes)
		list := make([]frame.Time, 2*dirs+nodes)
		for i := range list {
			list[i] = frame.Never
		}
		now := frame.Time(0)
		spans := []uint32{4, 100, wheelSpan - 1, wheelSpan, wheelSpan + 1, 10 * wheelSpan}
		for range 5000 {
			if rnd.Uint32n(3) > 0 {
				i := rnd.Uint32n(uint32(len(list)))
				at := now + frame.Time(rnd.Uint32n(1+spans[rnd.Uint32n(uint32(len(spans)))]))
				if rnd.Uint32n(8) == 0 {
					at = frame.Never
				}
				list[i] = at
				q.set(int32(i), at)
				continue
			}
			want := slices.Min(list)
			if got := q.next(); got != want {
				t.Fatalf("seed %d at %d: next is %d, want %d", seed, now, got, want)
			}
			if want == frame.Never {
				continue
			}
			now = want
			var due []int32
			for i := range list {
				if list[i] == now {
					due = append(due, int32(i))
					list[i] = frame.Never
				}
			}
			if got := q.take(now); !slices.Equal(got, due) {
				t.Fatalf("seed %d at %d: due are %v, want %v", seed, now, got, due)
			}
		}
	}
}

// eventQueue is a candidate that the benchmark compares.
type eventQueue interface {
	set(i int32, t frame.Time)
	next() frame.Time
	take(t frame.Time) []int32
}

// heap4 is an indexed heap of four children to a node, by time and slot.
type heap4 struct {
	farHeap
	slots []slot
	batch []int32
}

func (h *heap4) set(i int32, t frame.Time) {
	s := &h.slots[i]
	if s.at != frame.Never {
		if t != frame.Never { // in place
			s.at = t
			h.heap[s.far].at = t
			h.down(h.slots, int(s.far))
			h.up(h.slots, int(s.far))
			return
		}
		h.remove(h.slots, s.far)
	}
	if s.at = t; t != frame.Never {
		h.push(h.slots, t, i)
	}
}

func (h *heap4) next() frame.Time { return h.first() }

func (h *heap4) take(t frame.Time) []int32 {
	h.batch = h.batch[:0]
	for h.first() == t {
		i := h.heap[0].slot
		h.remove(h.slots, 0)
		h.slots[i].at = frame.Never
		h.batch = append(h.batch, i)
	}
	sortSlots(h.batch)
	return h.batch
}

// tournament is a complete binary tree of the least time below each node.
type tournament struct {
	tree  []frame.Time // leaves from size on
	size  int
	batch []int32
}

func newTournament(n int) *tournament {
	size := 1
	for size < n {
		size *= 2
	}
	t := &tournament{tree: make([]frame.Time, 2*size), size: size}
	for i := range t.tree {
		t.tree[i] = frame.Never
	}
	return t
}

func (t *tournament) set(i int32, at frame.Time) {
	k := t.size + int(i)
	t.tree[k] = at
	for k >>= 1; k > 0; k >>= 1 {
		m := min(t.tree[2*k], t.tree[2*k+1])
		if t.tree[k] == m {
			return
		}
		t.tree[k] = m
	}
}

func (t *tournament) next() frame.Time { return t.tree[1] }

func (t *tournament) take(at frame.Time) []int32 {
	t.batch = t.batch[:0]
	for t.tree[1] == at {
		k := 1
		for k < t.size {
			if k *= 2; t.tree[k] != at {
				k++
			}
		}
		t.batch = append(t.batch, int32(k-t.size))
		t.set(int32(k-t.size), frame.Never)
	}
	return t.batch
}

// BenchmarkQueue replays the life of a loaded network: each direction has a
// frame on the way (after 1000 ns) and one to send (84 ns later).
func BenchmarkQueue(b *testing.B) {
	for _, dirs := range []int{50, 1300} {
		slots := func() []slot {
			s := make([]slot, 3*dirs)
			for i := range s {
				s[i] = slot{at: frame.Never, next: none, prev: none, far: none}
			}
			return s
		}
		cal := &calendar{}
		cal.reset(0, dirs, dirs)
		for _, c := range []struct {
			name string
			q    eventQueue
		}{{"calendar", cal}, {"heap4", &heap4{slots: slots()}}, {"tournament", newTournament(3 * dirs)}} {
			b.Run(fmt.Sprintf("%s/%d", c.name, 3*dirs), func(b *testing.B) {
				rnd := frame.NewRand(1)
				base := frame.Time(0)
				if t := c.q.next(); t != frame.Never {
					base = t // the slots of the run before are still there
				}
				for i := range dirs {
					c.q.set(int32(i), base+frame.Time(rnd.Uint32n(84)))
					c.q.set(int32(2*dirs+i), base+frame.Time(rnd.Uint32n(84)))
					c.q.set(int32(dirs+i), base+100_000+frame.Time(rnd.Uint32n(100_000)))
				}
				for n := 0; n < b.N; {
					t := c.q.next()
					for _, i := range c.q.take(t) {
						span := frame.Time(83 + rnd.Uint32n(2))
						if int(i) >= dirs && int(i) < 2*dirs {
							span = 100_000
						}
						c.q.set(i, t+span)
						n++
					}
				}
			})
		}
	}
}
