package replay_test

import (
	"testing"

	"gswitch/frame"
	"gswitch/replay"
)

// A vector of 64 frames through a switch of two ports, without and with a
// recorder, per frame.
func BenchmarkRecorder(b *testing.B) {
	for _, recorded := range []bool{false, true} {
		name := "off"
		if recorded {
			name = "on"
		}
		b.Run(name, func(b *testing.B) {
			l := newLive(b, small, 1024, 1)
			var n frame.Node = l.m.Node
			if recorded {
				n = l.rec
			}
			for port := range uint16(2) {
				n.SetLink(1, port, true)
			}
			var bytes [8][]byte
			for i := range bytes {
				bytes[i] = tcp(i)
				bytes[i][37] = byte(i) // eight flows
			}
			var v, out [64]frame.Ref
			b.ResetTimer()
			b.ReportAllocs()
			for i := 0; i < b.N; i += len(v) {
				now := frame.Time(1 + i*100)
				for k := range v {
					v[k] = l.pool.New(bytes[k%8])
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
