package vswitch

import (
	"slices"
	"testing"

	"gswitch/frame"
	wt "gswitch/wire/wiretest"
)

// drain lets time pass until no port has anything to send.
func drain(r *rig) {
	for end := r.now + frame.Second; r.busy(); {
		if r.now > end {
			r.t.Fatal("no rest")
		}
		r.advance(frame.Microsecond)
		for p := range r.sw.Program().ports {
			r.out(uint16(p))
		}
	}
}

// congest makes port 0 ask its neighbour to pause: most of what came by it
// waits for port 1, some for port 2.
func congest(r *rig) {
	for range 20 {
		r.in(0, tagged(1, 0, 3, 1000))
	}
	for range 3 {
		r.in(0, tagged(2, 0, 3, 1000))
	}
}

// A pause that the buffer asks for is remembered with what it held and for
// which egress queues, while it lasts and afterwards.
func TestPauseLogOfPausesSent(t *testing.T) {
	cfg := losslessConfig(3)
	cfg.PFC.Log = PauseLog{Keep: 4}
	r := newRig(t, cfg)
	n := r.sw.Nodes[0]
	began := r.now
	congest(r)
	v, forgotten := n.Pauses(nil)
	if len(v) != 1 || forgotten != 0 {
		t.Fatalf("%+v", v)
	}
	p := v[0]
	if p.Port != 0 || p.Class != 3 || !p.Asked || p.Short || p.From != began || p.To != frame.Never {
		t.Errorf("%+v", p)
	}
	// 20 kB is the threshold; the frames are of 1000 bytes, and the
	// first leaves by port 1 when that is asked for frames.
	if p.Held < 20_000 || p.Held > 22_000 || p.Causes[0] != (PauseCause{Port: 1, Bytes: p.Held}) || p.Causes[1].Bytes != 0 {
		t.Errorf("held %d, causes %v", p.Held, p.Causes)
	}
	drain(r)
	v, _ = n.Pauses(v[:0])
	if len(v) != 1 || v[0].To <= v[0].From || v[0].To == frame.Never || v[0].Held != p.Held {
		t.Errorf("%+v", v)
	}
}

func TestPauseLogOfPausesReceived(t *testing.T) {
	cfg := losslessConfig(2)
	cfg.PFC.Log = PauseLog{Keep: 4}
	r := newRig(t, cfg)
	n := r.sw.Nodes[0]
	began := r.now
	r.in(1, pfcFrame(1<<3, 100)) // 51.2 us at 1 Gb/s
	if v, _ := n.Pauses(nil); len(v) != 1 || v[0].Port != 1 || v[0].Class != 3 || v[0].Asked || v[0].From != began || v[0].To != frame.Never {
		t.Fatalf("%+v", v)
	}
	r.advance(10 * frame.Microsecond)
	r.in(1, pfcFrame(1<<3, 0))
	v, _ := n.Pauses(nil)
	if len(v) != 1 || v[0].To != began+10*frame.Microsecond {
		t.Errorf("ended by the neighbour: %+v", v)
	}
	r.in(1, pfcFrame(1<<3, 100))
	r.advance(52 * frame.Microsecond)
	if v, _ = n.Pauses(nil); len(v) != 2 || v[1].To == frame.Never {
		t.Errorf("ended by itself: %+v", v)
	}
}

// With two places the last two are kept, in order, and the rest is counted.
// Nothing is allocated meanwhile.
func TestPauseLogForgets(t *testing.T) {
	cfg := losslessConfig(2)
	cfg.PFC.Log = PauseLog{Keep: 2}
	r := newRig(t, cfg)
	n := r.sw.Nodes[0]
	for range 5 {
		r.in(1, pfcFrame(1<<3, 100))
		r.in(1, pfcFrame(1<<3, 0))
		r.advance(frame.Microsecond)
	}
	v, forgotten := n.Pauses(nil)
	if len(v) != 2 || forgotten != 3 || v[1].From != v[0].From+frame.Microsecond || v[1].From != r.now-frame.Microsecond {
		t.Errorf("%d forgotten, %+v", forgotten, v)
	}
	at := n.now
	if k := testing.AllocsPerRun(100, func() {
		at++
		n.logAsked(at, 0, 1<<3)
		n.logAsked(at, 0, 0)
	}); k != 0 {
		t.Errorf("%v allocations for a pause", k)
	}

	// Off again: nothing is kept.
	cfg2 := losslessConfig(2)
	if err := r.sw.Apply(cfg2); err != nil {
		t.Fatal(err)
	}
	r.advance(frame.Microsecond)
	r.in(1, pfcFrame(1<<3, 0))
	if v, _ := n.Pauses(nil); len(v) != 0 {
		t.Errorf("%+v", v)
	}
}

