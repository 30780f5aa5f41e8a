package vswitch_test

import (
	"bytes"
	"testing"

	"gswitch/frame"
	"gswitch/vswitch"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// While the watchdog drains a queue, a frame that has escaped from a neighbour's
// queue is dropped like any other for it, and takes no place.
func TestWatchdogDropsWhatEscaped(t *testing.T) {
	cfg := bridge(3, 10e9)
	cfg.Class.Queue[6] = 7
	cfg.Escape = vswitch.EscapeConfig{On: true, Queue: 6}
	cfg.PFC.Watchdog.Detect = 100 * frame.Microsecond
	for i := range cfg.Ports {
		cfg.Ports[i].Escape = i > 0
	}
	d := newDevice(t, cfg, 1, 256)
	defer d.close(3)
	data := roce(3, 2, 1, 500)
	escaped := append(append(bytes.Clone(data[:12]), byte(wire.EtherTypeEscape>>8), byte(wire.EtherTypeEscape&0xff), 1, 3), data[12:]...)

	d.receive(1, wt.PFC(host(9), 1<<3, 0xffff))
	d.receive(2, escaped)
	if v := d.node(1).Escape(nil)[1]; v.Parked != 1 {
		t.Fatalf("before the storm: %+v", v)
	}
	d.sends(2, 300*frame.Microsecond)
	if storms := d.node(1).PFC(1).Storms(); storms != 1<<3 || d.counts(2).Drops[frame.PFCWatchdog] != 1 {
		t.Fatalf("storms %08b, drops %v", storms, d.counts(2).Drops[frame.PFCWatchdog])
	}
	d.receive(2, escaped)
	if v := d.node(1).Escape(nil)[1]; d.counts(2).Drops[frame.PFCWatchdog] != 2 || v.Parked != 0 || v.Taken != 0 {
		t.Errorf("in the storm: %d dropped, %+v", d.counts(2).Drops[frame.PFCWatchdog], v)
	}
}
