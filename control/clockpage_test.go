package control

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

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

func (k fixed) ReadTime(now int64) feature.Time {
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
	m := image(e, feature.Time{Time: int64(now) + 100, Eps: 3, Drift: 9, State: 2, Epoch: 4, Root: 5}, now)
	if m.At < before.Nano() || m.At > behind.Nano() {
		t.Errorf("now is %d, from %d to %d", m.At, before.Nano(), behind.Nano())
	}
	_, within := e.Monotonic(now)
	if want := (clocktime.Image{At: m.At, Time: int64(now) + 100, Eps: 3 + within, Drift: 9, State: clocktime.Backup, Epoch: 4, Root: 5}); m != want || within <= 0 {
		t.Errorf("%+v, want %+v", m, want)
	}
	if m = image(e, feature.Time{Eps: -1}, now); m.Eps != -1 {
		t.Errorf("a clock that was never set is uncertain by %d", m.Eps)
	}
}

// The log has a line about a second root at once, and each minute for as long as there is
// one, however often that says so.
func TestLogReportsSecondRoots(t *testing.T) {
	var out bytes.Buffer
	log, r := slog.New(slog.NewTextHandler(&out, nil)), rival{}
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	lines := func(seconds int, messages uint64) int {
		r.look(log, "s1.clock", begin.Add(time.Duration(seconds)*time.Second), &feature.Time{Root: 1, SecondRoots: messages, Rival: 0xabc})
		return strings.Count(out.String(), "\n")
	}
	for i, k := range []struct {
		second   int
		messages uint64
		lines    int
	}{{0, 0, 0}, {1, 1, 1}, {2, 900, 1}, {60, 901, 1}, {61, 902, 2}, {200, 902, 2}, {201, 903, 3}} {
		if n := lines(k.second, k.messages); n != k.lines {
			t.Errorf("%d: %d lines, want %d", i, n, k.lines)
		}
	}
	if s := out.String(); !strings.Contains(s, "page=s1.clock root=0000000000000001 other=0000000000000abc messages=1") {
		t.Error(s)
	}
}
