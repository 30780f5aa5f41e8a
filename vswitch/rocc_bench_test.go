package vswitch

import (
	"fmt"
	"testing"

	"gswitch/frame"
	"gswitch/rocc"
	wt "gswitch/wire/wiretest"
)

// What a congestion point costs: the same frames through a port with one
// and without, updates and notices included. calm: each vector leaves before
// the next comes. busy: frames of 1000 bytes at 100 Gb/s through a queue that
// stands beyond its reference, so that in each period all senders are told.
func BenchmarkRoCC(b *testing.B) {
	on := RoCCConfig{Queues: 0xff, Params: rocc.For(100_000_000_000)}
	for _, n := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("calm/flows=%d", n), func(b *testing.B) {
			benchBeside(b, roccPump(b, RoCCConfig{}, n), roccPump(b, on, n))
		})
	}
	for _, n := range []int{1, 2, 10, 100} {
		b.Run(fmt.Sprintf("busy/flows=%d", n), func(b *testing.B) {
			without, with := roccPump(b, RoCCConfig{}, n), roccPump(b, on, n)
			for _, p := range []*pump{without, with} {
				p.stand(400)
			}
			benchBeside(b, without, with)
		})
	}
}

// What each table costs where the queue stands, with a hundred flows.
func BenchmarkCongestionTables(b *testing.B) {
	for kind := rocc.InQueue; kind <= rocc.Bubble; kind++ {
		b.Run(kind.String(), func(b *testing.B) {
			on := RoCCConfig{Queues: 0xff, Params: rocc.For(100_000_000_000), Table: rocc.TableConfig{Kind: kind}}
			without, with := roccPump(b, RoCCConfig{}, 100), roccPump(b, on, 100)
			without.stand(400)
			with.stand(400)
			benchBeside(b, without, with)
		})
	}
}

func roccPump(b testing.TB, c RoCCConfig, n int) *pump {
	cfg := baseConfig(2)
	cfg.FDB.Static = []StaticMAC{{VLAN: 1, MAC: hostMAC(2), Port: 1}, {VLAN: 1, MAC: hostMAC(1), Port: 0}}
	cfg.Buffer.Size = 8 << 20
	cfg.Ports[1].RoCC = c
	var proto [][]byte
	for i := range n {
		proto = append(proto, wt.Frame(wt.Eth(hostMAC(2), hostMAC(1)), wt.IPv4("10.0.0.9", "10.0.0.2"), wt.UDP(uint16(1000+i), 2000)))
	}
	return newPump(b, cfg, proto)
}

// stand leaves frames of 1000 bytes in the queue behind which all others wait,
// and has them come at 100 Gb/s.
func (p *pump) stand(frames int) {
	p.wire, p.gap = 1000, 64*80*frame.Nanosecond
	for i := range frames {
		r := p.r.pools[0].New(p.proto[i%len(p.proto)])
		p.r.arena.Meta(r).Wire = p.wire
		p.r.sw.Nodes[0].Receive(p.r.now, 0, []frame.Ref{r})
	}
}
