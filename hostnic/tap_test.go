package hostnic

import (
	"testing"

	"gswitch/frame"
)

// What is dropped is listed with its reason and its port while there is room,
// freed beyond that, and not listed any more once that ends.
func TestTapDrops(t *testing.T) {
	g := newRig(t, 64, 2048)
	p := newPairOn(t, g, func(_ int, c *Config) { c.Virtual = false })
	stray := func() frame.Ref {
		r := p.b.pool.Alloc()
		m := p.b.arena.Reset(r)
		m.Len, m.Wire, m.InPort = 60, 60, frame.NoPort
		clear(p.b.arena.Bytes(r))
		return r
	}
	p.b.TapDrops(make([]frame.Ref, 0, 2))
	for range 3 {
		p.b.Receive(0, 0, []frame.Ref{stray()})
	}
	v := p.b.TakeDrops()
	if len(v) != 2 || len(p.b.TakeDrops()) != 0 {
		t.Fatalf("%d frames are listed", len(v))
	}
	for _, r := range v {
		if m := p.b.arena.Meta(r); m.Reason == frame.Keep || m.InPort != 0 {
			t.Errorf("listed with reason %v at port %d", m.Reason, m.InPort)
		}
		p.b.pool.Free(r)
	}
	p.b.TapDrops(nil)
	p.b.Receive(0, 0, []frame.Ref{stray()})
	if len(p.b.TakeDrops()) != 0 {
		t.Error("listed without a list")
	}
	p.drained()
}
