package dataplane

import (
	"testing"

	"gswitch/frame"
)

// Stamps find their frames by what is in them, whatever was lost, came twice, or is
// none of PTP.
func TestStamps(t *testing.T) {
	a, err := frame.NewArena(make([]byte, 256*2048), 2048, frame.DefaultHeadroom)
	if err != nil {
		t.Fatal(err)
	}
	p := frame.NewPool(a)
	s := &arrivals{}
	ptp := func(n byte) frame.Ref {
		b := make([]byte, 64)
		b[12], b[13], b[20] = 0x88, 0xf7, n
		r := p.New(b)
		a.Meta(r).EtherType = etherTypePTP
		return r
	}
	other := p.New(make([]byte, 64))
	enter := func(at frame.Time, n byte) frame.Ref { r := ptp(n); s.enter(a, r, at); return r }
	lost, second := enter(100, 1), enter(200, 2)
	twice := enter(200, 2)
	s.enter(a, other, 250)
	late := enter(300, 3)
	stranger := ptp(200)
	s.stamp(290, a, []frame.Ref{other, second, twice, late})
	for i, k := range []struct {
		r    frame.Ref
		want frame.Time
	}{{lost, 0}, {other, 0}, {second, 200}, {twice, 200}, {late, 290}} {
		if got := a.Meta(k.r).Stamp; got != k.want {
			t.Errorf("frame %d came at %d, want %d", i, got, k.want)
		}
	}
	// A ring full of what was lost is emptied by the first frame behind it.
	for n := range len(s.ring) + 1 {
		enter(frame.Time(n), byte(n))
	}
	s.stamp(1000, a, []frame.Ref{stranger, ptp(byte(len(s.ring)))})
	after := enter(700, 77)
	if s.stamp(1000, a, []frame.Ref{after}); a.Meta(after).Stamp != 700 || a.Meta(stranger).Stamp != 0 {
		t.Errorf("behind a full ring: %d", a.Meta(after).Stamp)
	}
}
