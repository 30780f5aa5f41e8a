package crossbar

import (
	"slices"
	"testing"

	"gswitch/frame"
)

// What waits at an ingress port is visited in order, and the egress port that
// its first frame is stuck at is named, as long as it is.
func TestWaiting(t *testing.T) {
	cfg := detail()
	cfg.Egress, cfg.TotalCap = 1500, true
	g := newRig(t, cfg)
	seen := func(most int) (outs []uint16) {
		g.x.Each(3, 5, func(r frame.Ref) bool {
			outs = append(outs, g.pool.Meta(r).OutPort)
			return len(outs) != most
		})
		return outs
	}
	stuck := func() int {
		if out, ok := g.x.Stuck(3, 5); ok {
			return int(out)
		}
		return -1
	}
	if stuck() != -1 || len(seen(0)) != 0 {
		t.Error("nothing waits")
	}
	g.arrive(3, 1, 5, 1500)
	if stuck() != -1 {
		t.Error("it crosses")
	}
	g.run(4 * frame.Microsecond)
	for _, out := range []uint16{1, 2, 4} {
		g.arrive(3, out, 5, 1000)
	}
	if got := seen(0); stuck() != 1 || !slices.Equal(got, []uint16{1, 2, 4}) {
		t.Errorf("stuck at %d, %v wait", stuck(), got)
	}
	if got := seen(2); !slices.Equal(got, []uint16{1, 2}) {
		t.Errorf("%v were visited, not two", got)
	}
	if _, ok := g.x.Stuck(3, 4); ok {
		t.Error("another class is stuck")
	}
	g.leave()
	if stuck() != -1 {
		t.Error("there is room")
	}
	g.run(20 * frame.Microsecond)
	for len(g.out) > 0 {
		g.leave()
	}
}
