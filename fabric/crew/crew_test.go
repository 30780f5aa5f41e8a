package crew

import (
	"runtime"
	"sync/atomic"
	"testing"

	"gswitch/frame"
)

// Every part that is asked for runs once in each turn, and no turn begins before the
// one before it has ended, whoever has slept in between.
func TestTurns(t *testing.T) {
	const parts = 5
	var c Crew
	defer c.Rest()
	rng := frame.NewRand(1)
	var in, turn atomic.Int32
	var ran [parts]int
	run := func(part int) {
		in.Add(1)
		now := turn.Load()
		for range part {
			runtime.Gosched()
		}
		ran[part]++
		if turn.Load() != now {
			t.Error("a turn ended before all had returned")
		}
		in.Add(-1)
	}
	var want [parts]int
	for range 3000 {
		var v []int
		for p := range parts {
			if rng.Uint32n(2) == 0 {
				v = append(v, p)
				want[p]++
			}
		}
		if len(v) == 0 {
			continue
		}
		c.Side(v, run)
		if n := in.Load(); n != 0 {
			t.Fatalf("%d are still at work", n)
		}
		turn.Add(1)
		if rng.Uint32n(200) == 0 { // the others fall asleep, or go
			for range 300 {
				runtime.Gosched()
			}
			c.Rest()
		}
	}
	if ran != want {
		t.Errorf("the parts ran %v times, asked for %v", ran, want)
	}
}

// A crew that rests has no goroutine left.
func TestRest(t *testing.T) {
	before := runtime.NumGoroutine()
	var c Crew
	c.Side([]int{0, 1, 2}, func(int) {})
	c.Rest()
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines, before %d", n, before)
	}
}
