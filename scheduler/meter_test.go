package scheduler

import (
	"testing"

	"gswitch/frame"
)

// lastFirst is an Order that inverts much.
type lastFirst struct{}

type stack struct{ List }

func (lastFirst) New(Env) Discipline {
	s := &stack{}
	s.Init()
	return s
}
func (lastFirst) String() string                                { return "lifo" }
func (s *stack) Head() frame.Ref                                { return s.Tail() }
func (s *stack) Dequeue(a *frame.Arena, _ frame.Time) frame.Ref { return s.List.Evict(a) }
func (s *stack) Evict(a *frame.Arena) frame.Ref                 { return s.List.Dequeue(a, 0) }

// What is counted is what counting by hand gives, whatever the order, also from a
// moment on at which frames wait, with frames that are pushed out or flushed.
func TestInversions(t *testing.T) {
	for name, order := range map[string]Order{"fifo": nil, "ranked": leastRank{}, "lifo": lastFirst{}} {
		total := uint64(0)
		for seed := range uint64(30) {
			rng := frame.NewRand(seed)
			cfg := PortConfig{Rate: 8e9, Burst: frame.Time(seed%2) * 3000}
			if cfg.Burst == 0 { // else what is pushed out makes all compete that came
				cfg.PushOut.Queue = 40_000
			}
			cfg.Queues[0].Order = order
			g := newRig(t, cfg)
			waiting := map[frame.Ref]int64{}
			var want uint64
			now := frame.Time(0)
			for step := range 3000 {
				if step == 100 {
					cfg.Queues[0].Inversions = true
					g.p.Configure(now, cfg)
				}
				if rng.Uint32n(2) == 0 && (step/500%2 == 0 || rng.Uint32n(2) == 0) {
					r := g.frame(0, 1000)
					g.pool.Meta(r).Rank = int64(rng.Uint32n(50)) - 20
					g.p.Enqueue(now, r)
					waiting[r] = g.pool.Meta(r).Rank
					for r := g.p.PushOut(now, 0); r != frame.Nil; r = g.p.PushOut(now, 0) {
						delete(waiting, r)
						g.pool.Free(r)
					}
					continue
				}
				if rng.Uint32n(300) == 0 && cfg.Burst == 0 {
					for _, r := range g.out[:g.p.FlushQueue(now, 0, g.out[:3])] {
						delete(waiting, r)
						g.pool.Free(r)
					}
				}
				now += frame.Time(rng.Uint32n(2000))
				if cfg.Burst != 0 && rng.Uint32n(4) != 0 {
					continue // the caller is late
				}
				for k := g.p.Dequeue(now, g.out[:1]); k > 0; k = g.p.Dequeue(now, g.out[:1]) {
					m := g.pool.Meta(g.out[0])
					delete(waiting, g.out[0])
					for r, rank := range waiting {
						// One that came after the link's instant did not compete.
						if rank < m.Rank && g.pool.Meta(r).Depart <= m.Depart && step >= 100 {
							want++
							break
						}
					}
					g.pool.Free(g.out[0])
				}
			}
			v, on := g.p.Inversions(0)
			if !on || v.Frames != want || v.Gap.Total() != want {
				t.Errorf("%s, seed %d: %d inversions and %d gaps, want %d", name, seed, v.Frames, v.Gap.Total(), want)
			}
			total += want
			if k := g.p.q[0].meter; len(k.in) > 2*len(waiting)+200 {
				t.Errorf("%s, seed %d: %d ranks are kept of %d frames", name, seed, len(k.in), len(waiting))
			}
		}
		if (total == 0) != (name == "ranked") {
			t.Errorf("%s: %d inversions in all", name, total)
		}
	}
	if _, on := newRig(t, PortConfig{}).p.Inversions(0); on {
		t.Error("a queue that nobody measures says that it is")
	}
}
