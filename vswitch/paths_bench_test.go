package vswitch_test

import (
	"fmt"
	"testing"

	"gswitch/frame"
	"gswitch/pipeline"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	wt "gswitch/wire/wiretest"
)

// BenchmarkPaths is what choosing a path costs a frame from its arrival until
// it leaves, beside the choice by flow: alone, as in virtual time, and in
// vectors.
func BenchmarkPaths(b *testing.B) {
	for kind := pipeline.ChooseScatter; kind < pipeline.NumChoosers; kind++ {
		for _, size := range []int{1, st.Vector} {
			b.Run(fmt.Sprintf("choose=%v/frames=%d", kind, size), func(b *testing.B) {
				st.BenchBesideOf(b, size, newFan(b, pipeline.ChooseHash, size), newFan(b, kind, size))
			})
		}
	}
}

// fanPump runs frames of 64 flows through a switch of fanConfig.
type fanPump struct {
	r     *st.Rig
	proto [64][]byte
	v     []frame.Ref
	next  int
}

func newFan(b testing.TB, kind pipeline.Chooser, size int) *fanPump {
	cfg := vswitch.FanConfig(4, vswitch.PathsConfig{Choose: kind})
	if size == 1 {
		st.Rated(cfg, 400e9)
	}
	p := &fanPump{r: st.New(b, cfg), v: make([]frame.Ref, size)}
	for i := range p.proto {
		p.proto[i] = wt.Frame(wt.Eth(st.SelfMAC, st.HostMAC(1)), wt.IPv4("10.0.0.9", fmt.Sprintf("20.7.%d.1", i)), wt.UDP(uint16(1000+i), 4791), wt.Zeros(12+32))
	}
	for i := range p.v {
		p.v[i] = p.r.Pools[0].New(p.proto[0])
	}
	return p
}

func (p *fanPump) Pass(b testing.TB) {
	n, size := p.r.Switch.Nodes[0], len(p.v)
	for i, ref := range p.v {
		proto := p.proto[p.next%len(p.proto)]
		p.next++
		p.v[i] = p.r.Arena.Adopt(p.r.Arena.ChunkAddr(ref)+frame.DefaultHeadroom, len(proto))
		copy(p.r.Arena.Bytes(p.v[i]), proto)
		p.r.Arena.Meta(p.v[i]).Wire = 1090
	}
	p.r.Now += frame.Time(size) * 100
	var in [st.Vector]frame.Ref
	n.Receive(p.r.Now, 0, in[:copy(in[:], p.v)])
	p.r.Now += frame.Time(size) * 100
	var touched [8]uint16
	n.Touched(touched[:])
	out := 0
	for port := uint16(1); port <= 4; port++ {
		out += n.Transmit(p.r.Now, port, p.v[out:])
		n.PortWake(p.r.Now, port)
	}
	n.TimerWake(p.r.Now)
	if out != size {
		b.Fatalf("%d of %d frames came out: %v", out, size, p.r.Drops())
	}
}

func (p *fanPump) Free() {
	for _, ref := range p.v {
		p.r.Pools[0].Free(ref)
	}
}
