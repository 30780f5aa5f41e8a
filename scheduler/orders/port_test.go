package orders

import (
	"fmt"
	"testing"

	"gswitch/frame"
	"gswitch/scheduler"
)

// admissions of this package, for what holds of each.
func everyAdmission() map[string]scheduler.Admission {
	return map[string]scheduler.Admission{
		"none": nil, "codel": CoDel{Target: 20_000, Interval: 400_000}, "codel-ecn": CoDel{Target: 20_000, Interval: 400_000, ECN: true},
		"red": RED{Min: 2000, Max: 10_000, PMax: 0.1, Weight: 4}, "aifo": AIFO{Size: 60, Window: 20, Sample: 2, K: 100},
	}
}

// rig is a port with queue 1 under test.
type rig struct {
	p    *scheduler.Port
	pool *frame.Pool
	out  [64]frame.Ref
}

func newRig(cfg scheduler.PortConfig, frames int) *rig {
	pool := frame.NewPool(frame.MustArena(frames, 256, 32))
	return &rig{p: scheduler.NewPort(pool.Arena, cfg, 1), pool: pool}
}

// Through a port, with any order and admission, with and without push-out, with a
// caller that is late or not, while both change: every frame that came in comes
// out, is refused, shed or pushed out, exactly once; bytes and frames are what the
// port says; lossless frames are neither shed nor pushed out of exempt queues; and
// nothing waits that Wake does not know.
func TestConservation(t *testing.T) {
	var policies []scheduler.QueueConfig
	for _, name := range sorted(everyOrder()) {
		for _, by := range []scheduler.RankBy{scheduler.RankKept, scheduler.RankSize} {
			policies = append(policies, scheduler.QueueConfig{Order: everyOrder()[name], Rank: by})
		}
	}
	for _, name := range sorted(everyAdmission()) {
		policies = append(policies, scheduler.QueueConfig{Admission: everyAdmission()[name]}, scheduler.QueueConfig{Admission: everyAdmission()[name], Order: Ranked{}})
	}
	for seed := range uint64(150) {
		rng := frame.NewRand(seed)
		config := func() scheduler.PortConfig {
			c := scheduler.PortConfig{Rate: 1e9, Burst: frame.Time(rng.Uint32n(2)) * 50_000}
			for q := range 3 {
				c.Queues[q] = policies[rng.Uint32n(uint32(len(policies)))]
			}
			if rng.Uint32n(2) == 0 {
				c.PushOut = scheduler.PushOut{Port: 20_000, Queue: 15_000, Exempt: 1 << 7}
			}
			return c
		}
		g := newRig(config(), 4096)
		var n struct{ in, out, refused, shed, pushed int }
		in := map[frame.Ref]bool{}
		leave := func(k int, count *int, why string) {
			for _, r := range g.out[:k] {
				m := g.pool.Meta(r)
				if !in[r] {
					t.Fatalf("seed %d: frame %d is %s and did not wait", seed, r, why)
				}
				if why != "sent" && (m.Flags&frame.Lossless != 0 && why == "shed" || m.Queue == 7) {
					t.Fatalf("seed %d: a lossless frame is %s", seed, why)
				}
				delete(in, r)
				*count++
				g.pool.Free(r)
			}
		}
		now := frame.Time(0)
		dequeue := func() {
			for k := g.p.Dequeue(now, g.out[:]); k > 0; k = g.p.Dequeue(now, g.out[:]) {
				leave(k, &n.out, "sent")
			}
			leave(g.p.TakeShed(g.out[:]), &n.shed, "shed")
		}
		for range 2000 {
			switch k := rng.Uint32n(20); {
			case k == 0 && rng.Uint32n(20) == 0:
				g.p.Configure(now, config())
			case k < 12:
				r := g.pool.Alloc()
				m := g.pool.Reset(r)
				m.Queue, m.Wire, m.Rank, m.Hash, m.InPort = uint8(rng.Uint32n(4)), 60+rng.Uint32n(1400), int64(rng.Uint32n(200)), rng.Uint32n(9)*0x9e3779b1, uint16(rng.Uint32n(5))
				if m.Queue == 3 {
					m.Queue, m.Flags = 7, frame.Lossless
				} else if m.Flags = frame.IsECT * rng.Uint32n(2); rng.Uint32n(5) == 0 {
					m.Flags |= frame.Lossless
				}
				if g.p.Regulated()>>m.Queue&1 != 0 && !g.p.Admits(now, m) {
					n.refused++
					g.pool.Free(r)
					break
				}
				n.in++
				in[r] = true
				queue := m.Queue
				g.p.Enqueue(now, r)
				for g.out[0] = g.p.PushOut(now, queue); g.out[0] != frame.Nil; g.out[0] = g.p.PushOut(now, queue) {
					leave(1, &n.pushed, "pushed out")
				}
			default:
				now += frame.Time(rng.Uint32n(9000))
				dequeue()
			}
			frames, bytes := g.p.Backlog()
			want := uint64(0)
			for r := range in {
				want += uint64(g.pool.Meta(r).Wire)
			}
			if frames != len(in) || bytes != want {
				t.Fatalf("seed %d: the port has %d frames and %d bytes, %d and %d wait", seed, frames, bytes, len(in), want)
			}
		}
		for range 100_000 {
			at := g.p.Wake(now)
			if at == frame.Never {
				break
			}
			now = at
			dequeue()
		}
		if n.in != n.out+n.shed+n.pushed || len(in) != 0 || g.pool.Available() != 4096 {
			t.Fatalf("seed %d: %+v, %d wait", seed, n, len(in))
		}
	}
}

