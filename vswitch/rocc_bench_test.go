package vswitch

import (
	"fmt"
	"testing"

	"github.com/gswitch/gswitch/rocc"
)

// What a congestion point costs: the same frames through a port with one
// and without, updates and notices included.
func BenchmarkRoCC(b *testing.B) {
	for _, n := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("flows=%d", n), func(b *testing.B) {
			with := func(c RoCCConfig) *pump {
				cfg := baseConfig(2)
				cfg.FDB.Static = []StaticMAC{{VLAN: 1, MAC: hostMAC(2), Port: 1}, {VLAN: 1, MAC: hostMAC(1), Port: 0}}
				cfg.Ports[1].RoCC = c
				return newPump(b, cfg, flows(n, func(int) string { return "10.0.0.2" }, 2))
			}
			benchBeside(b, with(RoCCConfig{}), with(RoCCConfig{Queues: 0xff, Params: rocc.For(100_000_000_000)}))
		})
	}
}
