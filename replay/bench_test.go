package replay_test

import (
	"testing"

	"gswitch/frame"
	"gswitch/replay"
	wt "gswitch/wire/wiretest"
)

// A vector of 64 frames through a switch of two ports, without and with a
// recorder, per frame: datagrams of 60 bytes of one flow, as traffic generators send
// them, and TCP of eight.
func BenchmarkRecorder(b *testing.B) {
	var datagrams, segments [8][]byte
	for i := range segments {
		datagrams[i] = wt.Frame(wt.Eth(wt.MAC(2), wt.MAC(1)), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(1024, 9), wt.Zeros(18))
		segments[i] = tcp(i)
		segments[i][37] = byte(i)
	}
	for _, c := range []struct {
		name     string
		frames   [8][]byte
		recorded bool
	}{{"udp/off", datagrams, false}, {"udp/on", datagrams, true}, {"tcp/off", segments, false}, {"tcp/on", segments, true}} {
		b.Run(c.name, func(b *testing.B) {
			l := newLive(b, small, 1024, 1)
			var n frame.Node = l.m.Node
			if c.recorded {
				n = l.rec
			}
			for port := range uint16(2) {
				n.SetLink(1, port, true)
			}
			var v, out [64]frame.Ref
			b.ResetTimer()
			b.ReportAllocs()
			for i := 0; i < b.N; i += len(v) {
				now := frame.Time(1 + i*100)
				for k := range v {
					v[k] = l.pool.New(c.frames[k%8])
				}
				n.Receive(now, 0, v[:])
				n.Advance(now)
				for _, f := range out[:n.Transmit(now, 1, out[:])] {
					l.pool.Free(f)
				}
				for s := l.feed.Next(); s != nil; s = l.feed.Next() {
					replay.Entries(s)
					l.feed.Return(s)
				}
			}
		})
	}
}
