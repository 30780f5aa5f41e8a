package cc

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"gswitch/frame"
)

// A transcript of two congestion points, and of a time without notices, at a NIC of 40 Gb/s.
func TestRoCCTranscript(t *testing.T) {
	env := Env{Rate: 40e9, BaseRTT: 10 * frame.Microsecond, MTU: 1048, Payload: 1000}
	r := build(t, &env, "rocc").(*rocc)
	const a, b = 1, 2
	us := frame.Microsecond
	notice := func(at frame.Time, point uint64, rate float64) func() (frame.Time, string) {
		return func() (frame.Time, string) {
			r.OnFairRate(at*us, point, uint32(at), rate*1e6, 40*us)
			return at, "notice"
		}
	}
	wait := func(at frame.Time) func() (frame.Time, string) {
		return func() (frame.Time, string) {
			if r.Timer() != at*us {
				t.Errorf("the timer is at %d us, want %d", r.Timer()/us, at)
			}
			r.OnTimer(at * us)
			return at, "timer"
		}
	}
	for _, s := range []struct {
		do    func() (frame.Time, string)
		rate  float64 // of the limiter, Mb/s
		point uint64
	}{
		{notice(0, a, 4000), 4000, a},
		{notice(40, a, 4100), 4100, a},  // the same point may raise it
		{notice(50, b, 9000), 4100, a},  // another one not
		{notice(60, b, 3000), 3000, b},  // but lower it
		{notice(80, a, 4200), 3000, b},  //
		{notice(120, a, 3000), 3000, a}, // an equal rate is taken
		{notice(130, b, 9000), 3000, a}, // what is not followed does not put recovery off
		{wait(520), 6000, a},            // 400 us after the last one that was followed
		{wait(920), 12000, a},           //
		{wait(1320), 24000, a},          //
		{notice(1400, b, 10000), 10000, b},
		{wait(1800), 20000, b},
		{wait(2200), 40000, b}, // the line rate is not above itself
		{wait(2600), 80000, b},
	} {
		at, what := s.do()
		if !near(r.rate, s.rate*1e6, 1e-9) || r.point != s.point || !r.limited {
			t.Errorf("at %d us (%s): %.0f Mb/s by point %d, want %.0f by %d", at, what, r.rate/1e6, r.point, s.rate, s.point)
		}
		if r.Rate() > env.Rate {
			t.Errorf("at %d us it would send at %.0f Mb/s", at, r.Rate()/1e6)
		}
	}
	if wait(3000)(); r.limited || r.Rate() != env.Rate || r.Timer() != frame.Never {
		t.Errorf("the limiter stays: %+v", r)
	}
}

// A switch port faster than the NIC sends rates that limit nothing.
func TestRoCCFasterSwitch(t *testing.T) {
	env := Env{Rate: 40e9, BaseRTT: 10 * frame.Microsecond, MTU: 1048, Payload: 1000}
	r := build(t, &env, "rocc", "window", "rate").(*rocc)
	if r.OnFairRate(0, 3, 1, 100e9, 40_000); r.limited || r.Timer() != frame.Never {
		t.Error("a rate above the line rate installs a limiter")
	}
	if r.OnFairRate(1000, 3, 2, 20e9, 40_000); r.Rate() != 20e9 || r.Window() != 25_000 {
		t.Errorf("rate %.0f, window %.0f", r.Rate(), r.Window())
	}
	if r.OnFairRate(2000, 3, 3, 100e9, 40_000); !r.limited || r.Rate() != 40e9 {
		t.Errorf("the point that is followed raises it to %.0f", r.Rate())
	}
	if r.OnTimer(r.Timer()); r.limited {
		t.Error("the limiter stays at the next expiry")
	}
}

// However late the timer is looked at, the rate is what it would be.
func TestRoCCLateTimer(t *testing.T) {
	env := Env{Rate: 40e9, BaseRTT: 10 * frame.Microsecond, MTU: 1048, Payload: 1000}
	r := build(t, &env, "rocc").(*rocc)
	r.OnFairRate(0, 1, 1, 1e9, 40_000)
	if r.OnTimer(1250 * frame.Microsecond); r.rate != 8e9 || r.Timer() != 1600*frame.Microsecond {
		t.Errorf("after three periods without notices %.0f bit/s, timer %d", r.rate, r.Timer())
	}
	r.OnFairRate(1700*frame.Microsecond, 2, 1, 12e9, 40_000) // by now 16 Gb/s: followed
	if r.point != 2 || r.rate != 12e9 {
		t.Errorf("point %d, %.0f bit/s", r.point, r.rate)
	}
}

