package boundary

import (
	"testing"

	"gswitch/frame"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
)

// BenchmarkForward forwards frames that are not of PTP by a switch without and with a clock.
func BenchmarkForward(b *testing.B) {
	for _, c := range []struct {
		name string
		cfg  *vswitch.Config
	}{{"without", st.Star()}, {"with", config()}} {
		b.Run(c.name, func(b *testing.B) {
			for i := range c.cfg.Ports {
				c.cfg.Ports[i].Scheduler.Rate = 0 // a vector at once
			}
			r := st.New(b, c.cfg)
			n, data := r.Switch.Nodes[0], st.L2(2, 1)
			var v, out [64]frame.Ref
			forwarded := 0
			b.ReportAllocs()
			for b.Loop() {
				for i := range v {
					v[i] = r.Pools[0].New(data)
				}
				r.Now += frame.Microsecond
				n.Receive(r.Now, 0, v[:])
				n.Advance(r.Now)
				for port := range uint16(3) {
					k := n.Transmit(r.Now, port, out[:])
					for _, ref := range out[:k] {
						r.Pools[0].Free(ref)
					}
					if port == 1 {
						forwarded += k
					}
				}
			}
			if forwarded < 63*b.N {
				b.Fatalf("%d of %d frames were forwarded", forwarded, 64*b.N)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/frame")
		})
	}
}
