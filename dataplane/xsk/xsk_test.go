package xsk

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gswitch/gswitch/bpf"
	"github.com/gswitch/gswitch/frame"
)

// Frames cross from one device to another as descriptors, in order and
// unchanged, in both copy modes; no chunk is lost under load or by Close.
func TestForwardBetweenDevices(t *testing.T) {
	for _, mode := range []Mode{Native, Generic} {
		t.Run(mode.String(), func(t *testing.T) {
			l := newLab(t)
			l.pair("h0", "s0", 1500, 1)
			l.pair("h1", "s1", 1500, 1)
			g := newGroup(t, 4096, 2048)
			from := g.open(l, "s0", Config{Mode: mode, FillSize: 1024})
			to := g.open(l, "s1", Config{Mode: mode, FillSize: 1024})
			if from.ZeroCopy() || from.Mode() != mode {
				t.Fatalf("mode %v, zero-copy %v, want %v", from.Mode(), from.ZeroCopy(), mode)
			}
			in, out := l.wire("h0"), l.wire("h1")
			v, buf := make([]frame.Ref, 64), make([]byte, 2048)
			const total = 5000
			got := uint32(0)
			for seq := uint32(0); seq < total; seq++ {
				in.send(testFrame(60+int(seq%1400), seq))
				if seq%50 != 49 {
					continue
				}
				for got <= seq {
					g.l2fwd(from, to, v)
					for b := out.receive(buf); b != nil; b = out.receive(buf) {
						if !bytes.Equal(b, testFrame(60+int(got%1400), got)) {
							t.Fatalf("frame %d of %d bytes differs", got, len(b))
						}
						got++
					}
				}
				g.conserved()
			}
			st, err := from.Stats()
			if err != nil || st.RxFrames != total || st.RxChunks != total {
				t.Fatalf("receive side: %+v, %v", st, err)
			}
			if st.Kernel != (KernelStats{}) && st.Kernel.RxDropped+st.Kernel.RxRingFull+st.Kernel.RxInvalid > 0 {
				t.Fatalf("kernel counters: %+v", st.Kernel)
			}
			st, err = to.Stats()
			if err != nil || st.TxFrames != total || st.KickChunks != total || st.Kicks > total || st.TxBytes == 0 {
				t.Fatalf("transmit side: %+v, %v", st, err)
			}
			if c, err := g.ports[0].Counters(); err != nil || c.Redirected != total {
				t.Fatalf("program: %+v, %v", c, err)
			}
			g.closeAll()
		})
	}
}

// The ladder says which mode was obtained and why the better ones were not.
func TestModeLadder(t *testing.T) {
	l := newLab(t)
	l.pair("h0", "s0", 1500, 1)
	g := newGroup(t, 512, 2048)
	p := g.openPort(PortConfig{Interface: "s0", Socket: inLab(l, Config{FillSize: 64})})
	r := p.Rungs()
	if p.Mode() != Native || len(r) != 2 || r[0].Mode != ZeroCopy || !errors.Is(r[0].Err, unix.EOPNOTSUPP) || r[1] != (Rung{Mode: Native}) {
		t.Fatalf("mode %v, rungs %v", p.Mode(), r)
	}
	g.closeAll()
	s, err := Open(g.u, inLab(l, Config{IfIndex: l.ifindex("s0")}))
	if err != nil || s.Mode() != Native || len(s.Rungs()) != 2 {
		t.Fatalf("socket alone: %v, %v", s, err)
	}
	s.Close()
	_, err = OpenPort(g.u, PortConfig{Interface: "s0", Socket: inLab(l, Config{Mode: ZeroCopy})})
	if err == nil || !strings.Contains(err.Error(), "s0") || !strings.Contains(err.Error(), "zero-copy") {
		t.Fatalf("pinned zero-copy on veth: %v", err)
	}
	if id := l.attached("s0"); id != 0 {
		t.Fatalf("program %d was left behind by a port that did not open", id)
	}

	// Loopback has no native XDP: the ladder goes down to generic.
	l.do(func() error { return setUp("lo", true) })
	g2 := newGroup(t, 512, 4096)
	p = g2.openPort(PortConfig{Interface: "lo", Socket: inLab(l, Config{FillSize: 64, Multibuffer: true})})
	if p.Mode() != Generic || len(p.Rungs()) != 3 {
		t.Fatalf("lo: mode %v, rungs %v", p.Mode(), p.Rungs())
	}
	g2.closeAll()
}

