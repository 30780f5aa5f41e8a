package crossbar

import (
	"testing"

	"gswitch/frame"
)

// BenchmarkCross is a frame's way through an idle crossbar, and through one
// where seven others send to the same egress port.
func BenchmarkCross(b *testing.B) {
	for _, c := range []struct {
		name string
		in   int
	}{{"alone", 1}, {"incast8", 8}} {
		b.Run(c.name, func(b *testing.B) {
			g := newRig(b, detail())
			v := make([]frame.Ref, 4*c.in)
			var out [64]frame.Ref
			for i := range v {
				v[i] = g.frame(uint16(i%c.in), 9, uint8(i%8), 1000)
			}
			for b.Loop() {
				g.x.Arrive(g.now, v)
				for k, at := g.x.Next(frame.Never-1, out[:]); k > 0; k, at = g.x.Next(frame.Never-1, out[:]) {
					g.x.Leave(at, out[:k])
					g.now = at
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(v)), "ns/frame")
		})
	}
}
