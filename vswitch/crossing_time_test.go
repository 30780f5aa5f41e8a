package vswitch_test

import (
	"testing"

	crossbar "gswitch/crossbar/point"
	"gswitch/frame"
	"gswitch/vswitch"
	wt "gswitch/wire/wiretest"
)

// A frame takes as long to cross as its bytes and the overhead of the link at
// the rate of the crossbar, also where only one port has an overhead.
func TestCrossingTime(t *testing.T) {
	cfg := bridge(3, 1e9)
	cfg.Options = cfg.Options.With(crossbar.Name, crossbar.Config{SkipBlocked: true, Speedup: 1})
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

// What waits of a low class leaves a high one as much room again in the egress
// queue, if nothing else is said.
func TestEgressReserve(t *testing.T) {
	cfg := bridge(3, 1e9)
	cfg.Options = cfg.Options.With(crossbar.Name, crossbar.Config{SkipBlocked: true, Egress: 6000})
	for i := range cfg.Ports {
		cfg.Ports[i].Trust = vswitch.TrustDSCP
	}
	d := newDevice(t, cfg, 1, 256)
	defer d.close(3)
	in := func(class uint8) {
		b := wt.Frame(wt.Eth(host(2), host(1)), wt.IPv4("10.0.0.1", "10.0.0.2", wt.TOS(class<<5)), wt.UDP(1, 2), wt.Zeros(1500-42))
		for range 6 {
			d.receive(0, b)
		}
		d.advance(100 * frame.Microsecond)
	}
	d.receive(1, wt.PFC(host(9), 0xff, 0xffff))
	for _, c := range []struct {
		class uint8
		bytes uint64
	}{{1, 6000}, {5, 12000}} {
		in(c.class)
		if _, bytes := d.node(1).Scheduler(1).Backlog(); bytes != c.bytes {
			t.Errorf("with class %d the egress queue holds %d bytes, want %d", c.class, bytes, c.bytes)
		}
	}
}
