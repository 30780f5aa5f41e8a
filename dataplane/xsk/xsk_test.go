package xsk

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gswitch/bpf"
	"gswitch/frame"
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
