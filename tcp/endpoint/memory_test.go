package endpoint

import (
	"net/netip"
	"testing"

	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/tcp"
	"gswitch/wire"
)

// Segments for which there is no memory, of a connection or the reset of one that does not
// exist, are counted with the host as other frames are.
func TestWithoutMemory(t *testing.T) {
	cfg := hostnic.Config{Name: "h", MAC: wire.MAC{2}, Addr: netip.MustParseAddr("10.0.0.1"), Gateway: wire.MAC{2, 1}, Rate: 1e9, Payload: 1000, AckClass: -1, AckPauseClass: -1, Seed: 1}
	s := Section{Congestion: "cubic", MinRTO: 1e8, MSS: 1000, ReceiveBuffer: 6000, Connections: 4}
	o, err := s.Options(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Options = cfg.Options.With(Name, o)
	pool := frame.NewPool(frame.MustArena(64, 2048, frame.DefaultHeadroom))
	n, err := hostnic.New(&cfg, pool)
	if err != nil {
		t.Fatal(err)
	}
	n.SetLink(0, 0, true)
	e := Of(n)
	syn := func(flags tcp.Flags, from uint16) {
		t.Helper()
		seg := tcp.Segment{Flags: flags, Seq: 100}
		b := seg.AppendPacket([]byte{2, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 8, 0}, tcp.Flow{Src: [4]byte{10, 0, 0, 9}, Dst: cfg.Addr.As4(), SrcPort: from, DstPort: 80}, 1)
		r := pool.New(append(b, make([]byte, max(0, wire.MinFrame-len(b)))...))
		pool.FailAt([]frame.Misses{{First: pool.Asked() + 1, N: 1 << 40}})
		n.Receive(frame.Millisecond, 0, []frame.Ref{r})
		var out [4]frame.Ref
		if k := n.Transmit(frame.Millisecond, 0, out[:]); k != 0 {
			t.Errorf("%d frames are sent without memory", k)
		}
		pool.FailAt(nil)
	}
	missing := func() uint64 { return n.Counts().Drops[frame.ArenaExhausted] }
	if syn(tcp.SYN, 5000); missing() != 1 || e.Counts().Resets != 0 {
		t.Errorf("%d resets are missing, %d are counted as sent", missing(), e.Counts().Resets)
	}
	if err := e.ListenOn(80, true); err != nil {
		t.Fatal(err)
	}
	if syn(tcp.SYN, 5001); missing() != 2 || e.Unmade() != 2 {
		t.Errorf("%d frames are missing, %d of the stack", missing(), e.Unmade())
	}
}
