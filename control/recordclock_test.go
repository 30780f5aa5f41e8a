package control

import (
	"testing"
	"time"

	"gswitch/config"
)

// The header of a record has synchronised time where the switch has a clock that is synchronised.
func TestHeaderHasClock(t *testing.T) {
	for _, clock := range []string{"", "clock: {root: true}, ", "clock: {controlled: true}, "} {
		c, err := config.Parse("x", []byte("version: 1\ncontrol: {socket: /run/none.sock}\nswitches: [{name: s1, "+clock+"ports: [{name: a, wire: w}, {name: b, wire: w}]}]\n"))
		if err != nil {
			t.Fatal(err)
		}
		d, err := New(t.Context(), c, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Start(); err != nil {
			t.Fatal(err)
		}
		u := d.units[0]
		for clock == "clock: {root: true}, " && d.header(u, switchOf(d.resolved, "s1")).Clock == nil {
			time.Sleep(time.Millisecond) // its port is not up yet
		}
		h := d.header(u, switchOf(d.resolved, "s1"))
		if known := clock == "clock: {root: true}, "; (h.Clock != nil) != known || known && (h.Clock.Zero != h.Epoch || h.Clock.Eps != 0 || h.Clock.Root == 0) {
			t.Errorf("%q: %+v, from %d on", clock, h.Clock, h.Epoch)
		}
		if err := d.Stop(); err != nil {
			t.Error(err)
		}
	}
}
