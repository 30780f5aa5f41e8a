package cc

import (
	"testing"

	"gswitch/frame"
)

func TestALossChangesNoRateWithoutBackoff(t *testing.T) {
	for _, name := range []string{"timely", "dcqcn", "dcqcn-original"} {
		a := build(t, &tenGig, name)
		a.OnLoss(0, LossNAK)
		if a.OnLoss(1000, LossTimeout); a.Rate() != 10e9 {
			t.Errorf("%s: %.0f bit/s after two losses at line rate", name, a.Rate())
		}
	}
}

func TestEachLossTakesItsShareOfTheRate(t *testing.T) {
	for _, name := range []string{"timely", "dcqcn", "dcqcn-original"} {
		a := build(t, &tenGig, name, "backoff", "0.4")
		if a.OnLoss(0, LossNAK); !near(a.Rate(), 6e9, 1e-9) {
			t.Errorf("%s: %.0f bit/s after a loss at line rate, want 6e9", name, a.Rate())
		}
		if a.OnLoss(1000, LossTimeout); !near(a.Rate(), 3.6e9, 1e-9) {
			t.Errorf("%s: %.0f bit/s after a timeout, want 3.6e9", name, a.Rate())
		}
		for i := range frame.Time(1000) {
			a.OnLoss(2000+i, LossNAK)
		}
		if a.Rate() <= 0 {
			t.Errorf("%s: a rate of %.0f bit/s after a thousand losses", name, a.Rate())
		}
	}
}

// What a loss took DCQCN gives back by its timer, towards the rate before it.
func TestDCQCNRecoversFromALoss(t *testing.T) {
	d := build(t, &tenGig, "dcqcn-original", "backoff", "0.5").(*dcqcn)
	d.OnLoss(0, LossNAK)
	if d.rt != 10e9 || d.Timer() != 55*frame.Microsecond {
		t.Fatalf("target %.0f bit/s, due at %d", d.rt, d.Timer())
	}
	if d.OnTimer(d.Timer()); gbps(d) != 7.5 {
		t.Errorf("%.3f Gb/s after one stage of recovery, want 7.5", gbps(d))
	}
}

// A loss ends the negative gradients in a row that TIMELY needs to grow faster.
func TestALossEndsTheHyperactiveIncrease(t *testing.T) {
	a := timelyAt(t, "1000", "backoff", "0.5")
	a.rates(200, 195, 190, 185, 180, 175, 170)
	before := a.Rate()
	if a.OnLoss(0, LossNAK); a.Rate() != before/2 {
		t.Fatalf("%.0f bit/s after a loss at %.0f", a.Rate(), before)
	}
	if got := a.rates(165)[0]; !near(got, before/2e6+10, 1e-9) {
		t.Errorf("%.3f Mb/s after the next round trip, want one step of 10 Mb/s from %.3f", got, before/2e6)
	}
}
