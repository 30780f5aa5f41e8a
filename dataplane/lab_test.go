package dataplane

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"gswitch/dataplane/xsk"
	"gswitch/dataplane/xsk/xsktest"
)

// lab is a switch namespace and a host namespace, joined by veth pairs:
// d0, d1 ... in the former, h0, h1 ... in the latter.
type lab struct {
	dut, host string
}

var labs atomic.Int32

// newLab builds a lab with n pairs, of the given number of queues. It skips
// the test where that is not allowed.
func newLab(t testing.TB, n, queues int) *lab {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root for network namespaces and AF_XDP")
	}
	id := fmt.Sprintf("dataplane-%d-%d", os.Getpid(), labs.Add(1))
	l := &lab{dut: id + "-dut", host: id + "-host"}
	xsktest.NetNS(t, l.dut)
	xsktest.NetNS(t, l.host)
	for i := range n {
		l.cable(t, i, queues)
	}
	return l
}

// cable makes the pair i.
func (l *lab) cable(t testing.TB, i, queues int) {
	t.Helper()
	host, err := netns.GetFromName(l.host)
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	l.in(t, l.dut, func() error {
		at := netlink.NewLinkAttrs()
		at.Name = fmt.Sprintf("d%d", i)
		at.NumTxQueues, at.NumRxQueues = queues, queues
		v := &netlink.Veth{LinkAttrs: at, PeerName: fmt.Sprintf("h%d", i), PeerNamespace: netlink.NsFd(host),
			PeerNumTxQueues: uint32(queues), PeerNumRxQueues: uint32(queues)}
		return netlink.LinkAdd(v)
	})
	l.in(t, l.host, func() error {
		// No IPv6 neighbour chatter in the counts.
		os.WriteFile(filepath.Join("/proc/sys/net/ipv6/conf", fmt.Sprintf("h%d", i), "disable_ipv6"), []byte("1"), 0)
		return nil
	})
	l.set(t, l.host, fmt.Sprintf("h%d", i), true)
}

// in runs f in one of the namespaces.
func (l *lab) in(t testing.TB, ns string, f func() error) {
	t.Helper()
	if err := xsk.InNetNS(ns, f); err != nil {
		t.Fatal(err)
	}
}

func (l *lab) set(t testing.TB, ns, name string, up bool) {
	t.Helper()
	l.in(t, ns, func() error {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		if up {
			return netlink.LinkSetUp(link)
		}
		return netlink.LinkSetDown(link)
	})
}

// socket opens a raw packet socket on an interface of the host namespace
// that sees frames of the test's EtherType.
func (l *lab) socket(t testing.TB, name string) int {
	t.Helper()
	const proto = 0xb588 // 0x88b5 in network order
	fd := -1
	l.in(t, l.host, func() error {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, proto); err != nil {
			return err
		}
		// A test that waits for a frame that never comes fails by name.
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 10})
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 32<<20)
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: proto, Ifindex: link.Attrs().Index})
	})
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// send sends frame number n.
func send(t testing.TB, fd int, n uint64, size int) {
	t.Helper()
	b := make([]byte, size)
	setNumber(b, n)
	if _, err := unix.Write(fd, b); err != nil {
		t.Fatalf("send: %v", err)
	}
}

// expect receives frame number n.
func expect(t testing.TB, fd int, n uint64) {
	t.Helper()
	b := make([]byte, 1<<16)
	for {
		k, err := unix.Read(fd, b)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			t.Fatalf("frame %d did not arrive: %v", n, err)
		}
		if got := number(b[:k]); got != n {
			t.Fatalf("frame %d arrived, want %d", got, n)
		}
		return
	}
}
