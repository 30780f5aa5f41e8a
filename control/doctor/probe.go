package doctor

import (
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"gswitch/dataplane"
	"gswitch/dataplane/xsk"
)

// probe asks the kernel about an interface and, for a veth, its other end.
func probe(netns, name string) (*Link, error) {
	var l *Link
	peer, id := 0, -1
	err := xsk.InNetNS(netns, func() error {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return fmt.Errorf("interface %s: %w; see ip link", name, err)
		}
		l = describe(netns, link)
		if l.Kind == "veth" {
			peer, id = link.Attrs().ParentIndex, link.Attrs().NetNsID
		}
		return nil
	})
	if err != nil {
		return l, err
	}
	if l.Carries, err = dataplane.Carries(netns, name); err != nil || peer == 0 {
		return l, err
	}
	for _, ns := range namespaces(netns, id) {
		_ = xsk.InNetNS(ns, func() error { // if it no longer exists, it is not the peer's
			link, err := netlink.LinkByIndex(peer)
			if err == nil && link.Type() == "veth" {
				l.Peer = describe(ns, link)
			}
			return err
		})
		if l.Peer != nil {
			break
		}
	}
	return l, nil
}

// describe reads the state of an interface in the thread's namespace.
func describe(netns string, link netlink.Link) *Link {
	at := link.Attrs()
	l := &Link{Name: at.Name, NetNS: netns, Kind: link.Type(), Up: at.RawFlags&unix.IFF_UP != 0, MTU: at.MTU, RxQueues: at.NumRxQueues, TxQueues: at.NumTxQueues, On: map[string]bool{}}
	if x := at.Xdp; x != nil && x.Attached {
		l.XDP, l.XDPID = "native", x.ProgId
		if x.AttachMode == unix.XDP_FLAGS_SKB_MODE {
			l.XDP = "generic"
		}
	}
	if qdiscs, err := netlink.QdiscList(link); err == nil {
		for _, q := range qdiscs {
			if q.Attrs().Parent == netlink.HANDLE_ROOT {
				l.Qdisc = q.Type()
			}
		}
	}
	if c, err := dataplane.FindNICClock(at.Name); err == nil {
		l.NICClock = c.Device
		if err := c.Readable(); err != nil {
			l.Unread = err.Error()
		}
	}
	et, err := dataplane.OpenEthtool()
	if err != nil {
		return l
	}
	defer et.Close()
	if driver, err := et.DriverName(at.Name); err == nil {
		l.Driver = driver
	}
	if on, err := et.Features(at.Name); err == nil {
		l.On = on
	}
	return l
}

// namespaces returns the namespaces in which the other end may be: the same one for id
// -1, and otherwise those to which netns refers by id.
func namespaces(netns string, id int) []string {
	if id < 0 {
		return []string{netns}
	}
	return dataplane.FindNetNS(netns, id, nil)
}

// Interface checks an interface, named NAME or NETNS/NAME. With fix it turns off the
// offloads of a veth's far end that break its frames. It fixes nothing else: this has no
// effect on frames that do not come here.
func Interface(name string, chunk int, fix bool) ([]Finding, error) {
	netns, iface := "", name
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		netns, iface = name[:i], name[i+1:]
	}
	l, err := probe(netns, iface)
	if err != nil {
		return nil, err
	}
	fixed := ""
	if fix && l.Peer != nil {
		if list := l.Peer.harmful(); list != nil {
			if fixed, err = l.Peer.turnOff(list); err != nil {
				return nil, err
			}
			if l, err = probe(netns, iface); err != nil {
				return nil, err
			}
		}
	}
	v := l.check(chunk)
	if fixed != "" {
		v[len(v)-1].Fixed = fixed
	}
	return v, nil
}

func (l *Link) turnOff(list []offload) (string, error) {
	off, names := map[string]bool{}, []string{}
	for _, o := range list {
		off[o.feature] = false
		names = append(names, o.feature)
	}
	err := xsk.InNetNS(l.NetNS, func() error {
		et, err := dataplane.OpenEthtool()
		if err != nil {
			return err
		}
		defer et.Close()
		return et.Change(l.Name, off)
	})
	if err != nil {
		return "", fmt.Errorf("%s: offloads: %w (needs CAP_NET_ADMIN, and CAP_SYS_ADMIN for another namespace)", l.Name, err)
	}
	return fmt.Sprintf("turned off at %s: %s", l.Name, strings.Join(names, ", ")), nil
}
