package sim

import (
	"fmt"
	"math"
	"testing"
	"time"

	"gswitch/frame"
)

// benchNet measures frame-hops: how often a frame crosses a link, with the
// steps of the nodes at its ends. A third to a half of them end at a host,
// which here costs next to nothing.
func benchNet(b *testing.B, n *network, every frame.Time) {
	n.run(b, 200*frame.Microsecond)
	b.ReportAllocs()
	from := n.e.Stats()
	least := math.Inf(1) // of the steps: what disturbs some of them does not count
	for b.Loop() {
		before, began := n.e.Stats().FrameHops, time.Now()
		n.run(b, n.e.Now()+every)
		least = min(least, float64(time.Since(began).Nanoseconds())/float64(n.e.Stats().FrameHops-before))
	}
	s := n.e.Stats()
	hops := float64(s.FrameHops - from.FrameHops)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/hops, "ns/hop")
	b.ReportMetric(least, "ns/hop-quickest")
	b.ReportMetric(float64(s.Events-from.Events)/hops, "events/hop")
	var got uint64
	for _, h := range n.hosts {
		got += h.got
	}
	if got == 0 {
		b.Fatal("nothing arrived")
	}
}

func pair(n *network, hosts int) {
	for i, h := range n.hosts {
		j := (i + len(n.hosts)/2) % len(n.hosts)
		h.to = func(k uint64) (uint32, uint16) { return hostAddr(j/hosts, j%hosts), uint16(k >> 6) }
		h.credit = 1 << 60
	}
}

func BenchmarkStar(b *testing.B) {
	n := star(b, netConfig{rate: 100e9, delay: frame.Microsecond, seed: 1}, 16)
	pair(n, 16)
	benchNet(b, n, 10*frame.Microsecond)
}

// BenchmarkLeafSpine is a small network and one of the size of the papers',
// at full load, each host sending to another leaf.
func BenchmarkLeafSpine(b *testing.B) {
	for _, c := range []struct {
		name                  string
		config                netConfig
		leaves, spines, hosts int
	}{
		{"hosts=16/lossy", netConfig{rate: 25e9, uplink: 100e9}, 4, 2, 4},
		{"hosts=16/lossless", netConfig{rate: 25e9, uplink: 100e9, lossless: true}, 4, 2, 4},
		{"hosts=320/lossless", netConfig{rate: 100e9, uplink: 400e9, lossless: true, buffer: 4 << 20, chunks: 1 << 18}, 20, 4, 16},
	} {
		b.Run(c.name, func(b *testing.B) {
			c.config.delay, c.config.seed = frame.Microsecond, 1
			n := leafSpine(b, c.config, c.leaves, c.spines, c.hosts)
			pair(n, c.hosts)
			benchNet(b, n, 10*frame.Microsecond)
		})
	}
}

// BenchmarkCable is hosts joined in pairs: what the engine itself costs, with
// what a test's host does to make a frame.
func BenchmarkCable(b *testing.B) {
	for _, pairs := range []int{8, 320} {
		b.Run(fmt.Sprintf("hosts=%d", 2*pairs), func(b *testing.B) {
			n := &network{e: New(Config{})}
			for i := range 2 * pairs {
				h := newHost(n.e.Pool(), uint32(i), 100e9, swMAC(0))
				h.credit = 1 << 60
				n.hosts = append(n.hosts, h)
				n.e.AddNode(h, nil)
				if i%2 == 1 {
					n.e.Connect(i-1, 0, i, 0, Link{Delay: frame.Microsecond})
				}
			}
			benchNet(b, n, 10*frame.Microsecond)
		})
	}
}