// Only so many frames of a queue are looked at.
func TestPauseLogLooksAtSome(t *testing.T) {
	cfg := losslessConfig(3)
	cfg.PFC.Log = PauseLog{Keep: 2, Look: 5}
	r := newRig(t, cfg)
	congest(r)
	if v, _ := r.sw.Nodes[0].Pauses(nil); len(v) != 1 || v[0].Causes[0] != (PauseCause{Port: 1, Bytes: 5 * 1000}) {
		t.Errorf("%+v", v)
	}
	drain(r)
}

// A log of another size has the pauses that last, the last of those that ended,
// in order, and counts what it had no room for.
func TestPauseLogResized(t *testing.T) {
	cfg := losslessConfig(3)
	cfg.PFC.Log = PauseLog{Keep: 3}
	r := newRig(t, cfg)
	n := r.sw.Nodes[0]
	congest(r)
	for range 5 {
		r.in(1, pfcFrame(1<<3, 100))
		r.advance(frame.Microsecond)
		r.in(1, pfcFrame(1<<3, 0))
	}
	r.in(2, pfcFrame(1<<3, 10_000))
	was, forgotten := n.Pauses(nil)
	if len(was) != 5 || forgotten != 2 {
		t.Fatalf("%d, %d forgotten: %+v", len(was), forgotten, was)
	}
	resize := func(keep int) []Pause {
		next := *cfg
		next.PFC.Log.Keep = keep
		r.apply(&next)
		v, lost := n.Pauses(nil)
		forgotten = lost
		return v
	}
	if v := resize(8); !slices.Equal(v, was) || forgotten != 2 {
		t.Errorf("larger: %d forgotten, %+v", forgotten, v)
	}
	if v := resize(2); !slices.Equal(v, was[1:]) || forgotten != 3 {
		t.Errorf("smaller: %d forgotten, %+v", forgotten, v)
	}
	r.in(2, pfcFrame(1<<3, 0))
	if v, lost := n.Pauses(nil); len(v) != 3 || lost != 4 || v[1].Port != 2 || v[1].From != was[4].From || v[1].To != r.now {
		t.Errorf("%d forgotten, %+v", lost, v)
	}
	drain(r)
}

// One that is turned on has what lasts by then.
func TestPauseLogTurnedOn(t *testing.T) {
	cfg := losslessConfig(3)
	r := newRig(t, cfg)
	congest(r)
	r.in(2, pfcFrame(1<<3, 10_000))
	began := r.now
	r.advance(frame.Microsecond)
	next := *cfg
	next.PFC.Log = PauseLog{Keep: 4}
	r.apply(&next)
	v, _ := r.sw.Nodes[0].Pauses(nil)
	if len(v) != 2 || !v[0].Asked || v[0].Port != 0 || v[0].From < began || v[0].Causes[0].Port != 1 || v[1].Asked || v[1].Port != 2 || v[1].From != began {
		t.Fatalf("%+v", v)
	}
	drain(r)
	if v, _ = r.sw.Nodes[0].Pauses(v[:0]); v[0].To == frame.Never && v[1].To == frame.Never {
		t.Errorf("%+v", v)
	}
}

// Of a crossbar the log says what fills the ingress queue, also with classes
// above that of the pause, and first of all which egress queue holds it up.
func TestPauseLogOfCrossbar(t *testing.T) {
	cfg := crossbarConfig(4, Crossing{Pause: 8192, Unpause: 4557, Egress: 3000})
	cfg.PFC.Log = PauseLog{Keep: 4}
	r := newRig(t, cfg)
	n := r.sw.Nodes[0]
	r.in(1, wt.PFC(hostMAC(9), 0xff, 0xffff)) // port 1 is shut
	for range 3 {
		r.in(0, classed(1, 2, 2, 1500)) // two fill its egress queue, the third stays
		r.advance(20 * frame.Microsecond)
	}
	for range 4 {
		r.in(0, classed(1, 3, 2, 1500))
	}
	r.in(0, classed(1, 4, 2, 1000))
	v, _ := n.Pauses(nil)
	var asked *Pause
	for i := range v {
		if v[i].Asked && v[i].Class == 2 {
			asked = &v[i]
		}
	}
	if asked == nil {
		t.Fatalf("%+v", v)
	}
	// The fifth frame of 1500 bytes behind the first crosses 8192 with the one
	// that it stands behind: 1500 for port 1, and what had come for port 2.
	if asked.Held < 8192 || asked.Causes[0] != (PauseCause{1, 1500, true}) || asked.Causes[1].Port != 2 || asked.Causes[1].Stuck || asked.Causes[1].Bytes+asked.Causes[2].Bytes+1500 != asked.Held {
		t.Errorf("held %d, causes %+v", asked.Held, asked.Causes)
	}
	r.in(1, wt.PFC(hostMAC(9), 0xff, 0))
	drain(r)
}
