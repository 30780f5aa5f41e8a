package scheduler

import (
	"math"
	"testing"

	"gswitch/frame"
)

func TestECNStep(t *testing.T) {
	var cfg PortConfig
	cfg.Queues[1].ECN = ECN{KMin: 3000, KMax: 3000}
	g := newRig(t, cfg)
	for i := 0; i < 10; i++ {
		r := g.put(0, 1, 1000)
		if i != 2 { // the third frame is not ECN-capable
			g.pool.Meta(r).Flags = frame.IsECT
		}
	}
	for i, m := range g.step(0) {
		// 9000 bytes stay behind the first frame, 3000 behind the seventh.
		want := i < 6 && i != 2
		if got := m.Flags&frame.MarkCE != 0; got != want {
			t.Errorf("frame %d with %d bytes behind: marked %v", i, m.QBytes, got)
		}
	}
	if s := g.p.Stats(0, 1, false); s.Marked != 5 {
		t.Fatalf("marked %d", s.Marked)
	}
}

func TestECNLinear(t *testing.T) {
	m := newMarker(ECN{KMin: 100_000, KMax: 400_000, PMax: 0.2}, &marker{})
	rng := frame.NewRand(3)
	for left, want := range map[uint64]float64{0: 0, 100_000: 0, 175_000: .05, 250_000: .1, 400_000: .2, 400_001: 1, 1 << 40: 1} {
		n := 0
		const trials = 200_000
		for i := 0; i < trials; i++ {
			if m.marks(0, left, &rng) {
				n++
			}
		}
		if got := float64(n) / trials; math.Abs(got-want) > 4*math.Sqrt(want*(1-want)/trials) {
			t.Errorf("%d bytes behind: marked with %.4f, want %.4f", left, got, want)
		}
	}
}
