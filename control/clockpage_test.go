package control

import (
	"testing"

	"golang.org/x/sys/unix"

	"gswitch/clocksync"
	"gswitch/clocktime"
	"gswitch/dataplane"
	"gswitch/feature"
)

// Programs call the states of a clock what the clock calls them.
func TestStatesOfClockPages(t *testing.T) {
	for s := clocksync.Unsynced; s <= clocksync.Evicted; s++ {
		if a, b := s.String(), clocktime.State(s).String(); a != b {
			t.Errorf("state %d is %q to the clock and %q in pages", s, a, b)
		}
	}
}

type fixed struct{ feature.Time }

func (k fixed) Tell(now int64) feature.Time {
	k.Time.Time += now
	return k.Time
}

// A page says of an instant of the machine what the clock says of the same instant of
// the nodes, and adds to its uncertainty by how much the two may differ.
func TestImageOfClock(t *testing.T) {
	e, err := dataplane.New(dataplane.Config{Chunks: 64})
	if err != nil {
		t.Fatal(err)
	}
	var before, behind unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &before); err != nil {
		t.Fatal(err)
	}
	now := e.Now()
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &behind); err != nil {
		t.Fatal(err)
	}
	m := image(e, fixed{feature.Time{Time: 100, Eps: 3, Drift: 9, State: 2, Epoch: 4, Root: 5}}, now)
	if m.At < before.Nano() || m.At > behind.Nano() {
		t.Errorf("now is %d, from %d to %d", m.At, before.Nano(), behind.Nano())
	}
	_, within := e.Monotonic(now)
	if want := (clocktime.Image{At: m.At, Time: int64(now) + 100, Eps: 3 + within, Drift: 9, State: clocktime.Backup, Epoch: 4, Root: 5}); m != want || within <= 0 {
		t.Errorf("%+v, want %+v", m, want)
	}
	if m = image(e, fixed{feature.Time{Eps: -1}}, now); m.Eps != -1 {
		t.Errorf("a clock that was never set is uncertain by %d", m.Eps)
	}
}
