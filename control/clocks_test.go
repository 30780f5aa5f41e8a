package control

import (
	"testing"

	"gswitch/dataplane"
)

// What is said of a port's stamps follows from what was counted of them there.
func TestStampsOf(t *testing.T) {
	xdp := dataplane.PortStats{Kind: dataplane.XDP, Up: true}
	with := func(change func(p *dataplane.PortStats)) dataplane.PortStats {
		p := xdp
		change(&p)
		return p
	}
	for _, c := range []struct {
		port     dataplane.PortStats
		recorded bool
		want     string
	}{
		{xdp, false, "kernel: the XDP program, when the driver hands the frame over"},
		{with(func(p *dataplane.PortStats) { p.Stamped = 9 }), false, "kernel: the XDP program, when the driver hands the frame over"},
		{with(func(p *dataplane.PortStats) { p.Stamped, p.Unstamped = 9, 1 }), false, "kernel: the XDP program, when the driver hands the frame over"},
		{with(func(p *dataplane.PortStats) { p.Stamped, p.StampedByNIC = 9, 9 }), false, "hardware: the clock of the NIC"},
		{with(func(p *dataplane.PortStats) { p.Stamped, p.StampedByNIC = 9, 8 }), false, "hardware: the clock of the NIC, and the kernel where it said nothing"},
		{with(func(p *dataplane.PortStats) { p.Unstamped = 1 }), false, "worker: the driver leaves no room for stamps"},
		{with(func(p *dataplane.PortStats) { p.Stamped, p.StampedByNIC = 9, 9 }), true, "worker: what is recorded has the worker's time"},
		{with(func(p *dataplane.PortStats) { p.Up = false }), false, "none: no link"},
		{with(func(p *dataplane.PortStats) { p.Kind = dataplane.Wire }), false, "worker: the port is no interface"},
	} {
		if got := stampsOf(&c.port, c.recorded); got != c.want {
			t.Errorf("%+v, recorded %t: %q, want %q", c.port.PortCounters, c.recorded, got, c.want)
		}
	}
}