// The memory outlives the socket that registered it.
func TestSharedUMEMOutlivesFirstSocket(t *testing.T) {
	l := newLab(t)
	for i := range 3 {
		l.pair(fmt.Sprintf("h%d", i), fmt.Sprintf("s%d", i), 1500, 1)
	}
	g := newGroup(t, 2048, 2048)
	c := Config{Mode: Native, FillSize: 256}
	first := g.open(l, "s0", c)
	g.open(l, "s1", c)
	if err := g.ports[0].Close(); err != nil {
		t.Fatal(err)
	}
	first.Reclaim(g.p)
	g.ports = g.ports[1:]
	g.open(l, "s2", c) // joins the second
	pass := func(from, to *Socket, in, out *wire) {
		t.Helper()
		want := testFrame(100, 7)
		in.send(want)
		v, buf := make([]frame.Ref, 64), make([]byte, 2048)
		for {
			g.l2fwd(from, to, v)
			if b := out.receive(buf); b != nil {
				if !bytes.Equal(b, want) {
					t.Fatal("frame differs")
				}
				return
			}
		}
	}
	pass(g.ports[0].Sockets()[0], g.ports[1].Sockets()[0], l.wire("h1"), l.wire("h2"))
	g.closeAll()
	if n := g.u.Sockets(); n != 0 {
		t.Fatalf("%d sockets open", n)
	}
	// All closed: the next one registers again. Chained and plain sockets
	// cannot share a registration, and still share the frames.
	plain := g.open(l, "s0", c)
	c.Multibuffer = true
	chained := g.open(l, "s1", c)
	pass(plain, chained, l.wire("h0"), l.wire("h1"))
	pass(chained, plain, l.wire("h1"), l.wire("h0"))
	g.conserved()
	g.closeAll()
	if err := g.u.Close(); err != nil {
		t.Fatal(err)
	}
}

// The kernel keeps a queue busy for a while after its socket was closed.
func TestReopen(t *testing.T) {
	l := newLab(t)
	l.pair("h0", "s0", 1500, 1)
	g := newGroup(t, 1024, 2048)
	in, out := l.wire("h0"), make([]frame.Ref, 64)
	for i := range 20 {
		s := g.open(l, "s0", Config{Mode: Native, FillSize: 256})
		in.send(testFrame(60, uint32(i)))
		for s.Receive(g.a, out) == 0 {
		}
		// Leave a frame in every place: received, posted, sent.
		s.Transmit(g.a, out[:1])
		if i%2 == 0 {
			if err := s.Kick(); err != nil {
				t.Fatal(err)
			}
		}
		g.closeAll()
	}
}

