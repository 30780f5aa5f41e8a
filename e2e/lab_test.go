package e2e

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"gswitch/dataplane/xsk"
	"gswitch/dataplane/xsk/xsktest"
	"gswitch/wire"
)

// lab is a namespace for switches and one for each host. Host i has eth0,
// whose other end is d<i> in the switches' namespace.
type lab struct {
	sw    string
	hosts []*host
	opts  labOptions
}

type labOptions struct {
	queues   int  // of each veth, each way
	mtu      int  // of each veth
	ipv6     bool // without it, nothing but what a test sends is on the cables
	offloads bool // of the hosts: leave them on
}

// host is a namespace with one interface.
type host struct {
	ns  string
	mac wire.MAC
	lab *lab
	i   int
}

var labs atomic.Int32

// newLab makes n hosts with cables. It skips the test where that is not
// allowed.
func newLab(t testing.TB, n int, opts labOptions) *lab {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root for network namespaces and AF_XDP")
	}
	opts.queues, opts.mtu = max(1, opts.queues), max(1500, opts.mtu)
	id := fmt.Sprintf("%s%d-%d", prefix, os.Getpid(), labs.Add(1))
	l := &lab{sw: id + "-sw", opts: opts}
	xsktest.NetNS(t, l.sw)
	for i := range n {
		h := &host{ns: fmt.Sprintf("%s-h%d", id, i), mac: wire.MAC{2, 0xe2, 0, 0, 0, byte(i + 1)}, lab: l, i: i}
		xsktest.NetNS(t, h.ns)
		l.hosts = append(l.hosts, h)
		l.cable(t, h)
	}
	return l
}

// in runs f in a namespace.
func in(t testing.TB, ns string, f func() error) {
	t.Helper()
	if err := xsk.InNetNS(ns, f); err != nil {
		t.Fatalf("in %s: %v", ns, err)
	}
}

// port is the name of the switch's end of the host's cable.
func (h *host) port() string { return fmt.Sprintf("d%d", h.i) }

// cable makes the veth pair of a host and sets the host's end up, as hosts
// are to be set up for a switch in user space.
func (l *lab) cable(t testing.TB, h *host) {
	t.Helper()
	target, err := netns.GetFromName(h.ns)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	in(t, l.sw, func() error {
		at := netlink.NewLinkAttrs()
		at.Name, at.MTU, at.NumTxQueues, at.NumRxQueues = h.port(), l.opts.mtu, l.opts.queues, l.opts.queues
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: at, PeerName: "eth0", PeerNamespace: netlink.NsFd(target), PeerMTU: uint32(l.opts.mtu),
			PeerHardwareAddr: net.HardwareAddr(h.mac[:]), PeerNumTxQueues: uint32(l.opts.queues), PeerNumRxQueues: uint32(l.opts.queues)})
	})
	in(t, h.ns, func() error {
		if !l.opts.ipv6 {
			if err := os.WriteFile("/proc/sys/net/ipv6/conf/eth0/disable_ipv6", []byte("1"), 0); err != nil {
				return err
			}
		}
		if !l.opts.offloads {
			if err := offloadsOff("eth0"); err != nil {
				return err
			}
		}
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		return netlink.LinkSetUp(link)
	})
	// A test of what the switch forwards must not see frames of the kernel on its end.
	in(t, l.sw, func() error {
		return os.WriteFile(filepath.Join("/proc/sys/net/ipv6/conf", h.port(), "disable_ipv6"), []byte("1"), 0)
	})
}

// offloadsOff makes the kernel finish frames before it sends them.
func offloadsOff(name string) error {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return err
	}
	defer e.Close()
	return e.Change(name, map[string]bool{"tx-checksum-ip-generic": false, "tx-vlan-hw-insert": false, "tx-generic-segmentation": false,
		"tx-tcp-segmentation": false, "tx-tcp6-segmentation": false, "tx-udp-segmentation": false})
}

// wire joins the switches by a veth pair of their own.
func (l *lab) wire(t testing.TB, a, b string) {
	t.Helper()
	in(t, l.sw, func() error {
		at := netlink.NewLinkAttrs()
		at.Name = a
		if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: at, PeerName: b}); err != nil {
			return err
		}
		for _, name := range []string{a, b} {
			if err := os.WriteFile(filepath.Join("/proc/sys/net/ipv6/conf", name, "disable_ipv6"), []byte("1"), 0); err != nil {
				return err
			}
			link, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			if err := netlink.LinkSetUp(link); err != nil {
				return err
			}
		}
		return nil
	})
}

// link changes an interface of a namespace.
func link(t testing.TB, ns, name string, f func(netlink.Link) error) {
	t.Helper()
	in(t, ns, func() error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		return f(l)
	})
}

// address gives the host addresses such as 10.0.0.1/24, and default routes.
func (h *host) address(t testing.TB, addresses []string, gateways ...string) {
	t.Helper()
	link(t, h.ns, "eth0", func(l netlink.Link) error {
		for _, s := range addresses {
			a, err := netlink.ParseAddr(s)
			if err != nil {
				return err
			}
			a.Flags = 0x02 // IFA_F_NODAD: usable at once
			if err := netlink.AddrAdd(l, a); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
		for _, s := range gateways {
			if err := netlink.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Gw: netip.MustParseAddr(s).AsSlice()}); err != nil {
				return fmt.Errorf("default via %s: %w", s, err)
			}
		}
		return nil
	})
}

// xdpPrograms returns the interfaces of a namespace that carry an XDP program.
func xdpPrograms(t testing.TB, ns string) (names []string) {
	t.Helper()
	in(t, ns, attached(&names))
	return names
}

// attached lists the interfaces of a namespace that have an XDP program.
func attached(names *[]string) func() error {
	return func() error {
		links, err := netlink.LinkList()
		for _, l := range links {
			if x := l.Attrs().Xdp; x != nil && x.Attached {
				*names = append(*names, l.Attrs().Name)
			}
		}
		return err
	}
}

// lost is how many frames the kernel has dropped on the cable of a host, at
// either end, as it counts them.
func (h *host) lost(t testing.TB) (n uint64) {
	t.Helper()
	add := func(l netlink.Link) error {
		s := l.Attrs().Statistics
		n += s.RxDropped + s.TxDropped
		return nil
	}
	link(t, h.ns, "eth0", add)
	link(t, h.lab.sw, h.port(), add)
	return n
}

// eventually waits until f finds nothing wrong.
func eventually(t testing.TB, what string, f func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: still not so: %v", what, err)
		}
		time.Sleep(pause)
	}
}
