package scheduler

import (
	"math"
	"testing"

	"gswitch/frame"
)

// Counters, peaks and the time-weighted mean agree with a plain model.
func TestStatsModel(t *testing.T) {
	cfg := PortConfig{Rate: 1e9}
	g := newRig(t, cfg)
	rng := frame.NewRand(9)
	var bytes, enq [8]uint64
	var peak [8]uint64
	var area [8]float64
	var sojourns [8]uint64
	last := frame.Time(0)
	now := frame.Time(1 << 50) // late instants must not upset the sums
	last = now
	advance := func(to frame.Time) {
		for q := range area {
			area[q] += float64(bytes[q]) * float64(to-last)
		}
		last = to
	}
	for i := 0; i < 20000; i++ {
		if rng.Uint32n(2) == 0 || g.p.Wake(now) == frame.Never {
			now += frame.Time(rng.Uint32n(3000))
			if w := g.p.Wake(now); w <= now {
				continue
			}
			q := rng.Uint32n(8)
			n := 60 + rng.Uint32n(400)
			advance(now)
			g.put(now, int(q), n)
			bytes[q] += uint64(n)
			enq[q]++
			peak[q] = max(peak[q], bytes[q])
			continue
		}
		now = g.p.Wake(now)
		for _, m := range g.step(now) {
			advance(m.Depart)
			bytes[m.Queue] -= uint64(m.Wire)
			sojourns[m.Queue]++
			if uint64(m.QBytes) != bytes[m.Queue] {
				t.Fatalf("QBytes %d, want %d", m.QBytes, bytes[m.Queue])
			}
		}
	}
	advance(now)
	for q := range bytes {
		s := g.p.Stats(now, q, true)
		if s.Bytes != bytes[q] || s.EnqueuedFrames != enq[q] || s.Top != peak[q] || s.Peak != peak[q] {
			t.Errorf("queue %d: %+v, want bytes %d frames %d peak %d", q, s, bytes[q], enq[q], peak[q])
		}
		if d := s.ByteSeconds/(area[q]/1e9) - 1; math.Abs(d) > 1e-9 {
			t.Errorf("queue %d: %v byte seconds, want %v", q, s.ByteSeconds, area[q]/1e9)
		}
		if g.p.Sojourn(q).Total() != sojourns[q] {
			t.Errorf("queue %d: %d sojourn times of %d frames", q, g.p.Sojourn(q).Total(), sojourns[q])
		}
		if s = g.p.Stats(now, q, false); s.Peak != bytes[q] || s.Top != peak[q] {
			t.Errorf("queue %d: after reset peak %d top %d", q, s.Peak, s.Top)
		}
	}
}
