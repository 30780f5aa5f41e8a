package cc

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"gswitch/frame"
)

var twentyFiveGig = Env{Rate: 25e9, BaseRTT: 9 * frame.Microsecond, MTU: 1048, Payload: 1000}

func gbps(a Algorithm) float64 { return a.Rate() / 1e9 }

func TestDCQCNOriginalFollowsTheWorkedVectors(t *testing.T) {
	d := build(t, &twentyFiveGig, "dcqcn-original").(*dcqcn)
	now := frame.Time(1000)
	if d.OnCNP(now); gbps(d) != 12.5 || d.rt != 25e9 || d.alpha != 1 {
		t.Fatalf("after the first CNP %.4f Gb/s, target %.4f, alpha %.4f", gbps(d), d.rt/1e9, d.alpha)
	}
	for i, want := range []float64{18.75, 21.875, 23.4375, 24.21875, 24.609375} {
		if due := now + frame.Time(i+1)*55*frame.Microsecond; d.Timer() != due {
			t.Fatalf("stage %d is due at %d, want %d", i+1, d.Timer(), due)
		}
		if d.OnTimer(d.Timer()); gbps(d) != want {
			t.Errorf("recovery %d: %.6f Gb/s, want %.6f", i+1, gbps(d), want)
		}
	}
	// The sixth is additive: the target, at line rate, stays there.
	if d.OnTimer(d.Timer()); !near(gbps(d), (24.609375+25)/2, 1e-12) {
		t.Errorf("stage 6: %.6f", gbps(d))
	}

	// Fifty alpha periods without CNP, from alpha 1 and 25 Gb/s.
	d = build(t, &twentyFiveGig, "dcqcn-original").(*dcqcn)
	d.active, d.alphaNext = true, 55_000
	d.OnCNP(50*55_000 + 1)
	if !near(gbps(d), 14.7217, 1e-4) {
		t.Errorf("cut to %.4f Gb/s, want 14.7217", gbps(d))
	}
	if want := .82226*(255./256) + 1./256; !near(d.alpha, want, 1e-5) {
		t.Errorf("alpha %.6f, want %.6f", d.alpha, want)
	}
}

func TestDCQCNOriginalCutsOnceInTd(t *testing.T) {
	d := build(t, &twentyFiveGig, "dcqcn-original").(*dcqcn)
	d.OnCNP(0)
	for now := frame.Time(1000); now < 50_000; now += 1000 {
		d.OnCNP(now)
	}
	if gbps(d) != 12.5 {
		t.Errorf("%.4f Gb/s after 50 CNPs within T_d", gbps(d))
	}
	d.OnCNP(50_000)
	if d.rt != 12.5e9 || !near(gbps(d), 6.25, .01) {
		t.Errorf("second cut to %.4f Gb/s, target %.4f", gbps(d), d.rt/1e9)
	}
}

func TestDCQCNOriginalStages(t *testing.T) {
	// Additive when timer or byte counter is beyond F, hyper when both are.
	d := build(t, &twentyFiveGig, "dcqcn-original").(*dcqcn)
	d.OnCNP(0)
	d.rt = 10e9
	d.rc = 10e9
	for range 6 {
		d.OnTimer(d.Timer())
	}
	if d.rt != 10.04e9 {
		t.Errorf("target %.3f Gb/s after six timers, want one additive step", d.rt/1e9)
	}
	for range 5 {
		d.OnSend(0, 10_000_000)
	}
	if d.rt != 10.24e9 {
		t.Errorf("target %.3f Gb/s, want five more additive steps", d.rt/1e9)
	}
	if d.OnSend(0, 10_000_000); d.rt != 10.44e9 {
		t.Errorf("target %.3f Gb/s, want a hyper step", d.rt/1e9)
	}
	if d.OnSend(0, 9_999_999); d.rt != 10.44e9 {
		t.Error("a stage came before its byte")
	}
}

