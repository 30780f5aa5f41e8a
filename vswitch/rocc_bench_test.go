package vswitch

import (
	"fmt"
	"testing"

	"github.com/gswitch/gswitch/frame"
	"github.com/gswitch/gswitch/rocc"
)

// What a congestion point costs: the same frames through a port with one
// and without, updates and notices included.
func BenchmarkRoCC(b *testing.B) {
	for _, n := range []int{1, 16} {
		for _, on := range []bool{false, true} {
			b.Run(fmt.Sprintf("flows=%d/on=%v", n, on), func(b *testing.B) {
				cfg := baseConfig(2)
				cfg.FDB.Static = []StaticMAC{{VLAN: 1, MAC: hostMAC(2), Port: 1}, {VLAN: 1, MAC: hostMAC(1), Port: 0}}
				if on {
					cfg.Ports[1].RoCC = RoCCConfig{Queues: 0xff, Params: rocc.For(100_000_000_000)}
				}
				p := newPump(b, cfg, flows(n, func(int) string { return "10.0.0.2" }, 2))
				node := p.r.sw.Nodes[0]
				var back [64]frame.Ref
				step := func() {
					if k := p.step(0, 1); k != vector {
						b.Fatalf("%d of %d frames came out: %v", k, vector, p.r.drops())
					}
					for k := node.Transmit(p.r.now, 0, back[:]); k > 0; k = node.Transmit(p.r.now, 0, back[:]) {
						for _, r := range back[:k] {
							p.r.pools[0].Free(r)
						}
					}
				}
				step()
				b.ReportAllocs()
				for b.Loop() {
					step()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/vector, "ns/frame")
				p.free()
			})
		}
	}
}