// What the point that is followed sent before, and comes late or again, changes
// nothing and does not put off the recovery; a point that counts from the start
// again is followed.
func TestRoCCStaleNotices(t *testing.T) {
	env := Env{Rate: 40e9, BaseRTT: 10 * frame.Microsecond, MTU: 1048, Payload: 1000}
	r := build(t, &env, "rocc").(*rocc)
	for i, v := range []struct {
		point  uint64
		update uint32
		rate   float64
		want   float64
	}{
		{1, 100, 5e9, 5e9},
		{1, 99, 1e9, 5e9},  // overtaken
		{1, 69, 9e9, 5e9},  // long ago
		{1, 101, 6e9, 6e9}, // the next one
		{1, 101, 6e9, 6e9}, // to another flow with the same ports
		{1, 1, 7e9, 7e9},   // the switch has started again
		{1, 1<<32 - 5, 2e9, 7e9},
		{2, 100, 3e9, 3e9},
		{2, 1<<32 - 1, 4e9, 4e9},
		{2, 3, 5e9, 5e9}, // the number has come round
	} {
		now := frame.Time(i) * frame.Microsecond
		due := r.Timer()
		r.OnFairRate(now, v.point, v.update, v.rate, 40_000)
		if r.rate != v.want {
			t.Errorf("step %d: %.0f bit/s, want %.0f", i, r.rate, v.want)
		}
		if taken := v.rate == v.want; !taken && r.Timer() != due {
			t.Errorf("step %d: the timer moved from %d to %d", i, due, r.Timer())
		}
	}
}

// Whatever is sent, and when: a sender never has more than what it just received
// in a notice, and without notices at most doubles in each time of recovery; two that
// receive the same have the same.
func TestRoCCProperties(t *testing.T) {
	env := Env{Rate: 40e9, BaseRTT: 10 * frame.Microsecond, MTU: 1048, Payload: 1000}
	rapid.Check(t, func(rt *rapid.T) {
		r, twin := build(t, &env, "rocc").(*rocc), build(t, &env, "rocc").(*rocc)
		twin.OnFairRate(0, 9, 1, 7e9, 40_000) // it has a past
		first := rapid.Float64Range(1e8, 7e9).Draw(rt, "first")
		r.OnFairRate(0, 1, 1, first, 40_000)
		twin.OnFairRate(0, 1, 1, first, 40_000)
		now, update, last := frame.Time(0), uint32(1), r.Rate()
		for range rapid.IntRange(1, 60).Draw(rt, "events") {
			gap := rapid.Int64Range(0, 1_500_000).Draw(rt, "gap")
			now += frame.Time(gap)
			update++
			for _, s := range []*rocc{r, twin} {
				if s.Timer() <= now {
					s.OnTimer(now)
				}
			}
			if most := last * math.Pow(2, math.Ceil(float64(gap)/400e3)); r.Rate() > most {
				rt.Fatalf("from %.0f to %.0f bit/s in %d ns without notices", last, r.Rate(), gap)
			}
			point, notified := uint64(rapid.IntRange(1, 3).Draw(rt, "point")), rapid.Float64Range(1e8, 60e9).Draw(rt, "rate")
			r.OnFairRate(now, point, update, notified, 40_000)
			twin.OnFairRate(now, point, update, notified, 40_000)
			if r.Rate() > notified {
				rt.Fatalf("%.0f bit/s when %.0f are fair", r.Rate(), notified)
			}
			if r.Rate() != twin.Rate() || r.Timer() != twin.Timer() {
				rt.Fatalf("two that received the same have %.0f and %.0f bit/s", r.Rate(), twin.Rate())
			}
			last = r.Rate()
		}
	})
}

