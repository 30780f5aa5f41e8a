package vswitch

import (
	"slices"
	"testing"
	"time"

	"gswitch/frame"
)

// passer runs a vector of frames through a switch.
type passer interface {
	pass(testing.TB)
	free()
}

// benchBeside measures what something costs: vectors of so many frames, the
// same ones, go through a switch without it and one with it, in turn and a few
// at a time, so that both meet the same machine. It reports the medians of both
// and, as x, how fast the switch with it forwards: 1 is as fast as without.
func benchBeside(b *testing.B, frames int, without, with passer) {
	vectors := 16 * vector / frames
	var took [2][]float64
	chunk := func(p passer) float64 {
		start := time.Now()
		for range vectors {
			p.pass(b)
		}
		return float64(time.Since(start).Nanoseconds()) / float64(vectors*frames)
	}
	for _, p := range []passer{without, with} {
		chunk(p)
		took[0], took[1] = nil, nil
	}
	var ratio []float64
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		// Who begins changes, so that neither always finds the other's caches.
		var t [2]float64
		for k := range 2 {
			p, side := without, (i+k)&1
			if side == 1 {
				p = with
			}
			t[side] = chunk(p)
		}
		took[0], took[1] = append(took[0], t[0]), append(took[1], t[1])
		ratio = append(ratio, t[0]/t[1])
	}
	b.ReportMetric(median(took[0]), "without-ns/frame")
	b.ReportMetric(median(took[1]), "with-ns/frame")
	b.ReportMetric(median(ratio), "x")
	without.free()
	with.free()
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// pass is step from port 0 to port 1, and takes what the switch itself sent
// back by port 0.
func (p *pump) pass(b testing.TB) {
	if k := p.step(0, 1); k != vector {
		b.Fatalf("%d of %d frames came out: %v", k, vector, p.r.drops())
	}
	n := p.r.sw.Nodes[0]
	var back [vector]frame.Ref
	for k := n.Transmit(p.r.now, 0, back[:]); k > 0; k = n.Transmit(p.r.now, 0, back[:]) {
		for _, r := range back[:k] {
			p.r.pools[0].Free(r)
		}
	}
}
