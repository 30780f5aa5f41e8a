package clocksync

import (
	"testing"

	"gswitch/frame"
	"gswitch/wire"
)

// BenchmarkMessage is what a message of the parent costs a node: it is read, sets the
// clock, is passed on to one port, and stamped when it leaves there.
func BenchmarkMessage(b *testing.B) {
	var n *Instance
	now := frame.Time(0)
	out := make([]byte, wire.MaxPTP)
	n = NewInstance(wire.MAC{2, 1}, func(port int, f *wire.PTPFields) bool {
		n.Departs(now, port, out[:f.Encode(out)])
		return true
	})
	c := Config{Epoch: 1, Accept: 0, Backup: NoPort, Interval: DefaultInterval, Timeout1: DefaultTimeout1, EpsBase: EpsHop, EpsBackup: 10}
	c.Transmit.Add(1)
	if err := n.Configure(0, Options{Config: c, Domain: DefaultDomain}); err != nil {
		b.Fatal(err)
	}
	n.Delay(0).Fix(500)
	in := make([]byte, wire.MaxPTP)
	f := wire.PTPFields{Type: wire.PTPSync, Domain: DefaultDomain, Clock: 7, HasSundial: true, Sundial: wire.SundialFields{Epoch: 1, Root: 7}}
	in = in[:f.Encode(in)]
	for b.Loop() {
		now += DefaultInterval
		wire.SetPTPCorrection(in, int64(now-500)<<16)
		n.Receive(now, now, true, 0, in)
	}
	if n.Counts.Valid == 0 || n.Counts.Valid != n.Counts.Sent {
		b.Fatalf("%+v", n.Counts)
	}
}
