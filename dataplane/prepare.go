package dataplane

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"gswitch/dataplane/xsk"
)

// preparation is the list of changes to an interface that make AF_XDP receive and send
// the frames of the cable.
type preparation struct {
	done     []string
	already  []string // settings that were already as required
	warnings []string
	undo     []func() error // run in the interface's namespace, last first
	nic      *follower      // follows the clock with which the hardware time-stamps PTP frames; nil if there is none
}

// setup lists all settings that the switch relies on.
func (p *preparation) setup() []string {
	list := slices.Clone(p.done)
	if len(p.already) > 0 {
		list = append(list, "already so: "+strings.Join(p.already, ", "))
	}
	return list
}

// offloadsOff are the features that make an interface deliver other frames than those on
// the wire, or expect it to complete what we send.
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

// queueLength is the least length of an interface's transmit queue: a full pfifo stops
// the sender, and its limit is this many packets.
const queueLength = 1000

// prepare makes the changes that an interface needs before a program is attached: link
// up, promiscuous mode, offloads off and, on a veth, a real queue. A veth has no queue by
// default and silently drops what its peer cannot accept; with a queue it stops the
// sender, which is AF_XDP here. The calling thread must be in the namespace of link.
//
// Settings that were as required are not undone at the end: another program, or a run
// that was killed, made them.
func prepare(link netlink.Link) (*preparation, error) {
	p := &preparation{}
	at := link.Attrs()
	veth := link.Type() == "veth"
	if at.RawFlags&unix.IFF_LOOPBACK == 0 {
		if err := p.offloads(at.Name); err != nil {
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
		p.did("promiscuous on", func() error { return netlink.SetPromiscOff(link) })
	} else {
		p.already = append(p.already, "promiscuous on")
	}
	if at.RawFlags&unix.IFF_UP == 0 {
		if err := netlink.LinkSetUp(link); err != nil {
			return p, fmt.Errorf("interface %s: set up: %w", at.Name, err)
		}
		p.did("link set up", func() error { return netlink.LinkSetDown(link) })
	} else {
		p.already = append(p.already, "link up")
	}
	return p, nil
}

// stamps enables hardware time stamps of PTP frames, if the hardware supports them.
func (p *preparation) stamps(name string) {
	c, err := FindNICClock(name)
	if err != nil {
		return // the XDP program stamps
	}
	nic, undo, err := c.stamping(name)
	if err != nil {
		p.warnings = append(p.warnings, fmt.Sprintf("frames of PTP have no stamps of the hardware: %v", err))
		return
	}
	p.nic = nic
	p.did("stamps by "+c.Device, undo)
}

// did records a change and how to undo it.
func (p *preparation) did(what string, undo func() error) {
	p.done, p.undo = append(p.done, what), append(p.undo, undo)
}

// offloads turns off the features that are on and can be turned off.
func (p *preparation) offloads(name string) error {
	et, err := OpenEthtool()
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
		if !known {
			continue
		}
		if !s.Active {
			if s.Available && !s.NeverChanged {
				p.already = append(p.already, f+" off")
			}
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
		p.did(f+" off", func() error {
			et, err := OpenEthtool()
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
		p.did(fmt.Sprintf("txqueuelen %d", queueLength), func() error { return netlink.LinkSetTxQLen(link, at.TxQLen) })
	}
	existing, err := netlink.QdiscList(link)
	if err != nil {
		return fmt.Errorf("interface %s: list queueing disciplines: %w", at.Name, err)
	}
	if i := slices.IndexFunc(existing, func(q netlink.Qdisc) bool {
		return q.Attrs().Parent == netlink.HANDLE_ROOT && q.Type() != "noqueue"
	}); i >= 0 {
		p.already = append(p.already, "qdisc "+existing[i].Type())
		return nil // any other queue stops the sender, too
	}
	q := &netlink.GenericQdisc{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: at.Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		QdiscType:  "pfifo",
	}
	if err := netlink.QdiscReplace(q); err != nil {
		p.warnings = append(p.warnings, fmt.Sprintf("no pfifo queueing discipline (%v): what the peer cannot take is lost silently", err))
		return nil
	}
	p.did("qdisc pfifo", func() error { return netlink.QdiscDel(q) })
	return nil
}

// peerOffloads are the features of a veth's other end that break what reaches AF_XDP.
var peerOffloads = []struct{ feature, name, harm, off string }{
	{checksumFeature, "transmit checksums", "with unfilled checksums", "tx off tso off gso off"},
	{"tx-vlan-hw-insert", "VLAN offload", "without the VLAN tags of the kernel", "txvlan off"},
}

// checksumFeature does no harm if the node completes checksums itself.
const checksumFeature = "tx-checksum-ip-generic"

// peerWarning describes the harmful features of a veth's other end, or returns "". The
// part before the colon fits below a table.
func peerWarning(at ifaceKey, completes bool, on func(feature string) bool) string {
	var names, harms, off []string
	for _, h := range peerOffloads {
		if on(h.feature) && (!completes || h.feature != checksumFeature) {
			names, harms, off = append(names, h.name), append(harms, h.feature+" is on, its frames reach the switch "+h.harm), append(off, h.off)
		}
	}
	if names == nil {
		return ""
	}
	run := "ethtool"
	switch {
	case strings.Contains(at.netns, "/"):
		run = "nsenter --net=" + at.netns + " ethtool"
	case at.netns != "":
		run = "ip netns exec " + at.netns + " ethtool"
	}
	return fmt.Sprintf("peer %s has %s on: %s; run: %s -K %s %s",
		at.name, strings.Join(names, " and "), strings.Join(harms, "; "), run, at.name, strings.Join(off, " "))
}

// peerWarnings examines the other end of a veth in the namespaces that are known: its
// own, those given, and those under /run/netns.
func peerWarnings(netns string, link netlink.Link, completes bool, others []string) (warnings []string, looked bool) {
	if link.Type() != "veth" || link.Attrs().ParentIndex == 0 {
		return nil, true
	}
	candidates := []string{netns}
	if id := link.Attrs().NetNsID; id >= 0 {
		candidates = FindNetNS(netns, id, others)
	}
	for _, ns := range candidates {
		warnings = nil
		err := xsk.InNetNS(ns, func() error {
			peer, err := netlink.LinkByIndex(link.Attrs().ParentIndex)
			if err != nil {
				return err
			}
			et, err := OpenEthtool()
			if err != nil {
				return err
			}
			defer et.Close()
			features, err := et.Features(peer.Attrs().Name)
			if err != nil {
				return err
			}
			if w := peerWarning(ifaceKey{ns, peer.Attrs().Name}, completes, func(f string) bool { return features[f] }); w != "" {
				warnings = append(warnings, w)
			}
			return nil
		})
		if err == nil {
			return warnings, true
		}
	}
	return nil, false
}

// FindNetNS returns the namespaces to which netns refers by the number id. It searches
// others, the process's own namespace ("") and those under /run/netns.
func FindNetNS(netns string, id int, others []string) (found []string) {
	candidates := append(slices.Clone(others), "")
	names, err := os.ReadDir("/run/netns")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, n := range names {
		candidates = append(candidates, n.Name())
	}
	// Opened before the thread enters another namespace, since the thread's own may be
	// the one that represents the process's.
	files := make([]*os.File, len(candidates))
	for i, c := range candidates {
		if f, err := os.Open(xsk.NetNSPath(c)); err == nil {
			files[i] = f
			defer f.Close()
		}
	}
	_ = xsk.InNetNS(netns, func() error {
		for i, f := range files {
			if f == nil {
				continue
			}
			if got, err := netlink.GetNetNsIdByFd(int(f.Fd())); err == nil && got == id {
				found = append(found, candidates[i])
			}
		}
		return nil
	})
	return found
}
