package vswitch_test

import (
	"testing"

	"gswitch/frame"
	"gswitch/vswitch"
)

// A frame takes as long to cross as its bytes and the overhead of the link at
// the rate of the crossbar, also where only one port has an overhead.
func TestCrossingTime(t *testing.T) {
	cfg := bridge(3, 1e9)
	cfg.Crossbar = vswitch.CrossbarConfig{On: true, SkipBlocked: true, Speedup: 1}
	cfg.Ports[2].Scheduler.Overhead = 0
	d := newDevice(t, cfg, 1, 256)
	defer d.close(3)
	d.receive(0, roce(1, 2, 1, 1476)) // 1500 with its overhead: 12 us
	waits := func() int {
		k, _ := d.node(1).Scheduler(1).Backlog()
		return k
	}
	if due := d.node(1).TimerWake(d.now); due != d.now+12*frame.Microsecond {
		t.Errorf("the frame is to cross within %v", (due - d.now).Duration())
	}
	if d.advance(12*frame.Microsecond - 1); waits() != 0 {
		t.Error("the frame has crossed too early")
	}
	if d.advance(1); waits() != 1 {
		t.Error("the frame has not crossed in its time")
	}
}
