package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"gswitch/dataplane"
	"gswitch/fabric"
)

// hostSysctls keep a host from sending until something is sent to it: no router solicitation
// and no waiting for duplicate address detection, since the plan has none.
var hostSysctls = map[string]string{
	"net/ipv6/conf/all/accept_ra":                "0",
	"net/ipv6/conf/default/accept_ra":            "0",
	"net/ipv6/conf/all/accept_dad":               "0",
	"net/ipv6/conf/default/accept_dad":           "0",
	"net/ipv6/conf/all/router_solicitations":     "0",
	"net/ipv6/conf/default/router_solicitations": "0",
	"net/ipv4/ping_group_range":                  "0 2147483647",
}

// switchSysctls keep the kernel out of what belongs to the switches.
var switchSysctls = map[string]string{
	"net/ipv6/conf/all/disable_ipv6":     "1",
	"net/ipv6/conf/default/disable_ipv6": "1",
}

// setSysctls writes settings of the calling thread's namespace. One that the
// kernel does not have (IPv6 may be absent) is skipped.
func setSysctls(values map[string]string) error {
	for key, v := range values {
		err := os.WriteFile("/proc/sys/"+key, []byte(v), 0)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot set %s: %w", strings.ReplaceAll(key, "/", "."), err)
		}
	}
	return nil
}

// wire makes a veth pair with both ends in their namespaces from the start,
// so that it goes when they go.
func wire(v *Veth, mtu int, a, b netns.NsHandle) error {
	h, err := netlink.NewHandleAt(a)
	if err != nil {
		return err
	}
	defer h.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.HardwareAddr = v.A.Name, mtu, net.HardwareAddr(v.A.mac[:])
	attrs.NumTxQueues, attrs.NumRxQueues = 1, 1
	pair := &netlink.Veth{
		LinkAttrs: attrs, PeerName: v.B.Name, PeerHardwareAddr: net.HardwareAddr(v.B.mac[:]), PeerNamespace: netlink.NsFd(int(b)),
		PeerMTU: uint32(mtu), PeerNumTxQueues: 1, PeerNumRxQueues: 1,
	}
	if err := h.LinkAdd(pair); err != nil {
		return fmt.Errorf("cannot make the veth pair %s - %s: %w", v.A.Name, v.B.Name, err)
	}
	return nil
}

// dress sets up one end of a pair and brings it up. A host sends at the rate
// of its link; what a switch sends is paced by the switch.
func dress(dev Dev, ns netns.NsHandle, host bool, link *fabric.Link) error {
	return inNamespace(ns, func() error { return finish(dev.Name, host, link) })
}

// finish is dress in the namespace of the calling thread.
func finish(dev string, host bool, link *fabric.Link) error {
	if err := setOffloads(dev, host); err != nil {
		return fmt.Errorf("interface %s: %w", dev, err)
	}
	h, err := netlink.NewHandle()
	if err != nil {
		return err
	}
	defer h.Close()
	nic, err := h.LinkByName(dev)
	if err != nil {
		return fmt.Errorf("interface %s: %w", dev, err)
	}
	q := queue(nic.Attrs().Index, 0, 0)
	if host {
		q = queue(nic.Attrs().Index, link.Rate, link.MTU)
	}
	if err := h.QdiscReplace(q); err != nil {
		return fmt.Errorf("interface %s: cannot give it a queue (%s): %w", dev, q.Type(), err)
	}
	if err := h.LinkSetUp(nic); err != nil {
		return fmt.Errorf("interface %s: cannot bring it up: %w", dev, err)
	}
	return nil
}

// Bounds of the queue that paces a host.
const (
	maxPaced  = 32e9             // bit/s; above this the kernel is the limit, and a token bucket's rate has 32 bits
	hostBurst = time.Millisecond // of the link's rate: how far a host that was late may catch up
	hostQueue = 1000             // full frames that wait, as on a network card
)

// queue returns the queueing discipline of an interface: a token bucket at
// the link's rate, or a plain queue. Without any, a veth drops silently what
// its peer has no room for; with one it stops its sender.
func queue(index int, rate uint64, mtu int) netlink.Qdisc {
	at := netlink.QdiscAttrs{LinkIndex: index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}
	if rate == 0 || rate > maxPaced {
		return &netlink.GenericQdisc{QdiscType: "pfifo", QdiscAttrs: at}
	}
	frame := mtu + 18 // Ethernet header and one VLAN tag
	// The bucket does not see preamble, checksum and gap (8 + 4 + 12 bytes,
	// IEEE 802.3 clause 4); its rate leaves room for those of full frames.
	bytes := rate / 8 * uint64(frame) / uint64(frame+24)
	burst := max(uint64(2*frame), bytes*uint64(hostBurst)/uint64(time.Second))
	return &netlink.Tbf{QdiscAttrs: at, Rate: bytes, Limit: uint32(burst) + hostQueue*uint32(frame), Buffer: uint32(netlink.Xmittime(bytes, uint32(burst)))}
}

// setOffloads turns off what would leave frames unfinished when they reach an
// AF_XDP socket: checksums that hardware should fill in, segments that
// hardware should cut, VLAN tags beside the frame. A host receives through
// GRO, because only then a full receive ring holds the sender back.
func setOffloads(dev string, host bool) error {
	e, err := dataplane.OpenEthtool()
	if err != nil {
		return err
	}
	defer e.Close()
	have, err := e.FeaturesWithState(dev)
	if err != nil {
		return fmt.Errorf("cannot read its offloads: %w", err)
	}
	change := map[string]bool{}
	for name, s := range have {
		if s.Available && s.Active && unfinished(name) {
			change[name] = false
		}
	}
	if gro, ok := have["rx-gro"]; ok && gro.Available && gro.Active != host {
		change["rx-gro"] = host
	}
	if len(change) == 0 {
		return nil
	}
	if err := e.Change(dev, change); err != nil {
		return fmt.Errorf("cannot turn off its offloads: %w", err)
	}
	return nil
}

// unfinished reports whether a feature lets frames pass that are not yet as
// they are on a wire. The names are those of ethtool -k.
func unfinished(feature string) bool {
	return strings.Contains(feature, "segmentation") || strings.HasPrefix(feature, "tx-checksum-") ||
		strings.Contains(feature, "vlan-") && strings.Contains(feature, "hw-") || feature == "tx-gso-list"
}

// address gives a host its addresses and its way out.
func address(n *fabric.NodePlan, ns netns.NsHandle) error {
	h, err := netlink.NewHandleAt(ns)
	if err != nil {
		return err
	}
	defer h.Close()
	link, err := h.LinkByName(hostDev)
	if err != nil {
		return err
	}
	for _, a := range n.Address {
		addr := &netlink.Addr{IPNet: ipNet(a)}
		if a.Addr().Is6() {
			addr.Flags = unix.IFA_F_NODAD
		}
		if err := h.AddrAdd(link, addr); err != nil && !noIPv6(a.Addr(), err) {
			return fmt.Errorf("cannot add address %v: %w", a, err)
		}
	}
	for _, gw := range n.Gateway {
		everything := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		if gw.Is6() {
			everything = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		}
		r := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: ipNet(everything), Gw: gw.AsSlice()}
		if err := h.RouteAdd(r); err != nil && !noIPv6(gw, err) {
			return fmt.Errorf("cannot add the default route via %v: %w", gw, err)
		}
	}
	return nil
}

// noIPv6 reports whether err says that the kernel has no IPv6, or has it
// turned off: hosts then do without.
func noIPv6(a netip.Addr, err error) bool {
	return a.Is6() && (errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EACCES))
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
