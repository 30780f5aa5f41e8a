package xsk

import (
	"testing"

	"github.com/vishvananda/netlink"

	"gswitch/frame"
)

// Frames that find no chunk or no room are counted by the kernel and shown.
func TestStatisticsCountLosses(t *testing.T) {
	l := newLab(t)
	l.pair("h0", "s0", 1500, 1)
	g := newGroup(t, 1024, 2048)
	s := g.open(l, "s0", Config{Mode: Native, RxSize: 16, FillSize: 64})
	in := l.wire("h0")
	for i := range uint32(200) {
		in.send(testFrame(60, i))
	}
	out, n := make([]frame.Ref, 64), 0
	for {
		n += s.Receive(g.a, out[n:])
		st, err := s.Stats()
		if err != nil {
			t.Fatal(err)
		}
		k := st.Kernel
		if lost := k.RxDropped + k.RxRingFull; uint64(n)+lost == 200 {
			if k.RxRingFull == 0 {
				t.Fatalf("kernel counters: %+v", k)
			}
			break
		} else if uint64(n)+lost > 200 {
			t.Fatalf("received %d and lost %+v of 200", n, k)
		}
	}
	for _, r := range out[:n] {
		g.p.Free(r)
	}
	g.closeAll()
	if _, err := s.Stats(); err == nil {
		t.Fatal("kernel statistics of a closed socket")
	}
}

// A device that goes down or away is distinguished, and its chunks come back.
func TestDeviceLoss(t *testing.T) {
	l := newLab(t)
	l.pair("h0", "s0", 1500, 1)
	l.pair("h1", "s1", 1500, 1)
	g := newGroup(t, 1024, 2048)
	s := g.open(l, "s0", Config{Mode: Native, FillSize: 256})
	g.open(l, "s1", Config{Mode: Native, FillSize: 256})
	if err := s.WakeRx(); err != nil {
		t.Fatalf("device is up: %v", err)
	}
	r := g.p.New(testFrame(60, 1))
	s.Transmit(g.a, []frame.Ref{r})
	l.do(func() error { return setUp("s0", false) })
	if err := s.Kick(); err != ErrDown {
		t.Fatalf("kick on a device that is down: %v", err)
	}
	if err := s.WakeRx(); err != ErrDown {
		t.Fatalf("wake on a device that is down: %v", err)
	}
	l.do(func() error { return setUp("s0", true) })
	host := l.wire("h0")
	buf := make([]byte, 2048)
	for host.receive(buf) == nil {
		if err := s.Kick(); err != nil {
			t.Fatalf("kick after it came back: %v", err)
		}
	}
	l.do(func() error {
		link, err := netlink.LinkByName("s0")
		if err != nil {
			return err
		}
		return netlink.LinkDel(link)
	})
	if err := s.WakeRx(); err != ErrGone {
		t.Fatalf("wake on a device that is gone: %v", err)
	}
	// A new socket must not be refused because it would join a dead one.
	l.pair("h2", "s2", 1500, 1)
	g.open(l, "s2", Config{Mode: Native, FillSize: 256})
	g.closeAll()
}

// A frame that the device drops, here because its peer is down, is counted
// and completed, and those after it still leave.
func TestKickCountsDrops(t *testing.T) {
	l := newLab(t)
	l.pair("h0", "s0", 1500, 1)
	g := newGroup(t, 1024, 2048)
	s := g.open(l, "s0", Config{Mode: Native, FillSize: 256})
	l.do(func() error { return setUp("h0", false) })
	for i := range uint32(3) {
		s.Transmit(g.a, []frame.Ref{g.p.New(testFrame(60, i))})
	}
	for s.Outstanding() > 0 {
		if err := s.Kick(); err != nil {
			t.Fatal(err)
		}
		s.Complete(g.p)
	}
	if st, err := s.Stats(); err != nil || st.KickDrops != 3 || st.KickChunks > 3 {
		t.Fatalf("%+v, %v", st, err)
	}
	g.conserved()
	g.closeAll()
}
