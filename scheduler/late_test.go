package scheduler

import (
	"testing"

	"gswitch/frame"
)

// However late the caller is within a burst, no frame starts before it was
// there, before a pause of its queue has ended or before the frame ahead of it
// has left: what arrives at the far end after Meta.Span is never there sooner
// than over a link of this rate.
func TestLateCallerShortensNothing(t *testing.T) {
	const rate, burst = 1e9, 40 * frame.Microsecond
	rng := frame.NewRand(11)
	for range 200 {
		g := newRig(t, PortConfig{Rate: rate, Burst: burst})
		var put [2][]frame.Time // when the waiting frames of each queue came
		var open [2]frame.Time  // queues may send from then on
		var now, free frame.Time
		frames := 0
		for range 300 {
			now += frame.Time(rng.Uint64() % uint64(2*burst))
			for range rng.Uint64() % 4 {
				q := int(rng.Uint64() % 2)
				g.put(now, q, 64+uint32(rng.Uint64()%1400))
				put[q] = append(put[q], now)
			}
			switch q := int(rng.Uint64() % 2); rng.Uint64() % 8 {
			case 0:
				open[q] = now + frame.Time(rng.Uint64()%uint64(burst))
				g.p.Pause(q, open[q])
			case 1:
				g.p.Unpause(now, q)
				open[q] = min(open[q], now)
			}
			// The caller is late by up to two bursts, in which nothing arrives.
			now += frame.Time(rng.Uint64() % uint64(2*burst))
			for _, m := range g.step(now) {
				came := put[m.Queue][0]
				put[m.Queue] = put[m.Queue][1:]
				frames++
				switch span := frame.Time(m.Wire) * 8; {
				case m.Depart < came:
					t.Fatalf("a frame of %v starts at %v", came, m.Depart)
				case m.Depart < open[m.Queue]:
					t.Fatalf("a frame starts at %v, in a pause until %v", m.Depart, open[m.Queue])
				case m.Depart < free:
					t.Fatalf("a frame starts at %v, while the link is busy until %v", m.Depart, free)
				case m.Depart > now:
					t.Fatalf("at %v a frame starts at %v", now, m.Depart)
				case frame.Time(m.Span) != span:
					t.Fatalf("%d bytes take %d ns", m.Wire, m.Span)
				default:
					free = m.Depart + span
				}
			}
		}
		if frames < 300 {
			t.Fatalf("only %d frames were sent", frames)
		}
	}
}
