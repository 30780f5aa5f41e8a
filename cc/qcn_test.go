package cc

import (
	"testing"

	"gswitch/frame"
)

// A transcript of the reaction point at a NIC of 10 Gb/s with the standard's
// values, worked out by hand from IEEE 802.1Qau, clause 32.
func TestQCNTranscript(t *testing.T) {
	env := Env{Rate: 10e9, BaseRTT: 10 * frame.Microsecond, MTU: 1048, Payload: 1000}
	q := build(t, &env, "qcn").(*qcn)
	const ms = frame.Millisecond
	now := frame.Time(0)
	notice := func(fb uint8) func() { return func() { q.OnQuantized(now, fb) } }
	send := func(bytes uint32) func() { return func() { q.OnSend(now, bytes) } }
	wait := func(d frame.Time) func() { return func() { now += d; q.OnTimer(now) } }
	for i, s := range []struct {
		do     func()
		rc, rt float64 // Mb/s
		bytes  int
		time   int
	}{
		{send(1_000_000), 10000, 10000, 0, 0},  // without a limiter nothing counts
		{notice(64 / 4), 8750, 10000, 0, 0},    // 16/128 less
		{notice(63), 4443.359375, 10000, 0, 0}, // 65/128 of it; the target stays
		{notice(63), 2256.393433, 10000, 0, 0},
		{send(149_999), 2256.393433, 10000, 0, 0},
		{send(1), 6128.196716, 10000, 1, 0}, // fast recovery
		{notice(1), 6080.320180, 6128.196716, 0, 0},
		{send(450_000), 6122.212150, 6128.196716, 3, 0},
		{wait(15 * ms), 6125.204433, 6128.196716, 3, 1},
		{send(300_000), 6127.448646, 6128.196716, 5, 1},
		{send(75_000), 6130.322681, 6133.196716, 6, 1},    // active increase, and half the bytes to a stage
		{wait(60 * ms), 6148.329589, 6153.196716, 6, 5},   // four more times
		{wait(7_500_000), 6175.763152, 6203.196716, 6, 6}, // half the time, and hyper increase
	} {
		s.do()
		if !near(q.rc, s.rc*1e6, 1e-6) || !near(q.rt, s.rt*1e6, 1e-6) || q.byBytes != s.bytes || q.byTime != s.time {
			t.Errorf("step %d: rate %.6f, target %.6f Mb/s, stages %d and %d; want %.6f, %.6f, %d and %d", i, q.rc/1e6, q.rt/1e6, q.byBytes, q.byTime, s.rc, s.rt, s.bytes, s.time)
		}
	}
}

// After a long congestion the target, which may be far above, is cut at the
// end of the first stage; and a limiter that is back at line rate is none.
func TestQCNTargetAndEnd(t *testing.T) {
	env := Env{Rate: 10e9, BaseRTT: 10 * frame.Microsecond, MTU: 1048, Payload: 1000}
	q := build(t, &env, "qcn").(*qcn)
	for range 5 {
		q.OnQuantized(0, 63)
	}
	low := q.Rate()
	q.OnSend(0, 150_000)
	if q.rt != 10e9/8 || !near(q.rc, (low+10e9/8)/2, 1e-9) {
		t.Errorf("rate %v, target %v", q.rc, q.rt)
	}
	for range 200 {
		q.OnQuantized(0, 63)
	}
	if q.Rate() != 10e6 {
		t.Errorf("the least rate is %v", q.Rate())
	}
	now := frame.Time(0)
	for q.limited && now < 100*frame.Second {
		now = q.Timer()
		q.OnTimer(now)
		q.OnSend(now, 1_000_000)
	}
	if q.Rate() != 10e9 || q.Timer() != frame.Never {
		t.Errorf("after %v ms: rate %v, timer %v", now/frame.Millisecond, q.Rate(), q.Timer())
	}
}
