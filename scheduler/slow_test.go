package scheduler

import (
	"testing"

	"gswitch/frame"
)

// TestSlow: a queue in stage k has the rate of the link divided by 2^k, and the
// others of its port are not slowed.
func TestSlow(t *testing.T) {
	for stage := uint8(0); stage <= 15; stage++ {
		g := newRig(t, PortConfig{Rate: 10e9, Overhead: EthernetOverhead})
		g.p.Slow(3, stage)
		for range 20 {
			g.put(0, 3, 976)
		}
		span := frame.Time(800) << stage // 1000 bytes at 10 Gb/s
		v := g.run(0, 20*(span+1))
		if len(v) != 20 {
			t.Fatalf("stage %d: %d frames left", stage, len(v))
		}
		for i, m := range v[1:] {
			if gap := m.Depart - v[i].Depart; gap < span || gap > span+1 {
				t.Fatalf("stage %d: frame %d came %d ns behind the last one, want %d", stage, i+1, gap, span)
			}
		}
	}
	g := newRig(t, PortConfig{Rate: 10e9, Overhead: EthernetOverhead})
	g.p.Slow(3, 2)
	for range 10 {
		g.put(0, 3, 976)
		g.put(0, 2, 976)
		g.put(0, 2, 976)
		g.put(0, 2, 976)
	}
	last := -frame.Time(3200)
	for i, m := range g.run(0, 30*800) {
		if m.Depart != frame.Time(i)*800 {
			t.Fatalf("the link rests: frame %d left at %d", i, m.Depart)
		}
		if m.Queue == 3 {
			if gap := m.Depart - last; gap < 3200 || gap > 3200+800 {
				t.Fatalf("frame %d of the slowed queue came %d ns behind the last one", i, gap)
			}
			last = m.Depart
		}
	}
}

// TestSlowChanges: what is left of a gap is of the new rate, a queue that is no
// longer slowed sends at once, and a pause holds beside it.
func TestSlowChanges(t *testing.T) {
	g := newRig(t, PortConfig{Rate: 8e9}) // a byte is a nanosecond
	for range 8 {
		g.put(0, 3, 1000)
	}
	departs := func(now, end frame.Time) (v []frame.Time) {
		for _, m := range g.run(now, end) {
			v = append(v, m.Depart)
		}
		return v
	}
	expect := func(got []frame.Time, want ...frame.Time) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("left at %v, want %v", got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("left at %v, want %v", got, want)
			}
		}
	}
	g.p.Slow(3, 3)
	expect(departs(0, 5000), 0)
	g.p.Slow(3, 4) // 16000 behind it in place of 8000
	expect(departs(5000, 15_999))
	g.p.Slow(3, 1)
	expect(departs(15_999, 16_500), 15_999)
	g.p.Slow(3, 5)
	g.p.Slow(3, 0)
	expect(departs(16_999, 18_000), 16_999, 17_999)
	g.p.Slow(3, 1)
	g.p.Pause(3, 30_000)
	expect(departs(18_999, 33_000), 30_000, 32_001)
	if g.p.Paused(29_000) != 1<<3 || g.p.Paused(31_000) != 0 {
		t.Error("a queue that is slowed counts as paused")
	}
}

func TestSlowAllocations(t *testing.T) {
	g := newRig(t, PortConfig{Rate: 8e9})
	now, stage := frame.Time(0), uint8(0)
	if n := testing.AllocsPerRun(100, func() {
		stage++
		g.p.Slow(3, stage%4)
		g.put(now, 3, 1000)
		for range g.p.Dequeue(now, g.out[:]) {
			g.pool.Free(g.out[0])
		}
		now += 10_000
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
