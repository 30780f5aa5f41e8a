package vswitch

import (
	"fmt"
	"net/netip"
	"testing"

	"gswitch/frame"
	"gswitch/pipeline"
	wt "gswitch/wire/wiretest"
)

// fanConfig is a switch that routes what comes by port 0 over a group of n
// ports, from 1 on.
func fanConfig(n int, c PathsConfig) *Config {
	cfg := baseConfig(n + 1)
	cfg.Paths = c
	cfg.Ports[0].Addresses = prefixes("10.0.0.1/24")
	r := Route{Prefix: netip.MustParsePrefix("20.0.0.0/8")}
	for i := 1; i <= n; i++ {
		cfg.Ports[i].Addresses = prefixes(fmt.Sprintf("10.0.%d.1/24", i))
		via := netip.MustParseAddr(fmt.Sprintf("10.0.%d.2", i))
		cfg.Neighbors = append(cfg.Neighbors, StaticNeighbor{Addr: via, MAC: hostMAC(i + 1)})
		r.NextHops = append(r.NextHops, NextHop{Via: via})
	}
	cfg.Routes = []Route{r}
	cfg.Buffer.Size = 8 << 20
	return cfg
}

// BenchmarkPaths is what choosing a path costs a frame from its arrival until
// it leaves, beside the choice by flow: alone, as in virtual time, and in
// vectors.
func BenchmarkPaths(b *testing.B) {
	for kind := pipeline.ChooseScatter; kind < pipeline.NumChoosers; kind++ {
		for _, size := range []int{1, vector} {
			b.Run(fmt.Sprintf("choose=%v/frames=%d", kind, size), func(b *testing.B) {
				benchBeside(b, size, newFan(b, pipeline.ChooseHash, size), newFan(b, kind, size))
			})
		}
	}
}

// fanPump runs frames of 64 flows through a switch of fanConfig.
type fanPump struct {
	r     *rig
	proto [64][]byte
	v     []frame.Ref
	next  int
}

func newFan(b testing.TB, kind pipeline.Chooser, size int) *fanPump {
	cfg := fanConfig(4, PathsConfig{Choose: kind})
	if size == 1 {
		rated(cfg, 400e9)
	}
	p := &fanPump{r: newRig(b, cfg), v: make([]frame.Ref, size)}
	for i := range p.proto {
		p.proto[i] = wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.IPv4("10.0.0.9", fmt.Sprintf("20.7.%d.1", i)), wt.UDP(uint16(1000+i), 4791), wt.Zeros(12+32))
	}
	for i := range p.v {
		p.v[i] = p.r.pools[0].New(p.proto[0])
	}
	return p
}

func (p *fanPump) pass(b testing.TB) {
	n, size := p.r.sw.Nodes[0], len(p.v)
	for i, ref := range p.v {
		proto := p.proto[p.next%len(p.proto)]
		p.next++
		p.v[i] = p.r.arena.Adopt(p.r.arena.ChunkAddr(ref)+frame.DefaultHeadroom, len(proto))
		copy(p.r.arena.Bytes(p.v[i]), proto)
		p.r.arena.Meta(p.v[i]).Wire = 1090
	}
	p.r.now += frame.Time(size) * 100
	var in [vector]frame.Ref
	n.Receive(p.r.now, 0, in[:copy(in[:], p.v)])
	p.r.now += frame.Time(size) * 100
	var touched [8]uint16
	n.Touched(touched[:])
	out := 0
	for port := uint16(1); port <= 4; port++ {
		if n.busy.has(port) {
			out += n.Transmit(p.r.now, port, p.v[out:])
			n.PortWake(p.r.now, port)
		}
	}
	n.TimerWake(p.r.now)
	if out != size {
		b.Fatalf("%d of %d frames came out: %v", out, size, p.r.drops())
	}
}

func (p *fanPump) free() {
	for _, ref := range p.v {
		p.r.pools[0].Free(ref)
	}
}
