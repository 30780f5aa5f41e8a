package xsk

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"gswitch/bpf"
	"gswitch/frame"
)

// lab is a network namespace of the test's own. Frames enter and leave it by
// packet sockets on the far ends of veth pairs.
type lab struct {
	t  testing.TB
	ns string
}

var labs atomic.Uint32

// newLab makes a namespace, or skips the test where that is impossible.
func newLab(t testing.TB) *lab {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: network namespaces and AF_XDP")
	}
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Skipf("needs AF_XDP: %v", err)
	}
	unix.Close(fd)
	l := &lab{t, fmt.Sprintf("xsk-%d-%d", os.Getpid(), labs.Add(1))}
	made := make(chan error)
	go func() {
		// The thread changes its namespace for good, so it ends with the
		// goroutine.
		runtime.LockOSThread()
		h, err := netns.NewNamed(l.ns)
		if err == nil {
			h.Close()
			err = os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
		}
		made <- err
	}()
	if err := <-made; err != nil {
		t.Skipf("needs network namespaces: %v", err)
	}
	t.Cleanup(func() { _ = netns.DeleteNamed(l.ns) })
	return l
}

// do runs fn in the namespace.
func (l *lab) do(fn func() error) {
	l.t.Helper()
	if err := InNetNS(l.ns, fn); err != nil {
		l.t.Fatal(err)
	}
}

// pair makes a veth pair, up, with the MTU and number of queues given.
func (l *lab) pair(a, b string, mtu, queues int) {
	l.t.Helper()
	l.do(func() error {
		la := netlink.NewLinkAttrs()
		la.Name, la.MTU, la.NumTxQueues, la.NumRxQueues = a, mtu, queues, queues
		veth := &netlink.Veth{LinkAttrs: la, PeerName: b, PeerMTU: uint32(mtu), PeerNumTxQueues: uint32(queues), PeerNumRxQueues: uint32(queues)}
		if err := netlink.LinkAdd(veth); err != nil {
			return fmt.Errorf("add %s-%s: %w", a, b, err)
		}
		for _, name := range []string{a, b} {
			if err := setUp(name, true); err != nil {
				return err
			}
		}
		return errors.Join(awaitUp(a), awaitUp(b))
	})
}

// awaitUp waits until a link carries frames: before its state is up, the kernel drops
// what is sent by it and says nothing.
func awaitUp(name string) error {
	for ; ; time.Sleep(time.Millisecond) {
		link, err := netlink.LinkByName(name)
		if err != nil || link.Attrs().OperState == netlink.OperUp {
			return err
		}
	}
}

func setUp(name string, up bool) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	if up {
		return netlink.LinkSetUp(link)
	}
	return netlink.LinkSetDown(link)
}

func (l *lab) ifindex(name string) (index int) {
	l.t.Helper()
	l.do(func() error {
		ifi, err := net.InterfaceByName(name)
		if err == nil {
			index = ifi.Index
		}
		return err
	})
	return index
}

// attached returns the id of the XDP program on an interface, 0 if none.
func (l *lab) attached(name string) (id uint32) {
	l.t.Helper()
	l.do(func() error {
		link, err := netlink.LinkByName(name)
		if err == nil && link.Attrs().Xdp != nil {
			id = link.Attrs().Xdp.ProgId
		}
		return err
	})
	return id
}

// wire is a packet socket on an interface: what a host would see and send.
type wire struct {
	t  testing.TB
	fd int
}

func (l *lab) wire(name string) *wire {
	l.t.Helper()
	w := &wire{t: l.t}
	index := l.ifindex(name)
	l.do(func() (err error) {
		all := uint16(unix.ETH_P_ALL)
		if w.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(all<<8|all>>8)); err != nil {
			return err
		}
		_ = unix.SetsockoptInt(w.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20)
		if err := unix.SetsockoptInt(w.fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil {
			return err
		}
		return unix.Bind(w.fd, &unix.SockaddrLinklayer{Protocol: all<<8 | all>>8, Ifindex: index})
	})
	l.t.Cleanup(func() { unix.Close(w.fd) })
	return w
}