// The vendor's timers: the first CNP starts them, a cut waits for the next
// expiry, one recovery, one additive step, then hyper.
func TestDCQCNVendorTimers(t *testing.T) {
	d := build(t, &twentyFiveGig, "dcqcn").(*dcqcn)
	d.OnAck(&Feedback{Now: 10_000, CE: true})
	if gbps(d) != 25 || d.Timer() != 14_001 {
		t.Fatalf("%.3f Gb/s, timer %d: the first CNP cuts with the timer", gbps(d), d.Timer())
	}
	// alpha: four periods, none with a new CNP.
	d.OnTimer(14_001)
	alpha := math.Pow(255./256, 4)
	if !near(gbps(d), 25*(1-alpha/2), 1e-12) || d.Timer() != 314_001 {
		t.Fatalf("%.6f Gb/s, timer %d", gbps(d), d.Timer())
	}
	// Two CNPs in one alpha period count once, and the target stays: no stage was passed.
	d.OnCNP(15_000)
	d.OnCNP(15_100)
	if d.Timer() != 18_001 {
		t.Fatalf("timer %d, want the next multiple of T_d", d.Timer())
	}
	rc := d.rc
	d.OnTimer(18_001)
	alpha = math.Pow(255./256, 5)         // 15 us
	alpha = (255./256)*alpha + 1./256     // 16 us
	alpha *= (255. / 256) * (255. / 256.) // 17, 18 us
	if !near(d.rc, rc*(1-alpha/2), 1e-12) || d.rt != 25e9 {
		t.Errorf("second cut to %.6f Gb/s, want %.6f; target %.3f", gbps(d), rc*(1-alpha/2)/1e9, d.rt/1e9)
	}
	rc, d.rt = d.rc, 20e9
	for i, target := range []float64{20e9, 20.005e9, 20.055e9, 20.105e9} {
		if d.Timer() != 18_001+frame.Time(i+1)*300_000 {
			t.Fatalf("stage %d at %d", i+1, d.Timer())
		}
		d.OnTimer(d.Timer())
		rc = (rc + target) / 2
		if d.rt != target || !near(d.rc, rc, 1e-12) {
			t.Errorf("stage %d: target %.4f rate %.4f, want %.4f and %.4f", i+1, d.rt/1e9, gbps(d), target/1e9, rc/1e9)
		}
	}
	// A cut after a stage makes the rate the target. The free-running timer kept its phase.
	now := d.incNext - 299_000
	d.OnCNP(now)
	if at := d.Timer(); at <= now || at > now+4000 || (at-14_001)%4000 != 0 {
		t.Errorf("cut at %d after a CNP at %d", at, now)
	}
	rc = d.rc
	if d.OnTimer(d.Timer()); d.rt != rc {
		t.Errorf("target %.3f, want the rate before, %.3f", d.rt/1e9, rc/1e9)
	}
}

func TestDCQCNClamp(t *testing.T) {
	d := build(t, &twentyFiveGig, "dcqcn", "clamp", "true").(*dcqcn)
	d.OnCNP(0)
	d.OnTimer(4001)
	rc := d.rc
	d.OnCNP(5000)
	if d.OnTimer(8001); d.rt != rc {
		t.Errorf("with clamp the target is %.3f, want %.3f", d.rt/1e9, rc/1e9)
	}
}

func TestDCQCNWhatCounts(t *testing.T) {
	for option, want := range map[string][2]bool{"any": {true, true}, "frame": {true, false}, "ack": {false, true}} {
		d := build(t, &twentyFiveGig, "dcqcn", "cnp", option).(*dcqcn)
		d.OnCNP(0)
		frames := d.active
		d.Reset(&twentyFiveGig)
		d.OnAck(&Feedback{CE: true})
		if frames != want[0] || d.active != want[1] {
			t.Errorf("cnp=%s: frames count %v, marks %v", option, frames, d.active)
		}
	}
}

// Back at line rate nothing is pending: idle queue pairs cost no timer.
func TestDCQCNEndsItsTimers(t *testing.T) {
	for _, name := range []string{"dcqcn", "dcqcn-original", "dcqcn+win"} {
		d := build(t, &twentyFiveGig, name).(*dcqcn)
		if d.Timer() != frame.Never {
			t.Errorf("%s: a timer before any CNP", name)
		}
		d.OnCNP(0)
		n := 0
		for ; d.Timer() != frame.Never; n++ {
			if n > 1000 {
				t.Fatalf("%s: %.6f Gb/s after %d expiries", name, gbps(d), n)
			}
			d.OnTimer(d.Timer())
		}
		if d.Rate() != 25e9 {
			t.Errorf("%s: ended at %.6f Gb/s", name, gbps(d))
		}
		d.OnTimer(frame.Never - 1) // late calls do nothing
		d.OnCNP(frame.Second)
		if d.Timer() == frame.Never {
			t.Errorf("%s: the next CNP starts no timer", name)
		}
	}
}

// Alpha in closed form is alpha period by period.
func TestDCQCNAlphaIsThatOfEachPeriod(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := build(t, &twentyFiveGig, "dcqcn").(*dcqcn)
		d.OnCNP(0)
		alpha, next, seen, now := 1.0, frame.Time(1000), false, frame.Time(0)
		for _, gap := range rapid.SliceOfN(rapid.Int64Range(0, 50_000), 1, 40).Draw(rt, "gaps") {
			now += frame.Time(gap)
			for ; next <= now; next += 1000 {
				if alpha *= 255. / 256; seen {
					alpha += 1. / 256
				}
				seen = false
			}
			d.age(now)
			if !near(d.alpha, alpha, 1e-12) {
				rt.Fatalf("at %d: alpha %.15f, want %.15f", now, d.alpha, alpha)
			}
			d.marked, seen = true, true
		}
	})
}