func TestQueueHeldByAnother(t *testing.T) {
	l := newLab(t)
	l.pair("h0", "s0", 1500, 1)
	g, other := newGroup(t, 512, 2048), newGroup(t, 512, 2048)
	c := inLab(l, Config{IfIndex: l.ifindex("s0"), Mode: Native})
	s, err := Open(g.u, c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = Open(other.u, c)
	if !errors.Is(err, ErrQueueBusy) || !strings.Contains(err.Error(), "s0") || !strings.Contains(err.Error(), "queue 0") {
		t.Fatalf("second socket on a queue: %v", err)
	}
}

func TestPortRefusesSecondProgram(t *testing.T) {
	l := newLab(t)
	l.pair("h0", "s0", 1500, 1)
	g, other := newGroup(t, 512, 2048), newGroup(t, 512, 2048)
	g.open(l, "s0", Config{FillSize: 64})
	for _, mode := range []Mode{Auto, Native, Generic} {
		_, err := OpenPort(other.u, PortConfig{Interface: "s0", Socket: inLab(l, Config{Mode: mode})})
		var busy *bpf.BusyError
		if !errors.As(err, &busy) || busy.Interface != "s0" || busy.ID != l.attached("s0") || busy.Name != "gswitch_port" {
			t.Fatalf("mode %v: %v", mode, err)
		}
	}
}

// Jumbo frames are chained on the way in and sent whole on the way out.
func TestJumbo(t *testing.T) {
	for _, mode := range []Mode{Native, Generic} {
		for _, chunk := range []int{2048, 4096} {
			t.Run(fmt.Sprintf("%v/chunk%d", mode, chunk), func(t *testing.T) {
				l := newLab(t)
				l.pair("h0", "s0", 9000, 1)
				l.pair("h1", "s1", 9000, 1)
				g := newGroup(t, 2048, chunk)
				c := Config{Mode: mode, FillSize: 512, Multibuffer: true}
				from, to := g.open(l, "s0", c), g.open(l, "s1", c)
				in, out := l.wire("h0"), l.wire("h1")
				v, buf := make([]frame.Ref, 64), make([]byte, 10000)
				for i, size := range []int{60, 1792, 1793, 3840, 3841, 6000, 9014} {
					want := testFrame(size, uint32(i))
					in.send(want)
					n := 0
					for n == 0 {
						n = from.Receive(g.a, v)
					}
					m := g.a.Meta(v[0])
					if int(m.Wire) != size || (m.Flags&frame.Chained != 0) != (size > chunk-256) {
						t.Fatalf("%d bytes: wire length %d, flags %#x", size, m.Wire, m.Flags)
					}
					if to.Transmit(g.a, v[:n]) != n {
						t.Fatal("TX ring full")
					}
					var b []byte
					for b == nil {
						if err := to.Kick(); err != nil {
							t.Fatal(err)
						}
						b = out.receive(buf)
					}
					if !bytes.Equal(b, want) {
						t.Fatalf("%d bytes sent, %d received, or they differ", size, len(b))
					}
					to.Complete(g.p)
					from.Fill(g.p)
					g.conserved()
				}
				g.closeAll()
			})
		}
	}
}

// A frame that cannot fit is an error at start, not a loss later.
func TestMTUBeyondChunk(t *testing.T) {
	l := newLab(t)
	l.pair("h0", "s0", 9000, 1)
	g := newGroup(t, 512, 4096)
	_, err := OpenPort(g.u, PortConfig{Interface: "s0", Socket: inLab(l, Config{})})
	if err == nil || !strings.Contains(err.Error(), "s0") || !strings.Contains(err.Error(), "MTU 9000") {
		t.Fatalf("jumbo MTU without multi-buffer: %v", err)
	}
	if _, err := NewUMEM(10, 8192, Options{}); err == nil {
		t.Fatal("chunk of 8192 bytes accepted")
	}
	if _, err := NewUMEM(10, 1024, Options{}); err == nil {
		t.Fatal("chunk of 1024 bytes accepted")
	}
}

// What the filter does not select reaches the kernel.
func TestFilterLeavesTheRestToTheKernel(t *testing.T) {
	l := newLab(t)
	l.pair("h0", "s0", 1500, 1)
	g := newGroup(t, 1024, 2048)
	p := g.openPort(PortConfig{Interface: "s0", Filter: bpf.Filter{EtherTypes: []uint16{0x88b5}}, Socket: inLab(l, Config{FillSize: 256})})
	s := p.Sockets()[0]
	in, host := l.wire("h0"), l.wire("s0")
	other := testFrame(80, 2)
	other[13] = 0xb6
	in.send(other)
	in.send(testFrame(60, 1))
	out, buf := make([]frame.Ref, 64), make([]byte, 2048)
	n := 0
	for n == 0 {
		n = s.Receive(g.a, out)
	}
	if n != 1 || !bytes.Equal(g.a.Bytes(out[0]), testFrame(60, 1)) {
		t.Fatalf("socket received %d frames", n)
	}
	g.p.Free(out[0])
	var b []byte
	for b == nil {
		b = host.receive(buf)
	}
	if !bytes.Equal(b, other) || host.receive(buf) != nil {
		t.Fatal("the kernel did not get exactly the rest")
	}
	if c, err := p.Counters(); err != nil || c != (bpf.Counters{Redirected: 1, Passed: 1}) {
		t.Fatalf("counters %+v, %v", c, err)
	}
	g.closeAll()
}

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

// A device that goes down or away is told apart, and its chunks come back.
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

// Sockets of several queues of one device share the memory too.
func TestSeveralQueues(t *testing.T) {
	l := newLab(t)
	l.pair("h0", "s0", 1500, 2)
	g := newGroup(t, 2048, 2048)
	p := g.openPort(PortConfig{Interface: "s0", Queues: []int{0, 1}, Socket: inLab(l, Config{FillSize: 256})})
	in := l.wire("h0")
	for i := range uint32(100) {
		in.send(testFrame(60, i))
	}
	out, n := make([]frame.Ref, 64), 0
	for n < 100 {
		for _, s := range p.Sockets() {
			k := s.Receive(g.a, out)
			n += k
			for _, r := range out[:k] {
				g.p.Free(r)
			}
			s.Fill(g.p)
		}
	}
	g.closeAll()
	_, err := OpenPort(g.u, PortConfig{Interface: "s0", Queues: []int{7}, Socket: inLab(l, Config{Mode: Native})})
	if err == nil || !strings.Contains(err.Error(), "queue 7") {
		t.Fatalf("queue that does not exist: %v", err)
	}
}

func TestHotCallsDoNotAllocateOnADevice(t *testing.T) {
	l := newLab(t)
	l.pair("h0", "s0", 1500, 1)
	l.pair("h1", "s1", 1500, 1)
	g := newGroup(t, 4096, 2048)
	from := g.open(l, "s0", Config{Mode: Native, FillSize: 1024})
	to := g.open(l, "s1", Config{Mode: Native, FillSize: 1024})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	in, v, b := l.wire("h0"), make([]frame.Ref, 64), testFrame(60, 0)
	moved := 0
	n := testing.AllocsPerRun(200, func() {
		for range 8 {
			if _, err := unix.Write(in.fd, b); err != nil {
				t.Fatal(err)
			}
		}
		moved += g.l2fwd(from, to, v)
		if from.NeedsRxWakeup() {
			_ = from.WakeRx()
		}
	})
	if n != 0 || moved == 0 {
		t.Fatalf("%v allocations per run, %d frames moved", n, moved)
	}
	g.closeAll()
}

// Busy polling is asked for where it is wanted, and a driver that cannot loses
// nothing by it.
func TestBusyPoll(t *testing.T) {
	for _, budget := range []int{0, 64} {
		l := newLab(t)
		l.pair("h0", "s0", 1500, 1)
		g := newGroup(t, 1024, 2048)
		s := g.open(l, "s0", Config{FillSize: 256, BusyPoll: budget})
		prefer, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_PREFER_BUSY_POLL)
		if err != nil || (prefer != 0) != (budget > 0) {
			t.Errorf("budget %d: preferred %d, %v", budget, prefer, err)
		}
		in, v := l.wire("h0"), make([]frame.Ref, 64)
		for i := range uint32(50) {
			in.send(testFrame(60, i))
			for s.Receive(g.a, v) == 0 {
				if s.NeedsRxWakeup() {
					if err := s.WakeRx(); err != nil {
						t.Fatal(err)
					}
				}
			}
			g.p.Free(v[0])
			s.Fill(g.p)
		}
		id, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_INCOMING_NAPI_ID)
		if want := budget > 0 && id != 0; err != nil || s.BusyPoll() != want || s.askNAPI {
			t.Errorf("budget %d: polls %v with NAPI id %d, %v", budget, s.BusyPoll(), id, err)
		}
		g.closeAll()
	}
}

func TestConfigErrors(t *testing.T) {
	for want, c := range map[string]Config{
		"RX ring: 100":        {IfIndex: 1, RxSize: 100},
		"completion ring":     {IfIndex: 1, TxSize: 4096, CompSize: 2048},
		"TX budget":           {IfIndex: 1, TxBudget: 5000},
		"interface index 0":   {},
		"busy poll budget -1": {IfIndex: 1, BusyPoll: -1},
		"queue -1":            {IfIndex: 1, Queue: -1},
		"namespace xsk-none":  {IfIndex: 1, NetNS: "xsk-none"},
	} {
		u, err := NewUMEM(16, 2048, Options{HugePages: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Open(u, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want it to say %q", c, err, want)
		}
		if err := u.Close(); err != nil {
			t.Error(err)
		}
	}
}
