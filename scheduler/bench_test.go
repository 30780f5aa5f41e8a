package scheduler

import (
	"testing"

	"gswitch/frame"
)

// loaded returns a port in which every queue holds some frames, and a vector
// spread over the queues.
func loaded(tb testing.TB, cfg PortConfig) (*rig, []frame.Ref) {
	g := newRig(tb, cfg)
	for i := 0; i < 256; i++ {
		r := g.put(0, i&7, 64)
		g.pool.Meta(r).Flags = frame.IsECT
	}
	v := make([]frame.Ref, 64)
	for i := range v {
		v[i] = g.frame(i*5&7, 64)
		g.pool.Meta(v[i]).Flags = frame.IsECT
	}
	return g, v
}

func benchConfigs() map[string]PortConfig {
	m := map[string]PortConfig{"unlimited": {}, "strict-100G": {Rate: 100e9, Overhead: 24}}
	c := PortConfig{Rate: 100e9, Overhead: 24}
	for q := 0; q < 7; q++ {
		c.Queues[q].Weight = uint32(q + 1)
	}
	m["dwrr-100G"] = c
	for q := range c.Queues {
		c.Queues[q].ECN = ECN{KMin: 500, KMax: 50000, PMax: 0.1}
	}
	m["dwrr-ecn-100G"] = c
	for q := range c.Queues {
		c.Queues[q].MaxRate, c.Queues[q].Burst = 50e9, 10000
	}
	m["dwrr-ecn-maxrate-100G"] = c
	return m
}

// cycle enqueues the vector and takes 64 frames out, 64 frame times later.
func (g *rig) cycle(now frame.Time, v []frame.Ref) int {
	for _, r := range v {
		g.p.Enqueue(now, r)
	}
	return g.p.Dequeue(now, v)
}

func TestNoAllocation(t *testing.T) {
	for name, cfg := range benchConfigs() {
		cfg.Burst = frame.Millisecond
		g, v := loaded(t, cfg)
		now := frame.Time(0)
		if n := testing.AllocsPerRun(100, func() {
			now += 1000
			v = v[:g.cycle(now, v)]
			g.p.Wake(now)
			g.p.Pause(3, now+1)
			g.p.Stats(now, 2, true)
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkPort(b *testing.B) {
	for _, name := range []string{"unlimited", "strict-100G", "dwrr-100G", "dwrr-ecn-100G", "dwrr-ecn-maxrate-100G"} {
		b.Run(name, func(b *testing.B) {
			cfg := benchConfigs()[name]
			cfg.Burst = frame.Millisecond
			g, v := loaded(b, cfg)
			now := frame.Time(0)
			b.ResetTimer()
			for i := 0; i < b.N; i++ {
				now += 64 * 88 * 8 / 100 * 2
				if n := g.cycle(now, v); n != len(v) {
					b.Fatal("short vector", n)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/frame")
		})
	}
}
