package point

import (
	"bytes"
	"testing"

	"gswitch/frame"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	wt "gswitch/wire/wiretest"
)

// printed is a configuration as the algorithm is printed, with so many places.
func printed(cfg *vswitch.Config, slots int) *vswitch.Config {
	change(cfg, func(c *Config) {
		c.Slots, c.Flows, c.PerFlow, c.Reclaim, c.Printed = slots, slots, slots, frame.Millisecond, true
	})
	return cfg
}

// Line 16: a token that finds no place is dropped before a frame is looked for,
// which ours takes out all the same, since it goes to places of other switches.
func TestPrintedTokenNeedsAPlace(t *testing.T) {
	for _, as := range []bool{true, false} {
		cfg := printed(escapeConfig(), 1)
		change(cfg, func(c *Config) { c.Printed = as })
		r := newRig(t, cfg)
		open, waits := st.RoCE(3, 1, 100), st.RoCE(1, 2, 200)
		for range 40 {
			r.In(0, waits) // until port 0 is paused, which no token may go by
		}
		x := exits(r.Switch.Nodes[0]).ports[1]
		x.Note(r.hashOf(open), flowIn(open), 2, 3)
		if _, ok := x.Offer(r.Now, func(uint16, uint8) bool { return true }); !ok || x.Free() != 0 {
			t.Fatalf("%d places free", x.Free())
		}
		r.In(1, wt.PFC(st.HostMAC(9), 1<<3, 0xffff))
		r.all(1)
		r.In(0, waits)
		r.In(1, token(waits, 1))
		left, v := len(r.all(1)), Views(r.Switch.Nodes[0], nil)[1]
		if as && (left != 0 || v.Hits != 0 || v.Dropped != 1) || !as && (left != 1 || v.Hits != 1) {
			t.Errorf("as printed %v: %d frames left, %+v", as, left, v)
		}
	}
}

// Line 2: tokens are made as soon as a pause is requested.
func TestPrintedIsNotPatient(t *testing.T) {
	cfg := printed(escapeConfig(), 4)
	for i := range cfg.Ports {
		cfg.Ports[i].CableDelay = 5000
	}
	cfg.Buffer.Size = 1 << 20
	r := newRig(t, cfg)
	r.In(0, wt.PFC(st.HostMAC(1), 1<<3, 0xffff))
	for range 40 {
		r.In(2, st.UDP(st.HostMAC(1), st.HostMAC(3), "10.0.0.1", "10.0.0.3"))
	}
	n := r.Switch.Nodes[0]
	pfc := n.PFC(2).Class(3)
	if n.Advance(pfc.XOFFSince); !pfc.XOFFSent || !exits(n).isWaited(2, 3) {
		t.Errorf("paused: %v, and no token may be made for what waits there", pfc.XOFFSent)
	}
}

// Section 4.3.3, 2: a frame with a mark is in the queue of those that escape also
// at the switch where its token began, past older frames and past a pause.
func TestPrintedPassesAll(t *testing.T) {
	r := newRig(t, printed(escapeConfig(), 4))
	older, came := st.RoCE(3, 1, 100), st.RoCE(3, 1, 120)
	r.In(1, wt.PFC(st.HostMAC(9), 1<<3, 0xffff))
	r.In(2, older)
	r.In(2, marked(came, 1))
	if v := r.all(1); len(v) != 1 || !bytes.Equal(v[0], came) {
		t.Fatalf("%d frames: % x", len(v), v)
	}
	if v := Views(r.Switch.Nodes[0], nil)[1]; v.Parked != 0 || v.Taken != 0 {
		t.Fatalf("%+v", v)
	}
}
