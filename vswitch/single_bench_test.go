package vswitch

import (
	"net/netip"
	"testing"

	"gswitch/frame"
	"gswitch/pfc"
	wt "gswitch/wire/wiretest"
)

// BenchmarkSingle is a frame that comes alone, as most do in virtual time:
// routed over an equal-cost group between rated ports, of which only the
// headers are there.
func BenchmarkSingle(b *testing.B) {
	for _, lossless := range []bool{false, true} {
		b.Run(map[bool]string{false: "lossy", true: "lossless"}[lossless], func(b *testing.B) {
			cfg := rated(baseConfig(3), 400e9)
			cfg.Ports[0].Addresses = prefixes("10.0.0.1/24")
			cfg.Ports[1].Addresses = prefixes("10.0.1.1/24")
			cfg.Ports[2].Addresses = prefixes("10.0.2.1/24")
			cfg.Neighbors = []StaticNeighbor{{Addr: netip.MustParseAddr("10.0.1.2"), MAC: hostMAC(2)}, {Addr: netip.MustParseAddr("10.0.2.2"), MAC: hostMAC(3)}}
			cfg.Routes = []Route{{Prefix: netip.MustParsePrefix("10.0.0.0/8"), NextHops: []NextHop{{Via: netip.MustParseAddr("10.0.1.2")}, {Via: netip.MustParseAddr("10.0.2.2")}}}}
			if lossless {
				cfg.PFC = PFCConfig{Mode: pfc.PFC, Classes: 1}
			}
			cfg.Buffer.Size = 8 << 20
			r := newRig(b, cfg)
			n := r.sw.Nodes[0]
			proto := wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.IPv4("10.0.0.9", "10.7.0.1"), wt.UDP(1000, 4791), wt.Zeros(12+32))
			ref := r.pools[0].New(proto)
			var v, out [1]frame.Ref
			var ports [4]uint16
			sent := 0
			for i := 0; b.Loop(); i++ {
				m := r.arena.Adopt(r.arena.ChunkAddr(ref)+32, len(proto))
				copy(r.arena.Bytes(m), proto)
				r.arena.Bytes(m)[35] = byte(i)
				r.arena.Meta(m).Wire = 1090
				r.now += 100
				v[0] = m
				n.Receive(r.now, 0, v[:])
				k := n.Touched(ports[:])
				for _, p := range ports[:k] {
					sent += n.Transmit(r.now, p, out[:])
					n.PortWake(r.now, p)
				}
				n.TimerWake(r.now)
			}
			if sent == 0 || len(r.drops()) > 0 {
				b.Fatalf("%d frames came out, drops %v", sent, r.drops())
			}
			r.pools[0].Free(ref)
		})
	}
}
