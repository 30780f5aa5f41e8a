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

// BenchmarkMessage is what a message costs a node: that of the parent is read, sets the clock,
// is passed on to one port, and stamped when it leaves there. Where what a hop adds is
// measured a request follows, and its answer sets the clock again: two messages that are read,
// and two that are sent; what it takes to write the answer here counts, too.
func BenchmarkMessage(b *testing.B) {
	b.Run("hop=given", func(b *testing.B) { benchmarkMessage(b, false) })
	b.Run("hop=measured", func(b *testing.B) { benchmarkMessage(b, true) })
}

func benchmarkMessage(b *testing.B, measured bool) {
	var n *clocksync.Instance
	now := frame.Time(0)
	out := make([]byte, clocksync.MaxPacket)
	n = clocksync.NewInstance(wire.MAC{2, 1}, func(port int, f *clocksync.Packet) bool {
		n.Departs(now, port, out[:f.Encode(out)])
		return true
	})
	c := clocksync.Config{Epoch: 1, Accept: 0, Backup: clocksync.NoPort, Interval: clocksync.DefaultInterval, Timeout1: clocksync.DefaultTimeout1, Measured: measured}
	if !measured {
		c.EpsBase, c.EpsBackup = clocksync.EpsHop, 10
	}
	c.Transmit.Add(1)
	if err := n.Configure(0, clocksync.Options{Config: c, Domain: clocksync.DefaultDomain, Answers: measured}); err != nil {
		b.Fatal(err)
	}
	n.Delay(0).Fix(500)
	in, answer := make([]byte, clocksync.MaxPacket), make([]byte, clocksync.MaxPacket)
	f := clocksync.Packet{PTPFields: wire.PTPFields{Type: wire.PTPSync, Domain: clocksync.DefaultDomain, Clock: 7}, HasSundial: true, Sundial: clocksync.Fields{Epoch: 1, Root: 7}}
	in = in[:f.Encode(in)]
	messages := 1
	b.ReportAllocs()
	began := processor()
	for b.Loop() {
		now += clocksync.DefaultInterval
		wire.SetPTPCorrection(in, int64(now-500)<<16)
		n.Receive(now, now, 0, true, 0, in)
		if measured {
			messages = 2
			f.Type, f.Sequence, f.RequestClock, f.RequestPort = wire.PTPPdelayResp, wire.PTPSequence(out), n.Identity(), 1
			f.Time = wire.PTPTime{Seconds: uint64((now + 500) / frame.Second), Nanoseconds: uint32((now + 500) % frame.Second)}
			k := f.Encode(answer)
			n.Receive(now+1000, now+1000, 0, true, 0, answer[:k])
		}
	}
	b.ReportMetric((processor()-began)/float64(b.N)/float64(messages), "cpu-ns/message")
	if n.Counts.Valid == 0 || n.Counts.Valid != n.Counts.Sent || n.Counts.Invalid != 0 || n.Messages != (clocksync.MessageCounts{}) {
		b.Fatalf("%+v, %+v", n.Counts, n.Messages)
	}
}
