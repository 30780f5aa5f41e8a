package clocksync

import (
	"testing"

	"gswitch/frame"
)

// Frames that come later and later, each by no more than a hop explains beside the one
// before, as on a busy machine: the clock does not follow them beyond its bound, and is as
// certain as ever once they come in time again.
func TestLateFramesWidenTheBound(t *testing.T) {
	const ms, hop = frame.Millisecond, 20 * us
	for _, creep := range []frame.Time{0, 10 * us, 15 * us, 20 * us} {
		d := NewDevice(7)
		c := Config{Accept: 0, Backup: NoPort, EpsBase: hop, EpsBackup: hop, Hop: hop, Interval: 10 * ms, Timeout1: 20*ms + 600*us}
		if err := d.Configure(0, c); err != nil {
			t.Fatal(err)
		}
		d.Delay(0).Fix(0)
		for i := range frame.Time(60) {
			late := frame.Time(0)
			if i >= 20 && i < 30 {
				late = (i - 19) * creep
			}
			sent := i * 10 * ms
			now := sent + late
			d.Advance(now)
			d.Sync(now, now, 0, Message{Time: sent, Root: 1})
			if err, eps := now-d.At(now), d.Uncertainty(now); err > eps || -err > eps {
				t.Errorf("message %d, %d us late, each %d us more: %d ns wrong, and says %d", i, late/us, creep/us, err, eps)
			}
			if m := d.Out(now); late == 0 && d.Uncertainty(now) == hop && m.Late != 0 {
				t.Errorf("message %d: those below get %d ns", i, m.Late)
			}
		}
		if now := 590 * ms; d.At(now) != now || d.Uncertainty(now) != hop {
			t.Errorf("each %d us more: in the end %d ns wrong, and says %d", creep/us, d.At(now)-now, d.Uncertainty(now))
		}
	}
}

// A message that comes late says so to those below, and it counts for as long as one that
// was in time is remembered.
func TestLateMessagesCount(t *testing.T) {
	const ms, hop = frame.Millisecond, 20 * us
	var h recent
	var c Clock
	c.drift = Drift
	m := Message{Root: 1}
	behind := func(i, late frame.Time) frame.Time {
		return h.behind(i*10*ms+late, i*10*ms, 0, &m, hop, &c)
	}
	if got := behind(0, 0); got != 0 {
		t.Errorf("the first is %d late", got)
	}
	for i := range frame.Time(recentMessages) {
		if got := behind(i+1, 100*us); got != 100*us {
			t.Errorf("%d messages later: %d", i+1, got)
		}
	}
	if got := behind(recentMessages+1, 100*us); got != 0 {
		t.Errorf("%d, beside others that are as late", got)
	}
	// No device is late beside those of another root.
	behind(recentMessages+2, 0)
	m.Root = 2
	if got := behind(recentMessages+3, 100*us); got != 0 {
		t.Errorf("%d beside another root", got)
	}
}
