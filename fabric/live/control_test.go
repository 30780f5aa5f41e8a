package live

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gswitch/frame"
	"gswitch/sim"
)

// Events run in the order of their instants and, at one instant, in the order
// in which they were asked for, whenever the worker comes.
func TestControlOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type run struct{ at, id int }
		c := &control{}
		var got, want []run
		for id, at := range rapid.SliceOf(rapid.IntRange(0, 50)).Draw(t, "instants") {
			want = append(want, run{at, id})
			c.Put(sim.Entry{At: frame.Time(at), Do: func(now frame.Time) {
				if now < frame.Time(at) {
					t.Errorf("event of %d ran at %d", at, now)
				}
				got = append(got, run{at, id})
			}})
		}
		slices.SortStableFunc(want, func(a, b run) int { return a.at - b.at })
		for now := frame.Time(0); now < 60; now += frame.Time(rapid.IntRange(1, 20).Draw(t, "step")) {
			c.Advance(now)
			if w := c.Wake(now); w <= now {
				t.Fatalf("at %d the next is at %d", now, w)
			}
		}
		c.Advance(60)
		if !slices.Equal(got, want) || c.ran != uint64(len(want)) || c.Wake(60) != frame.Never {
			t.Errorf("ran %v, want %v", got, want)
		}
	})
}

// What repeats keeps its instants, and does not catch up on those that were
// missed.
func TestControlEvery(t *testing.T) {
	c := &control{}
	var at []frame.Time
	c.Put(sim.Entry{At: 10, Period: 10, Do: func(now frame.Time) { at = append(at, now) }})
	for _, now := range []frame.Time{5, 10, 12, 25, 61, 69, 70} {
		c.Advance(now)
	}
	if want := []frame.Time{10, 25, 61, 70}; !slices.Equal(at, want) {
		t.Errorf("called at %v, want %v", at, want)
	}
}

// Events that repeat, and those that ask for the next one, take no memory.
func TestControlDoesNotAllocate(t *testing.T) {
	c := &control{}
	calls := 0
	c.Put(sim.Entry{At: 1, Period: 1, Do: func(frame.Time) { calls++ }})
	var chain func(now frame.Time)
	chain = func(now frame.Time) { calls++; c.Put(sim.Entry{At: now + 3, Do: chain}) }
	c.Put(sim.Entry{At: 1, Do: chain})
	now := frame.Time(0)
	if n := testing.AllocsPerRun(1000, func() { now++; c.Advance(now) }); n != 0 {
		t.Errorf("%v allocations per instant", n)
	}
	if calls < 1300 {
		t.Errorf("%d calls", calls)
	}
}
