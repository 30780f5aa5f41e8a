package ordinary

import (
	"net/netip"
	"testing"

	"gswitch/clocksync"
	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/wire"
)

// Messages for which there is no memory are counted, with the clock and with the host.
func TestWithoutMemory(t *testing.T) {
	o := clocksync.Options{Config: clocksync.Config{Epoch: 1, Interval: clocksync.DefaultInterval, Timeout1: clocksync.DefaultTimeout1, EpsBase: 10, EpsBackup: 30}, Domain: clocksync.DefaultDomain}
	pool := frame.NewPool(frame.MustArena(16, 2048, frame.DefaultHeadroom))
	n, err := hostnic.New(&hostnic.Config{Name: "h", MAC: wire.MAC{2, 0, 0, 0, 0, 1}, Addr: netip.MustParseAddr("10.0.0.1"), Rate: 10e9, Overhead: 24, Payload: 1000,
		AckClass: -1, AckPauseClass: -1, Options: hostnic.Options{}.With(Name, o)}, pool)
	if err != nil {
		t.Fatal(err)
	}
	n.SetLink(0, 0, true)
	pool.FailAt([]frame.Misses{{First: pool.Asked() + 1, N: 1 << 40}})
	n.Advance(frame.Millisecond)
	if unsent, missing := Of(n).Messages.Unsent, n.Counts().Drops[frame.ArenaExhausted]; unsent == 0 || missing != unsent {
		t.Errorf("%d messages were not sent, %d frames are missing", unsent, missing)
	}
	pool.FailAt(nil)
	n.Advance(2 * o.Interval)
	if unsent := Of(n).Messages.Unsent; unsent != n.Counts().Drops[frame.ArenaExhausted] || pool.Failed() != unsent {
		t.Errorf("%d messages were not sent, and %d allocations failed", unsent, pool.Failed())
	}
}
