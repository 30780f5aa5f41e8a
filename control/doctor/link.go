package doctor

import (
	"fmt"
	"strings"
)

// Link describes an interface.
type Link struct {
	Name     string
	NetNS    string // "" is that of the program
	Kind     string // veth, device, ...
	Driver   string
	Up       bool
	MTU      int
	RxQueues int
	TxQueues int
	XDP      string // mode of the attached program; empty: none
	XDPID    uint32
	Qdisc    string          // the root's
	On       map[string]bool // offloads that are on, by ethtool's names
	NICClock string          // clock that time-stamps PTP frames, such as /dev/ptp0; empty: none
	Unread   string          // why that clock cannot be read; empty: it can
	Carries  string          // what would be lost if it were taken over, as dataplane.Carries words it
	Peer     *Link           // other end of a veth, if found
}

// run returns a command that runs in the namespace of an interface.
func (l *Link) run(format string, args ...any) string {
	c := fmt.Sprintf(format, args...)
	switch {
	case strings.Contains(l.NetNS, "/"):
		return "nsenter --net=" + l.NetNS + " " + c
	case l.NetNS != "":
		return "ip netns exec " + l.NetNS + " " + c
	}
	return c
}

// nativeDrivers lists drivers that run XDP programs before they build an sk_buff; those
// with true pass frames to AF_XDP without a copy.
var nativeDrivers = map[string]bool{"veth": false, "virtio_net": false, "tun": false, "ena": false, "gve": false, "hv_netvsc": false, "bnxt_en": false,
	"i40e": true, "ice": true, "ixgbe": true, "igb": true, "igc": true, "mlx5_core": true, "stmmac": true}

// offload is a feature that breaks frames which cross a veth between the kernel and
// AF_XDP: its name, the symptom, and ethtool's word for it.
type offload struct{ feature, harm, word string }

// The sender's end: its frames are incomplete when they cross.
var peerOffloads = []offload{
	{"tx-checksum-ip-generic", "its TCP and UDP arrive with unfilled checksums: ping works, connections hang", "tx"},
	{"tx-tcp-segmentation", "it may hand over frames larger than the MTU", "tso"},
	{"tx-generic-segmentation", "it may hand over frames larger than the MTU", "gso"},
	{"tx-vlan-hw-insert", "its VLAN tags travel beside the frame and are lost", "txvlan"},
}

// AF_XDP's own end. The program turns them off when it opens the port, and restores them
// at the end.
var ownOffloads = []offload{
	{"rx-gro", "frames are merged beyond the MTU", "gro"},
	{"rx-vlan-hw-parse", "VLAN tags are taken out before XDP sees the frame", "rxvlan"},
	{"tx-checksum-ip-generic", "the peer trusts checksums that were not filled in", "tx"},
	{"tx-vlan-hw-insert", "VLAN tags are expected beside the frame", "txvlan"},
}

// check returns what is wrong with an interface for a switch with chunks of the given
// size in bytes.
func (l *Link) check(chunk int) []Finding {
	name := func(s string) string { return l.Name + " " + s }
	var v []Finding
	add := func(check, result, found, why, remedy string) {
		v = append(v, Finding{name(check), result, found, why, remedy, ""})
	}
	if l.Up {
		v = append(v, ok(name("link"), "up"))
	} else {
		add("link", Warn, "down", "the switch sets its own end up; a peer that is down keeps the link down", l.run("ip link set %s up", l.Name))
	}
	if l.Carries == "" {
		v = append(v, ok(name("use"), "neither a default route nor this session"))
	} else {
		add("use", Fail, l.Carries, "a port takes all frames of its interface: this machine would be cut off, so gswitch refuses it", "use another interface; if it is meant, gswitch run --take, or take: true at the port")
	}
	switch zero, native := nativeDrivers[l.Driver]; {
	case zero:
		v = append(v, ok(name("XDP mode"), "%s: native, and zero-copy where the firmware lets it", l.Driver))
	case native:
		v = append(v, ok(name("XDP mode"), "%s: native, with one copy each way", l.Driver))
	default:
		add("XDP mode", Warn, fmt.Sprintf("driver %q is not known to have native XDP", l.Driver), "generic mode builds an sk_buff for each frame first: it is slower, and offloads show through", "use a NIC with native XDP (show ports NAME says what was got)")
	}
	v = append(v, l.stamps())
	if l.XDP != "" {
		add("XDP program", Fail, fmt.Sprintf("program %d is attached (%s)", l.XDPID, l.XDP), "a port cannot be opened beside another program (EBUSY); a gswitch that runs is one, too",
			"stop its owner (bpftool net show), or "+l.run("ip link set dev %s xdp off", l.Name))
	} else {
		v = append(v, ok(name("XDP program"), "none attached"))
	}
	v = append(v, l.size(chunk), l.queues())
	if l.Kind != "veth" {
		return append(v, l.offloads(ownOffloads, "offloads", "turned off while the port is open"))
	}
	if l.Qdisc == "" || l.Qdisc == "noqueue" {
		v = append(v, ok(name("qdisc"), "none: the port gets a pfifo while it is open, so that a full peer stops the switch and drops nothing silently"))
	} else {
		v = append(v, ok(name("qdisc"), "%s", l.Qdisc))
	}
	v = append(v, l.offloads(ownOffloads, "offloads", "turned off while the port is open"))
	if l.Peer == nil {
		add("peer", Warn, "its namespace was not found", "offloads of the other end decide whether its frames are whole", "on the other end: ethtool -K NAME tx off tso off gso off txvlan off")
		return v
	}
	p := l.Peer
	if p.MTU != l.MTU {
		add("peer MTU", Warn, fmt.Sprintf("%d here, %d at %s", l.MTU, p.MTU, p.Name), "frames larger than the smaller of the two are lost without a counter at the switch", p.run("ip link set %s mtu %d", p.Name, l.MTU))
	}
	if !p.Up {
		add("peer link", Fail, p.Name+" is down", "no frame passes", p.run("ip link set %s up", p.Name))
	}
	return append(v, l.peer())
}

