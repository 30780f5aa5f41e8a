package vswitch

import (
	"fmt"
	"net/netip"
	"testing"

	"gswitch/frame"
	"gswitch/pfc"
	"gswitch/pipeline"
	wt "gswitch/wire/wiretest"
)

// fullConfig is the switch with everything on: routed ports, a thousand
// ternary access-list entries, the given number of routes, eight queues,
// lossless classes.
func fullConfig(rules, routes int) *Config {
	cfg := baseConfig(2)
	rnd := frame.NewRand(7)
	cfg.Ports[0].Addresses = prefixes("10.0.0.1/24", "fd00:0::1/64")
	cfg.Ports[1].Addresses = prefixes("10.0.1.1/24", "fd00:1::1/64")
	cfg.Neighbors = []StaticNeighbor{
		{Addr: netip.MustParseAddr("10.0.1.2"), MAC: hostMAC(2)},
		{Addr: netip.MustParseAddr("10.0.1.3"), MAC: hostMAC(3)},
	}
	var acl ACL
	acl.Name = "in"
	for i := range rules {
		var m pipeline.Match
		m.MatchIPv4()
		m.MatchSrcIP(netip.PrefixFrom(netip.AddrFrom4([4]byte{172, byte(rnd.Uint32n(16)), byte(rnd.Uint32n(256)), 0}), 16+int(rnd.Uint32n(9))).Masked())
		if i%2 == 0 {
			m.MatchProto(17)
			m.MatchDstPort(uint16(i), uint16(i+100))
		}
		if i%3 == 0 {
			m.MatchDstIP(netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(rnd.Uint32n(256)), 0, 0}), 8+int(rnd.Uint32n(17))).Masked())
		}
		acl.Rules = append(acl.Rules, ACLRule{Priority: i, Match: m, Action: pipeline.Action{Ops: pipeline.OpDrop | pipeline.OpCount}})
	}
	acl.Default = pipeline.Action{Ops: pipeline.OpPermit}
	cfg.ACLs = []ACL{acl}
	cfg.Ports[0].ACL, cfg.Ports[1].ACL = "in", "in"
	hops := []NextHop{{Via: netip.MustParseAddr("10.0.1.2")}, {Via: netip.MustParseAddr("10.0.1.3")}}
	for i := range routes {
		a := netip.AddrFrom4([4]byte{byte(20 + i>>16), byte(i >> 8), byte(i), 0})
		cfg.Routes = append(cfg.Routes, Route{Prefix: netip.PrefixFrom(a, 24), NextHops: hops})
	}
	cfg.PFC = PFCConfig{Mode: pfc.PFC, Classes: 1 << 3}
	cfg.Buffer.Size = 8 << 20
	return cfg
}

// pump runs vectors of 64 frames through a switch and puts the frames back
// into shape behind it.
type pump struct {
	r     *rig
	proto [][]byte
	v     [vector]frame.Ref
	out   [vector]frame.Ref
	next  int
	wire  uint32     // of a frame, 0: what is in memory
	gap   frame.Time // between two vectors
}

func newPump(tb testing.TB, cfg *Config, proto [][]byte) *pump {
	p := &pump{r: newRig(tb, cfg), proto: proto, gap: 10 * frame.Microsecond}
	for i := range p.v {
		p.v[i] = p.r.pools[0].New(proto[i%len(proto)])
	}
	return p
}

func (p *pump) step(in, out uint16) int {
	n := p.r.sw.Nodes[0]
	for i, ref := range p.v {
		m := p.r.arena.Adopt(p.r.arena.ChunkAddr(ref)+frame.DefaultHeadroom, len(p.proto[i%len(p.proto)]))
		copy(p.r.arena.Bytes(m), p.proto[(p.next+i)%len(p.proto)])
		if p.wire > 0 {
			p.r.arena.Meta(m).Wire = p.wire
		}
	}
	p.next += len(p.v)
	p.r.now += p.gap
	v := p.v
	n.Receive(p.r.now, in, v[:])
	n.Advance(p.r.now)
	k := n.Transmit(p.r.now, out, p.out[:])
	copy(p.v[:k], p.out[:k])
	return k
}

func (p *pump) free() {
	for _, ref := range p.v {
		p.r.pools[0].Free(ref)
	}
}

func flows(n int, dst func(i int) string, mac int) (f [][]byte) {
	for i := range n {
		m := selfMAC
		if mac > 0 {
			m = hostMAC(mac)
		}
		f = append(f, wt.Frame(wt.Eth(m, hostMAC(1)), wt.IPv4("10.0.0.9", dst(i), wt.TOS(uint8(i%8)<<5)), wt.UDP(uint16(1000+i), 2000)))
	}
	return f
}

func BenchmarkBridge(b *testing.B) {
	cfg := baseConfig(2)
	cfg.FDB.Static = []StaticMAC{{VLAN: 1, MAC: hostMAC(2), Port: 1}}
	benchPump(b, newPump(b, cfg, flows(1, func(int) string { return "10.0.0.2" }, 2)))
}

func BenchmarkFull(b *testing.B) {
	for _, n := range []int{1, 1000, 100_000} {
		b.Run(fmt.Sprintf("flows=%d", n), func(b *testing.B) {
			dst := func(i int) string { return fmt.Sprintf("%d.%d.%d.7", 20+i%2, i>>8&127, i&255) }
			benchPump(b, newPump(b, fullConfig(1000, 100_000), flows(n, dst, 0)))
		})
	}
}

func benchPump(b *testing.B, p *pump) {
	p.step(0, 1)
	b.ReportAllocs()
	for b.Loop() {
		if k := p.step(0, 1); k != vector {
			b.Fatalf("%d of %d frames came out: %v", k, vector, p.r.drops())
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/vector, "ns/frame")
	p.free()
}

func TestHotPathAllocatesNothing(t *testing.T) {
	cfg := baseConfig(2)
	cfg.FDB.Static = []StaticMAC{{VLAN: 1, MAC: hostMAC(2), Port: 1}}
	for name, p := range map[string]*pump{
		"bridge": newPump(t, cfg, flows(1, func(int) string { return "10.0.0.2" }, 2)),
		"full":   newPump(t, fullConfig(100, 100), flows(200, func(i int) string { return fmt.Sprintf("20.0.%d.7", i%100) }, 0)),
	} {
		p.step(0, 1)
		if got := testing.AllocsPerRun(100, func() {
			if k := p.step(0, 1); k != vector {
				t.Fatalf("%s: %d of %d frames came out: %v", name, k, vector, p.r.drops())
			}
		}); got != 0 {
			t.Errorf("%s: %v allocations a vector, want none", name, got)
		}
		p.free()
	}
}
