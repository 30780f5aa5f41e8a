package verbs_test

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"gswitch/verbs"
)

// connected are two hosts over AF_XDP on a veth pair, and a queue pair between
// them.
func connected(b *testing.B, depth int) (context.Context, *verbs.QueuePair) {
	names := link(b)
	ctx, cancel := context.WithCancel(context.Background())
	b.Cleanup(cancel)
	var hosts [2]*verbs.Host
	for i := range hosts {
		var err error
		if hosts[i], err = verbs.Open(ctx, verbs.Config{Interface: "eth0", NetNS: names[i], Address: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 24),
			Congestion: "none", Telemetry: "none", BaseRTT: 2 * time.Millisecond}); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { hosts[i].Close() })
	}
	m, err := hosts[1].Register(make([]byte, 1<<16), verbs.RemoteWrite)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := hosts[1].Listen(verbs.ListenConfig{Offer: m}); err != nil {
		b.Fatal(err)
	}
	q, err := hosts[0].Dial(ctx, hosts[1].Addr(), verbs.QPConfig{SendDepth: depth})
	if err != nil {
		b.Fatal(err)
	}
	return ctx, q
}

// Writes over AF_XDP: one at a time, and many.
func BenchmarkInterface(b *testing.B) {
	for _, c := range []struct{ size, depth int }{{8, 1}, {4096, 64}, {65536, 16}} {
		b.Run(fmt.Sprintf("%dB/%d", c.size, c.depth), func(b *testing.B) {
			ctx, q := connected(b, c.depth)
			data, out := make([]byte, c.size), make([]verbs.Completion, c.depth)
			b.SetBytes(int64(c.size))
			b.ReportAllocs()
			b.ResetTimer()
			for posted, done := 0, 0; done < b.N; {
				for ; posted < b.N && posted-done < c.depth; posted++ {
					if err := q.Write(uint64(posted), data, q.Remote(), 0); err != nil {
						b.Fatal(err)
					}
				}
				if err := q.CQ().Wait(ctx); err != nil {
					b.Fatal(err)
				}
				n := q.Poll(out)
				for i := range out[:n] {
					if err := out[i].Err(); err != nil {
						b.Fatal(err)
					}
				}
				done += n
			}
		})
	}
}