// stamps reports which time stamps PTP frames get at the port, if its switch has a clock.
func (l *Link) stamps() Finding {
	when := "by the XDP program, as the driver hands them over; the hardware has no clock"
	switch _, native := nativeDrivers[l.Driver]; {
	case !native:
		when = "by the XDP program, behind the kernel's own work on them (generic mode)"
	case l.Unread != "":
		return Finding{l.Name + " clock stamps", Warn, "the hardware's clock cannot be read: " + l.Unread, "a clock of the switch gets stamps of the XDP program in place of the hardware's, which are more exact",
			"run as root, or as a member of its group (ls -l " + l.NICClock + "); let a container have the device", ""}
	case l.NICClock != "":
		when = "by the hardware's clock " + l.NICClock + " where driver and kernel (6.3) give it to XDP programs, else as the driver hands them over (show clock says which)"
	}
	return ok(l.Name+" clock stamps", "what arrives %s; what leaves last before the kernel gets it", when)
}

// offloads of the own end do no harm, since they are turned off.
func (l *Link) offloads(list []offload, check, what string) Finding {
	var on []string
	for _, o := range list {
		if l.On[o.feature] {
			on = append(on, o.feature)
		}
	}
	if on == nil {
		return ok(l.Name+" "+check, "none that would change frames")
	}
	return ok(l.Name+" "+check, "%s on; %s", strings.Join(on, ", "), what)
}

// harmful returns the enabled offloads of a sender's end.
func (l *Link) harmful() (list []offload) {
	for _, o := range peerOffloads {
		if l.On[o.feature] {
			list = append(list, o)
		}
	}
	return list
}

func (l *Link) peer() Finding {
	check := l.Name + " peer offloads"
	list := l.Peer.harmful()
	if list == nil {
		return ok(check, "%s finishes its frames itself", l.Peer.Name)
	}
	var names, harms, words []string
	for _, o := range list {
		names = append(names, o.feature)
		words = append(words, o.word+" off")
		if len(harms) == 0 || harms[len(harms)-1] != o.harm {
			harms = append(harms, o.harm)
		}
	}
	return Finding{check, Fail, fmt.Sprintf("%s has %s on", l.Peer.Name, strings.Join(names, ", ")), strings.Join(harms, "; "),
		l.Peer.run("ethtool -K %s %s", l.Peer.Name, strings.Join(words, " ")), ""}
}

// chunkOverhead is the part of a chunk that is not available for the packet: 256 bytes of
// XDP headroom, and 18 of Ethernet with a tag.
const chunkOverhead = 256 + 18

func (l *Link) size(chunk int) Finding {
	if most := chunk - chunkOverhead; l.MTU > most {
		return Finding{l.Name + " MTU", Warn, fmt.Sprintf("%d, a chunk of %d bytes holds %d", l.MTU, chunk, most), "larger frames need several chunks, which not every driver does; else they are dropped as rx-dropped",
			"memory: {chunk: 4096}, or " + l.run("ip link set %s mtu %d", l.Name, min(1500, most)), ""}
	}
	return ok(l.Name+" MTU", "%d fits a chunk of %d bytes", l.MTU, chunk)
}

func (l *Link) queues() Finding {
	if l.RxQueues != l.TxQueues {
		return Finding{l.Name + " queues", Warn, fmt.Sprintf("%d receive, %d transmit", l.RxQueues, l.TxQueues), "a socket takes a pair: frames of receive queues without one are not seen",
			l.run("ethtool -L %s combined %d", l.Name, max(1, min(l.RxQueues, l.TxQueues))), ""}
	}
	return ok(l.Name+" queues", "%d each way", l.RxQueues)
}
