package workers

import (
	"runtime"
	"sync/atomic"
	"testing"

	"gswitch/frame"
)

// Every part that is asked for runs once in each round, and no round begins before the
// one before it has ended, whichever worker slept in between.
func TestRounds(t *testing.T) {
	rounds(t)
}

// The same where workers sleep in nearly every round.
func TestRoundsOfSleepers(t *testing.T) {
	defer func(spins int) { spinsPerSleep = spins }(spinsPerSleep)
	spinsPerSleep = 2 * spinsPerYield
	rounds(t)
}

func rounds(t *testing.T) {
	const parts = 5
	var g Group
	defer g.Stop()
	rng := frame.NewRand(1)
	var in, round atomic.Int32
	var ran [parts]int
	run := func(part int) {
		in.Add(1)
		now := round.Load()
		for range part {
			runtime.Gosched()
		}
		ran[part]++
		if round.Load() != now {
			t.Error("a round ended before all had returned")
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
		g.Run(v, run)
		if n := in.Load(); n != 0 {
			t.Fatalf("%d have not returned", n)
		}
		round.Add(1)
		if rng.Uint32n(200) == 0 { // they end while they wait
			for range 300 {
				runtime.Gosched()
			}
			g.Stop()
		}
	}
	if ran != want {
		t.Errorf("the parts ran %v times, asked for %v", ran, want)
	}
}

// A group that was stopped has no goroutine left.
func TestStop(t *testing.T) {
	before := runtime.NumGoroutine()
	var g Group
	g.Run([]int{0, 1, 2}, func(int) {})
	g.Stop()
	// The runtime counts a goroutine until it has left its last function, which is after Stop has
	// seen its end.
	for runtime.NumGoroutine() > before {
		runtime.Gosched()
	}
}
