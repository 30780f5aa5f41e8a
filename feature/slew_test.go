package feature

import (
	"math/rand/v2"
	"testing"
)

// Whatever a clock is set to, stamps never go back, and are the clock's again once it has
// caught up.
func TestStampsNeverGoBack(t *testing.T) {
	var s Slew
	s.Step(1000)
	if got := s.Stamp(50); got != 1050 {
		t.Fatalf("%d", got)
	}
	s.Set(100, 980)
	for _, c := range [][2]int64{{100, 1100}, {102, 1101}, {120, 1110}, {140, 1120}, {141, 1121}, {200, 1180}} {
		if got := s.Stamp(c[0]); got != c[1] {
			t.Errorf("%d at %d, want %d", got, c[0], c[1])
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	now, last := int64(200), int64(1180)
	for range 10_000 {
		now += r.Int64N(40)
		if r.IntN(4) == 0 {
			s.Set(now, 1000+r.Int64N(200))
		}
		ahead := now + r.Int64N(20) // of a frame that leaves later
		got := s.Stamp(ahead)
		if got < last {
			t.Fatalf("%d at %d behind %d", got, ahead, last)
		}
		now, last = ahead, got
		now -= r.Int64N(20)
		if ahead > now {
			// What is stamped next leaves no earlier; the clock may be set before.
			s.Set(now, 1000+r.Int64N(200))
			now = ahead
		}
	}
	s.Step(0)
	if got := s.Stamp(now); got != now {
		t.Errorf("%d at %d without a clock", got, now)
	}
}
