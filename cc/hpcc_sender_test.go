package cc

import "testing"

// What holds the sender back: the size that is computed is the same for all.
func TestHPCCLimits(t *testing.T) {
	for _, form := range []string{"window", "rate"} {
		both := newTestHPCC(t, "form", form)
		window := newTestHPCC(t, "form", form, "limit", "window")
		pacing := newTestHPCC(t, "form", form, "limit", "pacing")
		for i, row := range trace {
			f := &Feedback{Ack: row.ack, SndNxt: row.sndNxt, Path: path(1, hop(12.5, row.ts, row.tx, row.q))}
			both.OnAck(f)
			window.OnAck(f)
			pacing.OnAck(f)
			if window.size != both.size || pacing.size != both.size {
				t.Fatalf("%s, row %d: sizes %g, %g and %g", form, i, both.size, window.size, pacing.size)
			}
			if window.Rate() != hundredGig.Rate || window.Window() != both.Window() {
				t.Errorf("%s, row %d: limit=window has R %g, W %g beside %g", form, i, window.Rate(), window.Window(), both.Window())
			}
			if pacing.Window() != 0 || pacing.Rate() != both.Rate() {
				t.Errorf("%s, row %d: limit=pacing has W %g, R %g beside %g", form, i, pacing.Window(), pacing.Rate(), both.Rate())
			}
		}
		if both.Rate() == hundredGig.Rate {
			t.Errorf("%s: the trace does not slow the sender, so it shows nothing", form)
		}
	}
}

// A flow that starts below line rate grows from there as any other.
func TestHPCCStart(t *testing.T) {
	h := newTestHPCC(t, "start", "0.1")
	if h.Window() != 16250 || !near(h.Rate(), 10e9, 1e-12) {
		t.Fatalf("starts with W %g, R %g", h.Window(), h.Rate())
	}
	// Half the link is free: W = 16,250*0.95/0.5 + 80.
	h.OnAck(&Feedback{Ack: 1000, SndNxt: 16_000, Path: path(1, hop(12.5, 0, 0, 0))})
	h.OnAck(&Feedback{Ack: 17_000, SndNxt: 33_000, Path: path(1, hop(12.5, 13_000, 81_250, 0))})
	if !near(h.Window(), 16250*0.95/0.5+80, 1e-9) {
		t.Errorf("W %g", h.Window())
	}
	h.Reset(&hundredGig)
	if h.Window() != 16250 {
		t.Errorf("starts anew with W %g", h.Window())
	}
	for _, bad := range []string{"0", "1.1", "-1"} {
		if _, err := Factory("hpcc", map[string]string{"start": bad}); err == nil {
			t.Errorf("start %s is accepted", bad)
		}
	}
}
