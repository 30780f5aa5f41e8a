package dataplane

import (
	"encoding/binary"
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
	foreign := ptp(200)
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
	s.stamp(1000, a, []frame.Ref{foreign, ptp(byte(len(s.ring)))})
	after := enter(700, 77)
	if s.stamp(1000, a, []frame.Ref{after}); a.Meta(after).Stamp != 700 || a.Meta(foreign).Stamp != 0 {
		t.Errorf("behind a full ring: %d", a.Meta(after).Stamp)
	}
}

// What a message of PTP waited below its node is added to its correction, once,
// whether it waited for the loop or behind the emulated link; others stay as they are.
func TestCorrections(t *testing.T) {
	e := mustEngine(t, Config{Chunks: 256})
	p := e.Worker(0).Pool()
	w := e.workers[0]
	mine := func(group bool) frame.Ref {
		b := make([]byte, 64)
		if group {
			copy(b, peerAddress[:])
		}
		b[12], b[13], b[correctionAt+5] = 0x88, 0xf7, 7 // 7 ns
		r := p.New(b)
		e.Arena().Meta(r).EtherType = etherTypePTP
		return r
	}
	read := func(r frame.Ref) frame.Time {
		return frame.Time(binary.BigEndian.Uint64(e.Arena().Bytes(r)[correctionAt:]) >> 16)
	}
	for _, cable := range []bool{false, true} {
		l := &line{timing: true}
		if cable {
			l.delay = newDelayLine(0, 4)
		}
		a, forwarded := mine(true), mine(false)
		now := e.Now()
		m := e.Arena().Meta(a)
		if m.Arrival = now; cable {
			now += frame.Second // the link has a better value for this
		}
		l.held[0], l.held[1], l.nheld = a, forwarded, 2
		w.correct(now, l)
		first := read(a)
		w.correct(now, l)
		if least := e.Now() - m.Arrival + 7; first <= 7 || first > least || read(a) != first || read(forwarded) != 7 {
			t.Errorf("cable %t: %d ns, then %d; at most %d have passed; another's frame %d", cable, first, read(a), least, read(forwarded))
		}
		p.Free(a)
		p.Free(forwarded)
	}
}
