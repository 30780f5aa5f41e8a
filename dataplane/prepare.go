package dataplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gswitch/gswitch/dataplane/xsk"
)

// preparation is what was changed on an interface so that AF_XDP forwards
// what a cable would.
type preparation struct {
	done     []string
	warnings []string
	undo     []func() error // run in the interface's namespace, last first
}

// offloadsOff are the features that make an interface hand over frames other
// than those on the wire, or expect it to finish what we send.
//
// The VLAN features hide tags from AF_XDP (they travel beside the bytes);
// the segmentation and aggregation features make frames longer than the MTU;
// the checksum feature leaves fields unfilled on a veth.
var offloadsOff = []string{
	"tx-checksum-ip-generic", "tx-checksum-ipv4", "tx-checksum-ipv6", "tx-checksum-sctp",
	"tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-tcp-ecn-segmentation", "tx-tcp-mangleid-segmentation",
	"tx-generic-segmentation", "tx-udp-segmentation",
	"rx-gro", "rx-gro-hw", "rx-lro",
	"tx-vlan-hw-insert", "rx-vlan-hw-parse", "tx-vlan-stag-hw-insert", "rx-vlan-stag-hw-parse",
}

// queueLength is the shortest transmit queue of an interface: a full pfifo
// stops us, and its limit is this many packets.
const queueLength = 1000

// prepare does what an interface needs before a program is attached: link up,
// promiscuous, offloads off, and on a veth a real queue. A veth has none by
// default and then drops what its peer cannot take without telling anybody;
// with one it stops the sender, which is AF_XDP here. The calling thread is
// in the namespace of link.
func prepare(link netlink.Link) (*preparation, error) {
	p := &preparation{}
	at := link.Attrs()
	veth := link.Type() == "veth"
	// A veth is a cable of ours: its settings are not put back. They would be
	// lost with it anyway, and traffic of a next run needs the same.
	onClose := func(f func() error) {
		if !veth {
			p.undo = append(p.undo, f)
		}
	}
	if at.RawFlags&unix.IFF_LOOPBACK == 0 {
		if err := p.offloads(at.Name, onClose); err != nil {
			return p, err
		}
	}
	if veth {
		if err := p.queue(link); err != nil {
			return p, err
		}
	}
	if at.RawFlags&unix.IFF_PROMISC == 0 {
		if err := netlink.SetPromiscOn(link); err != nil {
			return p, fmt.Errorf("interface %s: promiscuous mode (needs CAP_NET_ADMIN): %w", at.Name, err)
		}
		onClose(func() error { return netlink.SetPromiscOff(link) })
		p.done = append(p.done, "promiscuous on")
	}
	if at.RawFlags&unix.IFF_UP == 0 {
		if err := netlink.LinkSetUp(link); err != nil {
			return p, fmt.Errorf("interface %s: set up: %w", at.Name, err)
		}
		onClose(func() error { return netlink.LinkSetDown(link) })
		p.done = append(p.done, "link set up")
	}
	return p, nil
}

// offloads turns off what is on and can be.
func (p *preparation) offloads(name string, onClose func(func() error)) error {
	et, err := ethtool.NewEthtool()
	if err != nil {
		return fmt.Errorf("interface %s: ethtool: %w", name, err)
	}
	defer et.Close()
	features, err := et.FeaturesWithState(name)
	if err != nil {
		p.warnings = append(p.warnings, fmt.Sprintf("offload settings cannot be read: %v", err))
		return nil
	}
	for _, f := range offloadsOff {
		s, known := features[f]
		if !known || !s.Active {
			continue
		}
		if !s.Available || s.NeverChanged {
			p.warnings = append(p.warnings, f+" is on and cannot be turned off")
			continue
		}
		if err := et.Change(name, map[string]bool{f: false}); err != nil {
			p.warnings = append(p.warnings, fmt.Sprintf("%s is on and could not be turned off: %v", f, err))
			continue
		}
		p.done = append(p.done, f+" off")
		onClose(func() error {
			et, err := ethtool.NewEthtool()
			if err != nil {
				return err
			}
			defer et.Close()
			return et.Change(name, map[string]bool{f: true})
		})
	}
	return nil
}

