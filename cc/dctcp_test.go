package cc

import (
	"math"
	"testing"
)

// ackWindow acknowledges a window of ten frames, the first marked ones with the
// mark, and returns the new end.
func ackWindow(a Algorithm, from uint64, marked int) uint64 {
	for i := range uint64(10) {
		a.OnAck(&Feedback{Ack: from + (i+1)*1000, SndNxt: from + 10_000 + (i+1)*1000, Newly: 1000, CE: i < uint64(marked)})
	}
	return from + 10_000
}

func TestDCTCPAlpha(t *testing.T) {
	d := build(t, &tenGig, "dctcp", "alpha0", "0").(*dctcp)
	d.end = 1 // a window began just before
	// Acknowledgements 2..10 of a window and 1 of the next make a share.
	want := []float64{.0625, .12109375, .1447753906, .1357269287}
	var at uint64
	for i, marked := range []int{10, 10, 5, 0} {
		d.marked, d.total, d.end = 0, 0, at+9999
		at = ackWindow(d, at, marked)
		if !near(d.alpha, want[i], 1e-9) {
			t.Errorf("window %d: alpha %.8f, want %.8f", i+1, d.alpha, want[i])
		}
	}
}

func TestDCTCPStartsAtLineRateAndGrowsByOneFrame(t *testing.T) {
	d := build(t, &tenGig, "dctcp").(*dctcp)
	if d.Rate() != 10e9 || d.Window() != 25_000 || d.alpha != 1 {
		t.Fatalf("starts with R %.0f W %.0f alpha %.1f", d.Rate(), d.Window(), d.alpha)
	}
	d.set(4e9) // W = 10,000
	d.OnAck(&Feedback{Ack: 1000, SndNxt: 11_000, Newly: 1000})
	for i := range uint64(3) {
		before := d.Window()
		end := d.end
		for a := end - 9000; a <= end; a += 1000 {
			d.OnAck(&Feedback{Ack: a, SndNxt: a + 10_000, Newly: 1000})
		}
		if d.Window() != before {
			t.Errorf("window %d: grew before its end", i)
		}
		if d.OnAck(&Feedback{Ack: end + 1000, SndNxt: end + 11_000, Newly: 1000}); math.Abs(d.Window()-before-1000) > 1 {
			t.Errorf("window %d: W %.0f after %.0f, want one frame more", i, d.Window(), before)
		}
	}
}

func TestDCTCPCutsOnceInAWindow(t *testing.T) {
	d := build(t, &tenGig, "dctcp").(*dctcp)
	d.OnAck(&Feedback{Ack: 1000, SndNxt: 20_000, Newly: 1000})
	for a := uint64(2000); a <= 19_000; a += 1000 {
		d.OnAck(&Feedback{Ack: a, SndNxt: 20_000, Newly: 1000, CE: true})
	}
	if !near(d.Rate(), 5e9, 1e-12) {
		t.Errorf("R %.3e after a window of marks with alpha 1, want half", d.Rate())
	}
	d.OnLoss(0, LossNAK) // the same window
	if !near(d.Rate(), 5e9, 1e-12) {
		t.Error("a loss cut the window that was just cut")
	}
	d.OnAck(&Feedback{Ack: 21_000, SndNxt: 40_000, Newly: 1000, CE: true})
	if !(d.Rate() < 2.6e9) {
		t.Errorf("R %.3e: the next window's mark did not cut", d.Rate())
	}
	if d.OnLoss(0, LossTimeout); d.Window() != 1000 {
		t.Errorf("W %.0f after a timeout, want one frame", d.Window())
	}
	d = build(t, &tenGig, "dctcp", "loss", "none").(*dctcp)
	if d.OnLoss(0, LossTimeout); d.Rate() != 10e9 {
		t.Error("loss=none answered a loss")
	}
}

// The published simulator counts marked acknowledgements against the frames
// that were in flight when the window began.
func TestDCTCPFractionOfInflight(t *testing.T) {
	d := build(t, &tenGig, "dctcp", "fraction", "inflight", "alpha0", "0").(*dctcp)
	d.OnAck(&Feedback{Ack: 1000, SndNxt: 5000, Newly: 1000, CE: true})
	if d.total != 6 || d.marked != 1 || d.alpha != 0 {
		t.Fatalf("total %.0f marked %.0f alpha %g after the first", d.total, d.marked, d.alpha)
	}
	d.OnAck(&Feedback{Ack: 2000, SndNxt: 6000, Newly: 1000, CE: true})
	d.OnAck(&Feedback{Ack: 6000, SndNxt: 10_000, Newly: 4000})
	if !near(d.alpha, 2./6/16, 1e-12) || d.total != 5 {
		t.Errorf("alpha %.6f, want %.6f; total %.0f", d.alpha, 2./6/16, d.total)
	}
}
