package xsk

import (
	"runtime"
	"testing"

	"gswitch/frame"
)

// BenchmarkForward runs sender, forwarder and the discarding receiver on one
// core, through two veth pairs: h0 -> s0 -> s1 -> h1. Nearly all of it is the
// kernel's, twice one transmission.
func BenchmarkForward(b *testing.B) {
	l := newLab(b)
	l.pair("h0", "s0", 1500, 1)
	l.pair("h1", "s1", 1500, 1)
	g := newGroup(b, 8192, 2048)
	c := Config{Mode: Native, FillSize: 1024}
	host, from, to := g.open(l, "h0", c), g.open(l, "s0", c), g.open(l, "s1", c)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	v := make([]frame.Ref, 64)
	content := testFrame(60, 0)
	sent, moved := 0, 0
	for b.Loop() {
		for i := range v {
			v[i] = g.p.New(content)
		}
		sent += host.Transmit(g.a, v)
		for host.Outstanding() > 0 {
			if err := host.Kick(); err != nil {
				b.Fatal(err)
			}
			host.Complete(g.p)
		}
		for n := g.l2fwd(from, to, v); n > 0; n = g.l2fwd(from, to, v) {
			moved += n
		}
	}
	st, err := to.Stats()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(moved), "ns/frame")
	b.ReportMetric(float64(st.KickChunks)/float64(st.Kicks), "frames/kick")
	b.ReportMetric(float64(sent-moved)/float64(sent), "lost/sent")
	g.closeAll()
}
