package switchtest

import (
	"slices"
	"testing"
	"time"

	"gswitch/frame"
	"gswitch/vswitch"
)

// Passer runs a vector of frames through a switch.
type Passer interface {
	Pass(testing.TB)
	Free()
}

// BenchBeside measures what something costs: vectors of the same frames go
// through a switch without it and one with it, in turn and a few
// at a time, so that both have the same machine. It reports the medians of both
// and, as x, how fast the switch with it forwards: 1 is as fast as without.
func BenchBeside(b *testing.B, without, with Passer) { BenchBesideOf(b, Vector, without, with) }

// BenchBesideOf is BenchBeside with vectors of so many frames.
func BenchBesideOf(b *testing.B, frames int, without, with Passer) {
	vectors := 16 * Vector / frames
	var took [2][]float64
	chunk := func(p Passer) float64 {
		start := time.Now()
		for range vectors {
			p.Pass(b)
		}
		return float64(time.Since(start).Nanoseconds()) / float64(vectors*frames)
	}
	for _, p := range []Passer{without, with} {
		chunk(p)
		took[0], took[1] = nil, nil
	}
	var ratio []float64
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		// Who begins changes, so that neither always finds the other's caches.
		var t [2]float64
		for k := range 2 {
			p, side := without, (i+k)&1
			if side == 1 {
				p = with
			}
			t[side] = chunk(p)
		}
		took[0], took[1] = append(took[0], t[0]), append(took[1], t[1])
		ratio = append(ratio, t[0]/t[1])
	}
	b.ReportMetric(Median(took[0]), "without-ns/frame")
	b.ReportMetric(Median(took[1]), "with-ns/frame")
	b.ReportMetric(Median(ratio), "x")
	without.Free()
	with.Free()
}

// Median returns the middle of some values, which it sorts.
func Median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// Vector is how many frames a Pump has.
const Vector = 64

// Pump runs vectors of 64 frames through a switch and puts the frames back
// into shape behind it.
type Pump struct {
	Rig   *Rig
	Proto [][]byte
	v     [Vector]frame.Ref
	out   [Vector]frame.Ref
	next  int
	Wire  uint32     // of a frame, 0: what is in memory
	Gap   frame.Time // between two vectors
}

func NewPump(tb testing.TB, cfg *vswitch.Config, proto [][]byte) *Pump {
	p := &Pump{Rig: New(tb, cfg), Proto: proto, Gap: 10 * frame.Microsecond}
	for i := range p.v {
		p.v[i] = p.Rig.Pools[0].New(proto[i%len(proto)])
	}
	return p
}

func (p *Pump) Step(in, out uint16) int {
	n := p.Rig.Switch.Nodes[0]
	for i, ref := range p.v {
		m := p.Rig.Arena.Adopt(p.Rig.Arena.ChunkAddr(ref)+frame.DefaultHeadroom, len(p.Proto[i%len(p.Proto)]))
		copy(p.Rig.Arena.Bytes(m), p.Proto[(p.next+i)%len(p.Proto)])
		if p.Wire > 0 {
			p.Rig.Arena.Meta(m).Wire = p.Wire
		}
	}
	p.next += len(p.v)
	p.Rig.Now += p.Gap
	v := p.v
	n.Receive(p.Rig.Now, in, v[:])
	n.Advance(p.Rig.Now)
	k := n.Transmit(p.Rig.Now, out, p.out[:])
	copy(p.v[:k], p.out[:k])
	return k
}

func (p *Pump) Free() {
	for _, ref := range p.v {
		p.Rig.Pools[0].Free(ref)
	}
}

// Bench measures vectors from port 0 to port 1.
func (p *Pump) Bench(b *testing.B) {
	p.Step(0, 1)
	b.ReportAllocs()
	for b.Loop() {
		if k := p.Step(0, 1); k != Vector {
			b.Fatalf("%d of %d frames came out: %v", k, Vector, p.Rig.Drops())
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/Vector, "ns/frame")
	p.Free()
}

// Pass is Step from port 0 to port 1, and takes what the switch itself sent back
// by port 0.
func (p *Pump) Pass(b testing.TB) {
	if k := p.Step(0, 1); k != Vector {
		b.Fatalf("%d of %d frames came out: %v", k, Vector, p.Rig.Drops())
	}
	n := p.Rig.Switch.Nodes[0]
	var back [Vector]frame.Ref
	left := p.Rig.Arena.Chunks()
	for k := n.Transmit(p.Rig.Now, 0, back[:]); k > 0; k = n.Transmit(p.Rig.Now, 0, back[:]) {
		if left -= k; left < 0 {
			b.Fatal("port 0 sends for ever")
		}
		for _, r := range back[:k] {
			p.Rig.Pools[0].Free(r)
		}
	}
}
