package dataplane

import (
	"testing"
	"time"

	"gswitch/frame"
)

// BenchmarkXDPForward sends 60-byte frames from one worker over a veth to a
// bridge on another and on over a second veth, where the kernel drops them.
// Sender and bridge need a core each; the metric is what the bridge forwards.
func BenchmarkXDPForward(b *testing.B) {
	l := newLab(b, 2, 1)
	e := mustEngine(b, Config{Chunks: 32768, Workers: []WorkerConfig{{Poll: Spin}, {Poll: Spin}}})
	src := &tester{pool: e.Worker(0).Pool(), size: 60}
	sw := newBridge(e.Worker(1))
	mustNode(b, e, 0, src)
	mustNode(b, e, 1, sw)
	mustPort(b, e, 0, src, 0, PortSpec{Interface: "h0", NetNS: l.host})
	mustPort(b, e, 1, sw, 0, PortSpec{Interface: "d0", NetNS: l.dut})
	mustPort(b, e, 1, sw, 1, PortSpec{Interface: "d1", NetNS: l.dut})
	if err := e.Start(); err != nil {
		b.Fatal(err)
	}
	for {
		up := 0
		for _, p := range e.Stats().Ports {
			if p.Up {
				up++
			}
		}
		if up == 3 {
			break
		}
		pause()
	}
	b.ResetTimer()
	e.Worker(0).Do(func(frame.Time) { src.toSend = 1 << 62 })
	for n := uint64(0); n < uint64(b.N); {
		time.Sleep(5 * time.Millisecond)
		e.Worker(1).Do(func(frame.Time) { n = sw.sent })
	}
	b.StopTimer()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/frame")
	s := e.Stats()
	b.ReportMetric(float64(s.Workers[1].KickFrames)/float64(max(1, s.Workers[1].Kicks)), "frames/kick")
	b.ReportMetric(100*s.Workers[1].BusyShare(), "%busy")
	b.ReportMetric(float64(s.GC.Cycles), "gc")
}