// The time without notices after which a rate doubles is ten periods of the point that is
// followed, unless it is configured.
func TestRoCCRecoveryFollowsThePeriod(t *testing.T) {
	env := Env{Rate: 100e6, BaseRTT: 10 * frame.Microsecond, MTU: 1048, Payload: 1000}
	const us, ms = frame.Microsecond, frame.Millisecond
	for _, c := range []struct {
		options []string
		period  frame.Time
		want    frame.Time
	}{
		{nil, 40 * us, 400 * us},
		{nil, 0, 400 * us},
		{nil, -1, 400 * us},
		{nil, 20 * us, 400 * us},
		{nil, 16 * ms, 160 * ms},
		{nil, 1 << 62, 10 * mostPeriod},
		{[]string{"recovery", "1ms"}, 16 * ms, 1 * ms},
		{[]string{"recovery", "1ms"}, 40 * us, 1 * ms},
	} {
		r := build(t, &env, "rocc", c.options...).(*rocc)
		if r.OnFairRate(7, 1, 1, 1e6, c.period); r.Timer() != 7+c.want {
			t.Errorf("%v, period %d: doubles after %d ns, want %d", c.options, c.period, r.Timer()-7, c.want)
		}
		due := r.Timer()
		if r.OnTimer(due); r.rate != 2e6 || r.Timer() != due+c.want {
			t.Errorf("%v, period %d: %.0f bit/s, again after %d ns", c.options, c.period, r.rate, r.Timer()-due)
		}
	}
	// That of a point that is not followed does not count; that of the next one does.
	r := build(t, &env, "rocc").(*rocc)
	r.OnFairRate(0, 1, 1, 1e6, 16*ms)
	if r.OnFairRate(0, 2, 1, 2e6, 40*us); r.Timer() != 160*ms {
		t.Errorf("a point that is not followed moved the timer to %d", r.Timer())
	}
	if r.OnFairRate(0, 2, 2, 5e5, 40*us); r.Timer() != 400*us {
		t.Errorf("under the next point the timer is at %d", r.Timer())
	}
}

// Whatever jumps of the number and periods are sent, and in whatever order:
// the timer is never shorter than ten periods of the point that is followed, nor longer
// than ten of the longest.
func TestRoCCRecoveryProperties(t *testing.T) {
	env := Env{Rate: 10e9, BaseRTT: 10 * frame.Microsecond, MTU: 1048, Payload: 1000}
	const longest = 10240 * frame.Microsecond // of a port of 10 Gb/s / 64
	rapid.Check(t, func(rt *rapid.T) {
		r := build(t, &env, "rocc").(*rocc)
		periods := [3]frame.Time{}
		for i := range periods {
			periods[i] = frame.Time(rapid.Int64Range(20_000, int64(2*longest)).Draw(rt, "period"))
		}
		now := frame.Time(0)
		for range rapid.IntRange(1, 60).Draw(rt, "events") {
			now += frame.Time(rapid.Int64Range(0, 1e9).Draw(rt, "gap"))
			point, before := rapid.IntRange(0, 2).Draw(rt, "point"), r.accepted
			r.OnFairRate(now, uint64(point), rapid.Uint32().Draw(rt, "update"), rapid.Float64Range(1e6, 12e9).Draw(rt, "rate"), periods[point])
			if r.accepted == before {
				continue
			}
			if wait := r.Timer() - now; wait < 10*min(periods[point], longest) || wait > 10*longest {
				rt.Fatalf("the rate doubles after %d ns, the period is %d", wait, periods[point])
			}
		}
	})
}

// Notices that cannot be meant, however often they come, leave a sender a rate
// at which it goes on, and when they end it is soon back at its link's.
func TestRoCCForgedNotices(t *testing.T) {
	for _, line := range []float64{10e6, 100e6, 1e9, 100e9} {
		env := Env{Rate: line, BaseRTT: 10 * frame.Microsecond, MTU: 1048, Payload: 1000}
		r := build(t, &env, "rocc").(*rocc)
		now := frame.Time(0)
		for i := range uint32(100) {
			now += 7 * frame.Millisecond
			r.OnFairRate(now, uint64(i%5), i, 1, 40*frame.Microsecond<<15)
			if r.Rate() < line/10_000 {
				t.Fatalf("at %g bit/s a notice leaves %g bit/s", line, r.Rate())
			}
		}
		notified := now
		for r.limited {
			now = r.Timer()
			r.OnTimer(now)
		}
		// Fifteen doublings.
		if most := 15 * 2 * frame.Second; now-notified > most || line >= 100e9 && now-notified > 500*frame.Millisecond {
			t.Errorf("at %g bit/s it is held back for %v", line, (now - notified).Duration())
		}
	}
}
