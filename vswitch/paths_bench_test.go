package vswitch

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/gswitch/gswitch/frame"
	"github.com/gswitch/gswitch/pipeline"
	wt "github.com/gswitch/gswitch/wire/wiretest"
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
// it leaves: alone, as in virtual time, and in vectors.
func BenchmarkPaths(b *testing.B) {
	for kind := range pipeline.NumChoosers {
		for _, size := range []int{1, vector} {
			b.Run(fmt.Sprintf("choose=%v/frames=%d", kind, size), func(b *testing.B) {
				benchPaths(b, kind, size)
			})
		}
	}
}

func benchPaths(b *testing.B, kind pipeline.Chooser, size int) {
	const flows = 64
	cfg := fanConfig(4, PathsConfig{Choose: kind})
	if size == 1 {
		rated(cfg, 400e9)
	}
	r := newRig(b, cfg)
	n := r.sw.Nodes[0]
	var proto [flows][]byte
	var v [vector]frame.Ref
	for i := range proto {
		proto[i] = wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.IPv4("10.0.0.9", fmt.Sprintf("20.7.%d.1", i)), wt.UDP(uint16(1000+i), 4791), wt.Zeros(12+32))
	}
	for i := range v[:size] {
		v[i] = r.pools[0].New(proto[0])
	}
	var touched [8]uint16
	next, sent := 0, 0
	b.ReportAllocs()
	for b.Loop() {
		for i, ref := range v[:size] {
			p := proto[next%flows]
			next++
			v[i] = r.arena.Adopt(r.arena.ChunkAddr(ref)+frame.DefaultHeadroom, len(p))
			copy(r.arena.Bytes(v[i]), p)
			r.arena.Meta(v[i]).Wire = 1090
		}
		r.now += frame.Time(size) * 100
		in := v
		n.Receive(r.now, 0, in[:size])
		r.now += frame.Time(size) * 100
		k := n.Touched(touched[:])
		out := 0
		for _, p := range touched[:k] {
			out += n.Transmit(r.now, p, v[out:size])
			n.PortWake(r.now, p)
		}
		n.TimerWake(r.now)
		if out != size {
			b.Fatalf("%d of %d frames came out: %v", out, size, r.drops())
		}
		sent += out
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(sent), "ns/frame")
	for _, ref := range v[:size] {
		r.pools[0].Free(ref)
	}
}
