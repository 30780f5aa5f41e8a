package scheduler

import (
	"testing"

	"gswitch/frame"
)

// ranked is a small ranked queue, least Meta.Rank first: what a slack-based
// discipline is, at its plainest.
type ranked struct {
	a *frame.Arena
	v []frame.Ref
}

func (q *ranked) Enqueue(a *frame.Arena, _ frame.Time, r frame.Ref) {
	q.a = a
	i := len(q.v)
	for i > 0 && a.Meta(q.v[i-1]).Rank > a.Meta(r).Rank {
		i--
	}
	q.v = append(q.v, 0)
	copy(q.v[i+1:], q.v[i:])
	q.v[i] = r
}

func (q *ranked) Head() frame.Ref {
	if len(q.v) == 0 {
		return frame.Nil
	}
	return q.v[0]
}

func (q *ranked) remove(i int) frame.Ref {
	r := q.v[i]
	q.v = append(q.v[:i], q.v[i+1:]...)
	return r
}

func (q *ranked) Dequeue(*frame.Arena, frame.Time) frame.Ref { return q.remove(0) }
func (q *ranked) Len() int                                   { return len(q.v) }
func (q *ranked) Evict(*frame.Arena) frame.Ref               { return q.remove(len(q.v) - 1) }

func (q *ranked) Each(_ *frame.Arena, visit func(frame.Ref) bool) {
	for _, r := range q.v {
		if !visit(r) {
			return
		}
	}
}

func (q *ranked) ExtractFirst(a *frame.Arena, hash uint32, same func(frame.Ref) bool) frame.Ref {
	for i, r := range q.v {
		if a.Meta(r).Hash == hash && same(r) {
			return q.remove(i)
		}
	}
	return frame.Nil
}

func TestDiscipline(t *testing.T) {
	cfg := PortConfig{Rate: 1e9}
	cfg.Queues[2].Discipline = &ranked{}
	g := newRig(t, cfg)
	put := func(rank int64, hash uint32) frame.Ref {
		r := g.frame(2, 1000)
		g.pool.Meta(r).Rank, g.pool.Meta(r).Hash = rank, hash
		g.p.Enqueue(0, r)
		return r
	}
	for _, rank := range []int64{5, 3, 9, 1, 7} {
		put(rank, uint32(rank)%4)
	}
	if m := g.pool.Meta(g.p.Evict(0, 2)); m.Rank != 9 {
		t.Fatalf("evicted %d", m.Rank)
	}
	any := func(frame.Ref) bool { return true }
	if m := g.pool.Meta(g.p.ExtractFirst(0, 2, 1, any)); m.Rank != 1 {
		t.Fatalf("extracted %d", m.Rank)
	}
	if g.p.ExtractFirst(0, 2, 99, any) != frame.Nil {
		t.Fatal("extracted what is not there")
	}
	if n, bytes := g.p.QueueLen(2); n != 3 || bytes != 3000 {
		t.Fatal(n, bytes)
	}
	// Change to first-in first-out and back with frames queued.
	for _, d := range []Discipline{nil, &ranked{}} {
		c := g.p.Config()
		c.Queues[2].Discipline = d
		g.p.Configure(0, c)
	}
	var got []int64
	for _, m := range g.run(0, frame.Second) {
		got = append(got, m.Rank)
	}
	if len(got) != 3 || got[0] != 3 || got[1] != 5 || got[2] != 7 {
		t.Fatal(got)
	}
	s := g.p.Stats(0, 2, false)
	if s.EnqueuedFrames != 5 || s.DequeuedFrames != 3 || s.RemovedFrames != 2 || s.Bytes != 0 {
		t.Fatalf("%+v", s)
	}
	if g.p.Evict(0, 2) != frame.Nil || g.p.Evict(0, 1) != frame.Nil || g.p.ExtractFirst(0, 1, 0, any) != frame.Nil {
		t.Fatal("something from nothing")
	}
}

// Random use, with reconfiguration: every frame comes out exactly once, in
// order within a first-in first-out queue, and the link is never overdrawn.
func TestConservation(t *testing.T) {
	for seed := uint64(0); seed < 100; seed++ {
		rng := frame.NewRand(seed)
		random := func() PortConfig {
			c := PortConfig{Rate: uint64(rng.Uint32n(3)) * 1e9, Overhead: rng.Uint32n(2) * EthernetOverhead, Burst: frame.Time(rng.Uint32n(2)) * 50000}
			for q := range c.Queues {
				c.Queues[q].Weight = rng.Uint32n(4)
				if rng.Uint32n(4) == 0 {
					c.Queues[q].MaxRate, c.Queues[q].Burst = 10e6+uint64(rng.Uint32n(1e9)), rng.Uint32n(5000)
				}
				if rng.Uint32n(4) == 0 {
					c.Queues[q].Discipline = &ranked{}
				}
			}
			return c
		}
		g := newRig(t, random())
		in, out := 0, 0
		var last [8]int64
		now, depart := frame.Time(0), frame.Time(0)
		reconfigured := false
		for i := 0; i < 3000; i++ {
			switch rng.Uint32n(8) {
			case 0, 1, 2, 3:
				r := g.frame(int(rng.Uint32n(8)), 60+rng.Uint32n(1400))
				g.pool.Meta(r).Rank = int64(i)
				g.p.Enqueue(now, r)
				in++
			case 4:
				if rng.Uint32n(50) == 0 {
					g.p.Configure(now, random())
					reconfigured = true
				}
			case 5:
				g.p.Pause(int(rng.Uint32n(8)), now+frame.Time(rng.Uint32n(100000)))
			default:
				now += frame.Time(rng.Uint32n(20000))
				for _, m := range g.step(now) {
					out++
					if m.Depart > now || m.Depart < depart && !reconfigured {
						t.Fatalf("seed %d: departs at %d after %d, now %d", seed, m.Depart, depart, now)
					}
					depart, reconfigured = m.Depart, false
					if m.Rank < last[m.Queue] {
						t.Fatalf("seed %d: overtaken in queue %d", seed, m.Queue)
					}
					last[m.Queue] = m.Rank
				}
			}
		}
		for g.p.Wake(now) != frame.Never {
			now = g.p.Wake(now)
			if n := len(g.step(now)); n == 0 {
				t.Fatalf("seed %d: Wake at %d without work", seed, now)
			} else {
				out += n
			}
		}
		if in != out || g.pool.Available() != 8192 {
			t.Fatalf("seed %d: %d in, %d out", seed, in, out)
		}
	}
}