func (w *wire) send(b []byte) {
	w.t.Helper()
	if _, err := unix.Write(w.fd, b); err != nil {
		w.t.Fatalf("send %d bytes: %v", len(b), err)
	}
}

// receive returns the next frame, or nil if none is there.
func (w *wire) receive(b []byte) []byte {
	w.t.Helper()
	n, _, err := unix.Recvfrom(w.fd, b, unix.MSG_DONTWAIT)
	if errors.Is(err, unix.EAGAIN) {
		return nil
	}
	if err != nil {
		w.t.Fatalf("receive: %v", err)
	}
	return b[:n]
}

// testFrame returns an Ethernet frame of n bytes that carries seq in its
// payload and a pattern that depends on it.
func testFrame(n int, seq uint32) []byte {
	b := make([]byte, n)
	copy(b, []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5}) // local experimental EtherType (IEEE 802)
	for i := 14; i < n; i++ {
		b[i] = byte(seq>>(8*(i%4))) + byte(i/4)
	}
	return b
}

// group is a UMEM with its arena, pool and ports: a worker's view.
type group struct {
	t     testing.TB
	u     *UMEM
	a     *frame.Arena
	p     *frame.Pool
	ports []*Port
}

func newGroup(t testing.TB, chunks, chunk int) *group {
	t.Helper()
	u, err := NewUMEM(chunks, chunk, Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := frame.NewArena(u.Bytes(), chunk, frame.DefaultHeadroom)
	if err != nil {
		t.Fatal(err)
	}
	g := &group{t: t, u: u, a: a, p: frame.NewPool(a)}
	t.Cleanup(func() {
		for _, p := range g.ports {
			_ = p.Close()
		}
		_ = u.Close()
	})
	return g
}

// open opens queue 0 of an interface.
func (g *group) open(l *lab, name string, c Config) *Socket {
	g.t.Helper()
	return g.openPort(PortConfig{Interface: name, Socket: inLab(l, c)}).Sockets()[0]
}

func inLab(l *lab, c Config) Config {
	c.NetNS = l.ns
	return c
}

func (g *group) openPort(c PortConfig) *Port {
	g.t.Helper()
	p, err := OpenPort(g.u, c)
	if errors.Is(err, bpf.ErrNotSupported) {
		g.t.Skipf("this kernel cannot: %v", err)
	}
	if err != nil {
		g.t.Fatal(err)
	}
	g.ports = append(g.ports, p)
	for _, s := range p.Sockets() {
		s.Fill(g.p)
	}
	return p
}

// l2fwd moves up to 64 frames from one socket to another and returns how many.
func (g *group) l2fwd(from, to *Socket, v []frame.Ref) int {
	to.Complete(g.p)
	n := from.Receive(g.a, v)
	sent := to.Transmit(g.a, v[:n])
	for _, r := range v[sent:n] {
		g.p.Free(r)
	}
	if err := to.Kick(); err != nil {
		g.t.Fatal(err)
	}
	from.Fill(g.p)
	return n
}

// conserved checks that every chunk is in the pool or in a socket.
func (g *group) conserved() {
	g.t.Helper()
	n := g.p.Available()
	for _, p := range g.ports {
		for _, s := range p.Sockets() {
			n += s.Held()
		}
	}
	if n != g.u.Chunks() {
		g.t.Fatalf("%d chunks in pool and sockets, want %d", n, g.u.Chunks())
	}
}

// closeAll closes all ports and checks that every chunk comes back once.
func (g *group) closeAll() {
	g.t.Helper()
	for _, p := range g.ports {
		if err := p.Close(); err != nil {
			g.t.Fatal(err)
		}
		for _, s := range p.Sockets() {
			s.Reclaim(g.p)
		}
	}
	g.ports = nil
	wantWholePool(g.t, g.p, g.u.Chunks())
}
