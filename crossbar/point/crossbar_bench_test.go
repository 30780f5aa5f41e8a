package point_test

import (
	"testing"

	"gswitch/crossbar/point"
	"gswitch/frame"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
)

// crossbarPump sends vectors of frames through a switch; what crosses has the
// time of a vector to do so.
type crossbarPump struct {
	r     *st.Rig
	proto [16][]byte
	v     [st.Vector]frame.Ref
}

func newCrossbarPump(tb testing.TB, on, chunks bool) *crossbarPump {
	cfg := st.Base(2)
	cfg.Buffer.Chunks = chunks
	cfg.FDB.Static = []vswitch.StaticMAC{{VLAN: 1, MAC: st.HostMAC(2), Port: 1}, {VLAN: 1, MAC: st.HostMAC(1), Port: 0}}
	if on {
		cfg.Options = cfg.Options.With(point.Name, point.Config{SkipBlocked: true})
	}
	p := &crossbarPump{r: st.New(tb, cfg)}
	for i := range p.proto {
		p.proto[i] = st.RoCE(1, uint32(i), 10)
	}
	for i := range p.v {
		p.v[i] = p.r.Pools[0].New(p.proto[0])
	}
	return p
}

func (p *crossbarPump) Pass(tb testing.TB) {
	n := p.r.Switch.Nodes[0]
	for i, ref := range p.v {
		proto := p.proto[i%len(p.proto)]
		p.v[i] = p.r.Arena.Adopt(p.r.Arena.ChunkAddr(ref)+frame.DefaultHeadroom, len(proto))
		copy(p.r.Arena.Bytes(p.v[i]), proto)
	}
	var in [st.Vector]frame.Ref
	n.Receive(p.r.Now, 0, in[:copy(in[:], p.v[:])])
	p.r.Now += 10 * frame.Microsecond
	n.Advance(p.r.Now)
	if k := n.Transmit(p.r.Now, 1, p.v[:]); k != st.Vector {
		tb.Fatalf("%d of %d frames came out: %v", k, st.Vector, p.r.Drops())
	}
}

func (p *crossbarPump) Free() {
	for _, ref := range p.v {
		p.r.Pools[0].Free(ref)
	}
}

func TestCrossbarAllocatesNothing(t *testing.T) {
	for _, chunks := range []bool{false, true} {
		p := newCrossbarPump(t, true, chunks)
		p.Pass(t)
		if n := testing.AllocsPerRun(100, func() { p.Pass(t) }); n != 0 {
			t.Errorf("%v allocations a vector", n)
		}
		p.Free()
	}
}

// BenchmarkCrossbar is a bridge with and without a crossbar, in turn: where bytes alone
// are counted, as papers have it, and with the chunks of memory, as daemons do; and a crossbar
// with bytes alone beside one with chunks (counted).
func BenchmarkCrossbar(b *testing.B) {
	for _, chunks := range []bool{false, true} {
		what := map[bool]string{false: "bytes", true: "chunks"}[chunks]
		b.Run(what, func(b *testing.B) {
			st.BenchBeside(b, newCrossbarPump(b, false, chunks), newCrossbarPump(b, true, chunks))
		})
	}
	b.Run("counted", func(b *testing.B) {
		st.BenchBeside(b, newCrossbarPump(b, true, false), newCrossbarPump(b, true, true))
	})
}