// queue gives a veth a pfifo.
func (p *preparation) queue(link netlink.Link) error {
	at := link.Attrs()
	if at.TxQLen < queueLength {
		if err := netlink.LinkSetTxQLen(link, queueLength); err != nil {
			return fmt.Errorf("interface %s: set txqueuelen: %w", at.Name, err)
		}
		p.done = append(p.done, fmt.Sprintf("txqueuelen %d", queueLength))
	}
	existing, err := netlink.QdiscList(link)
	if err != nil {
		return fmt.Errorf("interface %s: list queueing disciplines: %w", at.Name, err)
	}
	if slices.ContainsFunc(existing, func(q netlink.Qdisc) bool {
		return q.Attrs().Parent == netlink.HANDLE_ROOT && q.Type() != "noqueue"
	}) {
		return nil // whatever it is, it stops the sender
	}
	q := &netlink.GenericQdisc{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: at.Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		QdiscType:  "pfifo",
	}
	if err := netlink.QdiscReplace(q); err != nil {
		p.warnings = append(p.warnings, fmt.Sprintf("no pfifo queueing discipline (%v): what the peer cannot take is lost silently", err))
		return nil
	}
	p.done = append(p.done, "qdisc pfifo")
	return nil
}

// peerHarm are the features of the other end of a veth that break what
// reaches AF_XDP, and what to do.
var peerHarm = []struct{ feature, harm string }{
	{"tx-checksum-ip-generic", "frames reach the switch with unfilled checksums; run: ethtool -K %s tx off"},
	{"tx-vlan-hw-insert", "VLAN tags of the kernel do not reach the switch; run: ethtool -K %s txvlan off"},
}

// peerWarnings looks at the other end of a veth in the namespaces that can be
// known: its own, those given, and those under /run/netns.
func peerWarnings(netns string, link netlink.Link, others []string) []string {
	if link.Type() != "veth" || link.Attrs().ParentIndex == 0 {
		return nil
	}
	candidates := []string{netns}
	if id := link.Attrs().NetNsID; id >= 0 {
		candidates = findNetNS(netns, id, others)
	}
	for _, ns := range candidates {
		var warnings []string
		err := xsk.InNetNS(ns, func() error {
			peer, err := netlink.LinkByIndex(link.Attrs().ParentIndex)
			if err != nil {
				return err
			}
			et, err := ethtool.NewEthtool()
			if err != nil {
				return err
			}
			defer et.Close()
			features, err := et.Features(peer.Attrs().Name)
			if err != nil {
				return err
			}
			for _, h := range peerHarm {
				if features[h.feature] {
					w := fmt.Sprintf("peer %s: %s is on: ", ifaceKey{ns, peer.Attrs().Name}, h.feature)
					warnings = append(warnings, w+fmt.Sprintf(h.harm, peer.Attrs().Name))
				}
			}
			return nil
		})
		if err == nil {
			return warnings
		}
	}
	return nil
}

// findNetNS returns the namespaces that netns knows by the number id.
func findNetNS(netns string, id int, others []string) (found []string) {
	candidates := append(slices.Clone(others), "")
	names, err := os.ReadDir("/run/netns")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, n := range names {
		candidates = append(candidates, n.Name())
	}
	_ = xsk.InNetNS(netns, func() error {
		for _, c := range candidates {
			f, err := os.Open(netnsPath(c))
			if err != nil {
				continue
			}
			got, err := netlink.GetNetNsIdByFd(int(f.Fd()))
			f.Close()
			if err == nil && got == id {
				found = append(found, c)
			}
		}
		return nil
	})
	return found
}

// netnsPath returns the file that stands for a network namespace.
func netnsPath(netns string) string {
	switch {
	case netns == "":
		return "/proc/self/ns/net"
	case filepath.IsAbs(netns) || filepath.Base(netns) != netns:
		return netns
	}
	return filepath.Join("/run/netns", netns)
}