func sorted[V any](m map[string]V) (names []string) {
	for k := range m {
		names = append(names, k)
	}
	for i := range names {
		for j := i; j > 0 && names[j] < names[j-1]; j-- {
			names[j], names[j-1] = names[j-1], names[j]
		}
	}
	return names
}

// cycle queues 64 frames of random ranks and takes 64 out.
func (g *rig) cycle(now frame.Time, v []frame.Ref, rng *frame.Rand) []frame.Ref {
	for _, r := range v {
		m := g.pool.Meta(r)
		m.Rank = int64(now) + int64(rng.Uint32n(4096))
		if g.p.Regulated() != 0 {
			g.p.Admits(now, m)
		}
		g.p.Enqueue(now, r)
	}
	return v[:g.p.Dequeue(now, v)]
}

// loaded returns a port whose queue holds so many frames, and 64 more.
func loaded(tb testing.TB, c scheduler.QueueConfig, frames int) (*rig, []frame.Ref) {
	cfg := scheduler.PortConfig{Rate: 100e9, Burst: frame.Millisecond}
	cfg.Queues[0] = c
	g := newRig(cfg, frames+64)
	rng := frame.NewRand(3)
	v := make([]frame.Ref, frames+64)
	for i := range v {
		v[i] = g.pool.Alloc()
	}
	for i := range v { // as after some time, not one behind the other
		k := rng.Uint32n(uint32(len(v)))
		v[i], v[k] = v[k], v[i]
	}
	for i, r := range v {
		m := g.pool.Reset(r)
		m.Wire, m.Hash, m.Rank = 1500, rng.Uint32n(64)*0x9e3779b1, int64(rng.Uint32n(4096))
		if i < frames {
			if g.p.Regulated() != 0 {
				g.p.Admits(0, m)
			}
			g.p.Enqueue(0, r)
		}
	}
	return g, v[frames:]
}

func TestNoAllocation(t *testing.T) {
	policies := map[string]scheduler.QueueConfig{}
	for name, o := range everyOrder() {
		policies[name] = scheduler.QueueConfig{Order: o}
	}
	for name, c := range everyAdmission() {
		policies[name] = scheduler.QueueConfig{Order: Ranked{}, Admission: c}
	}
	policies["calendar"] = scheduler.QueueConfig{Order: Calendar{Rate: 1e15}} // never late
	delete(policies, "fq-codel")                                              // these drop, and the cycle
	delete(policies, "codel")                                                 // does not make up for it
	for name, c := range policies {
		g, v := loaded(t, c, 200)
		rng := frame.NewRand(1)
		now := frame.Time(0)
		for range 50 { // until it has the memory that it needs
			now += 64 * 120
			v = g.cycle(now, v, &rng)
		}
		if n := testing.AllocsPerRun(200, func() {
			now += 64 * 120
			v = g.cycle(now, v, &rng)
			g.p.Wake(now)
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
		if len(v) != 64 {
			t.Errorf("%s: %d frames leave at a time, want 64", name, len(v))
		}
	}
}

// What a frame costs from Enqueue to Dequeue, with so many waiting.
func BenchmarkOrder(b *testing.B) {
	orders := everyOrder()
	orders["none"] = nil
	orders["sp-pifo"], orders["packs"], orders["calendar"] = SPPIFO{Queues: 8}, PACKS{Queues: 8, Depth: 1 << 20, Window: 20, Sample: 1, K: 100}, Calendar{Rate: 1e15}
	delete(orders, "fq-codel")
	for _, frames := range []int{64, 1000, 100_000} {
		orders["buckets"] = Buckets{Width: int64(max(64, frames*128/2048))} // those that wait fit the ring
		for _, name := range sorted(orders) {
			b.Run(fmt.Sprintf("%s/%d", name, frames), func(b *testing.B) {
				g, v := loaded(b, scheduler.QueueConfig{Order: orders[name]}, frames)
				rng := frame.NewRand(1)
				now := frame.Time(0)
				b.ResetTimer()
				for range b.N {
					now += 64 * 120
					if v = g.cycle(now, v, &rng); len(v) != 64 {
						b.Fatal("short vector", len(v))
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/frame")
			})
		}
	}
}
