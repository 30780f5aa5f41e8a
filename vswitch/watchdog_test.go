package vswitch

import (
	"testing"

	"gswitch/frame"
	"gswitch/pfc"
)

// A port has the watchdog of the switch unless it has one of its own: here the
// switch drops after 10 us, port 1 only reports, port 2 has none.
func TestWatchdogOfAPort(t *testing.T) {
	cfg := losslessConfig(4)
	cfg.PFC.Watchdog = pfc.Watchdog{Detect: 10 * frame.Microsecond, Action: pfc.Drop}
	cfg.Ports[1].Watchdog = &pfc.Watchdog{Detect: 20 * frame.Microsecond, Action: pfc.Alert}
	cfg.Ports[2].Watchdog = &pfc.Watchdog{}
	r := newRig(t, cfg)
	for p := 1; p <= 3; p++ {
		r.in(uint16(p), pfcFrame(1<<3, 0xffff))
		r.in(0, tagged(p, 0, 3, 100))
	}
	for range 30 {
		r.advance(frame.Microsecond)
	}
	n := r.sw.Nodes[0]
	for p, want := range []struct {
		storm, waits bool
	}{{}, {true, true}, {false, true}, {true, false}} {
		if p == 0 {
			continue
		}
		if storm := n.PFC(uint16(p)).Storms() == 1<<3; storm != want.storm {
			t.Errorf("port %d: storm %v", p, storm)
		}
		held := n.HeldBack(r.now, uint16(p))
		if waits := held[3] > 0; waits != want.waits || waits && held[3] != 30*frame.Microsecond {
			t.Errorf("port %d: held back %v", p, held)
		}
	}
	w := n.Waits(r.now, nil)
	if len(w) != 2 || w[0].Port != 1 || w[0].Frames != 1 || w[0].Bytes != 100 || w[1].Port != 2 {
		t.Errorf("%+v", w)
	}
	// Without one of its own again, the port has that of the switch.
	next := losslessConfig(4)
	next.PFC.Watchdog = cfg.PFC.Watchdog
	if err := r.sw.Apply(next); err != nil {
		t.Fatal(err)
	}
	for range 30 {
		r.advance(frame.Microsecond)
	}
	if w := n.Waits(r.now, nil); len(w) != 0 {
		t.Errorf("%+v", w)
	}
}
