package dataplane

import (
	"fmt"
	"net/netip"
	"testing"

	"gswitch/dataplane/xsk"
	"gswitch/frame"
	"gswitch/pfc"
	"gswitch/pipeline"
	"gswitch/scheduler"
	"gswitch/vswitch"
	wt "gswitch/wire/wiretest"
)

// BenchmarkCeiling is what a worker can do on a core where no kernel copies: its
// whole loop between two ports over rings in memory. The far side of the rings
// moves descriptors, and writes each frame anew, on the same core, which is in
// the numbers. bench/peers/cl2fwd --memory is the same in C, without a switch.
func BenchmarkCeiling(b *testing.B) {
	known := ceilingConfig()
	known.FDB.Static = []vswitch.StaticMAC{{VLAN: 1, MAC: wt.MAC(2), Port: 1}}
	l2 := wt.Frame(wt.Eth(wt.MAC(2), wt.MAC(1)), wt.IPv4("10.0.0.2", "10.0.0.9"), wt.UDP(9, 9), wt.Zeros(18))
	full, l3 := everything()
	for _, c := range []struct {
		name    string
		config  *vswitch.Config // nil: no switch, vectors go from port to port
		content []byte
	}{
		{"no switch", nil, l2},
		{"known unicast", known, l2},
		{"flooded to one port", ceilingConfig(), l2},
		{"everything on", full, l3},
	} {
		b.Run(c.name, func(b *testing.B) { benchCeiling(b, c.config, c.content) })
	}
}

func benchCeiling(b *testing.B, cfg *vswitch.Config, content []byte) {
	const chunks, rings, burst = 8192, 2048, 256
	e := mustEngine(b, Config{Chunks: chunks})
	w := e.Worker(0)
	var n frame.Node
	if cfg == nil {
		n = newBridge(w)
	} else {
		sw, err := vswitch.New(cfg, []*frame.Pool{w.Pool()})
		if err != nil {
			b.Fatal(err)
		}
		n = sw.Nodes[0]
	}
	mustNode(b, e, 0, n)
	var far [2]*xsk.Far
	for i := range far {
		var s *xsk.Socket
		s, far[i] = xsk.InMemory(chunks, rings, 0)
		far[i].Memory, far[i].Content = e.umem.Bytes(), content
		p := mustPort(b, e, 0, n, uint16(i), PortSpec{Kind: Null})
		if err := e.bringUp(p, &xdpDevice{sockets: []*xsk.Socket{s}, tx: s, txSize: rings}); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			e.takeDown(p, "the end")
			s.EachHeld(e.arena, w.pool.FreeChunk)
		})
	}
	sent := 0
	loop := func() {
		far[0].Deliver(burst, uint32(len(content)), 0)
		w.note()
		now := w.now()
		w.account(now)
		w.moved = w.step(now)
		sent += far[1].Send(burst)
	}
	for range 2 * rings / burst { // every chunk was somewhere
		loop()
	}
	sent = 0
	b.ReportAllocs()
	for b.Loop() {
		loop()
	}
	if sent != b.N*burst {
		b.Fatalf("%d of %d frames came out", sent, b.N*burst)
	}
	per := float64(b.Elapsed().Nanoseconds()) / float64(sent)
	b.ReportMetric(per, "ns/frame")
	b.ReportMetric(1e3/per, "Mpps")
}

func ceilingConfig() *vswitch.Config {
	return &vswitch.Config{Name: "s", MAC: wt.MAC(100), Seed: 1, Class: vswitch.DefaultClassMaps(),
		Ports: []vswitch.PortConfig{{Name: "a", Enabled: true}, {Name: "b", Enabled: true}}}
}

// everything is the switch that gbench calls gswitch-full, and a frame that it
// routes in its lossless class.
func everything() (*vswitch.Config, []byte) {
	cfg := ceilingConfig()
	acl := vswitch.ACL{Name: "edge", Default: pipeline.Action{Ops: pipeline.OpPermit}}
	for i := range 999 {
		var m pipeline.Match
		m.MatchIPv4()
		m.MatchSrcIP(prefix(0x64400000|uint32(i)<<7, []int{8, 16, 24, 32}[i%4]))
		m.MatchDstIP(prefix(0xac100000|uint32(i)<<9, []int{12, 16, 24, 32}[i/4%4]))
		m.MatchProto([]uint8{6, 17, 6}[i%3])
		m.MatchDstPort(uint16(1000+i), uint16(1000+i))
		acl.Rules = append(acl.Rules, vswitch.ACLRule{Priority: 1000 - i, Match: m, Action: pipeline.Action{Ops: pipeline.OpDrop | pipeline.OpCount}})
	}
	var m pipeline.Match
	m.MatchIPv4()
	m.MatchProto(17)
	m.MatchDstPort(9, 9)
	acl.Rules = append(acl.Rules, vswitch.ACLRule{Match: m, Action: pipeline.Action{Ops: pipeline.OpSetClass | pipeline.OpCount, Class: 3}})
	cfg.ACLs = []vswitch.ACL{acl}
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		p.Addresses = []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("10.0.%d.1/24", i))}
		p.Trust, p.ACL = vswitch.TrustDSCP, "edge"
		for q, weight := range []uint32{10, 10, 10, 40, 20, 10, 0, 0} {
			p.Scheduler.Queues[q].Weight = weight
		}
		p.Scheduler.Queues[3].ECN = scheduler.ECN{KMin: 100_000, KMax: 400_000, PMax: 0.2}
	}
	cfg.Buffer = vswitch.BufferConfig{Alpha: 1, QueueReserve: 2048, LosslessAlpha: 0.5, Chunks: true}
	cfg.PFC = vswitch.PFCConfig{Mode: pfc.PFC, Classes: 1 << 3, Watchdog: pfc.Watchdog{}}
	next := netip.MustParseAddr("10.0.1.2")
	cfg.Neighbors = []vswitch.StaticNeighbor{{Addr: next, MAC: wt.MAC(2)}}
	for i := range uint32(100_000) {
		cfg.Routes = append(cfg.Routes, vswitch.Route{Prefix: prefix(20<<24+i<<8, 24), NextHops: []vswitch.NextHop{{Via: next}}})
	}
	return cfg, wt.Frame(wt.Eth(cfg.MAC, wt.MAC(1)), wt.IPv4("10.0.0.9", "20.77.77.77"), wt.UDP(9, 9), wt.Zeros(18))
}

func prefix(addr uint32, bits int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(addr >> 24), byte(addr >> 16), byte(addr >> 8), byte(addr)}), bits).Masked()
}
