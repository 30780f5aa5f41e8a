package boundary

import (
	"testing"

	"golang.org/x/sys/unix"

	"gswitch/clocksync"
	"gswitch/frame"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	"gswitch/wire"
)

// processor is the processor's time that the process has taken so far, in nanoseconds: what
// else the machine does matters less to it.
func processor() float64 {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return float64(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkForward forwards frames that are not of PTP by a switch without and with a clock.
func BenchmarkForward(b *testing.B) {
	for _, c := range []struct {
		name string
		cfg  *vswitch.Config
	}{{"without", st.Star()}, {"with", config()}} {
		b.Run("clock="+c.name, func(b *testing.B) {
			for i := range c.cfg.Ports {
				c.cfg.Ports[i].Scheduler.Rate = 0 // a vector at once
			}
			r := st.New(b, c.cfg)
			n, data := r.Switch.Nodes[0], st.L2(2, 1)
			var v, out [64]frame.Ref
			forwarded := 0
			b.ReportAllocs()
			began := processor()
			for b.Loop() {
				for i := range v {
					v[i] = r.Pools[0].New(data)
				}
				r.Now += frame.Microsecond
				n.Receive(r.Now, 0, v[:])
				n.Advance(r.Now)
				for port := range uint16(3) {
					k := n.Transmit(r.Now, port, out[:])
					for _, ref := range out[:k] {
						r.Pools[0].Free(ref)
					}
					if port == 1 {
						forwarded += k
					}
				}
			}
			if forwarded < 63*b.N {
				b.Fatalf("%d of %d frames were forwarded", forwarded, 64*b.N)
			}
			b.ReportMetric((processor()-began)/float64(b.N)/64, "cpu-ns/frame")
		})
	}
}

// BenchmarkMessage is what a message of the parent costs a node: it is read, sets the
// clock, is passed on to one port, and stamped when it leaves there.
func BenchmarkMessage(b *testing.B) {
	var n *clocksync.Instance
	now := frame.Time(0)
	out := make([]byte, wire.MaxPTP)
	n = clocksync.NewInstance(wire.MAC{2, 1}, func(port int, f *wire.PTPFields) bool {
		n.Departs(now, port, out[:f.Encode(out)])
		return true
	})
	c := clocksync.Config{Epoch: 1, Accept: 0, Backup: clocksync.NoPort, Interval: clocksync.DefaultInterval, Timeout1: clocksync.DefaultTimeout1, EpsBase: clocksync.EpsHop, EpsBackup: 10}
	c.Transmit.Add(1)
	if err := n.Configure(0, clocksync.Options{Config: c, Domain: clocksync.DefaultDomain}); err != nil {
		b.Fatal(err)
	}
	n.Delay(0).Fix(500)
	in := make([]byte, wire.MaxPTP)
	f := wire.PTPFields{Type: wire.PTPSync, Domain: clocksync.DefaultDomain, Clock: 7, HasSundial: true, Sundial: wire.SundialFields{Epoch: 1, Root: 7}}
	in = in[:f.Encode(in)]
	began := processor()
	for b.Loop() {
		now += clocksync.DefaultInterval
		wire.SetPTPCorrection(in, int64(now-500)<<16)
		n.Receive(now, now, true, 0, in)
	}
	b.ReportMetric((processor()-began)/float64(b.N), "cpu-ns/message")
	if n.Counts.Valid == 0 || n.Counts.Valid != n.Counts.Sent {
		b.Fatalf("%+v", n.Counts)
	}
}
