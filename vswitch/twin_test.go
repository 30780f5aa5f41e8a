package vswitch

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"gswitch/frame"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// twinConfig is a router whose port 0 has a twin at port 2; port 3 bridges.
func twinConfig(limit uint32) *Config {
	cfg := routerConfig()
	cfg.Ports = append(cfg.Ports, PortConfig{Name: "c", Enabled: true, Twin: &Twin{Of: 0, Limit: limit}}, PortConfig{Name: "d", Enabled: true}, PortConfig{Name: "e", Enabled: true})
	return cfg
}

func groupMAC4(s string) wire.MAC {
	a := wt.Addr4(s)
	return wire.MAC{1, 0, 0x5e, a[1] & 0x7f, a[2], a[3]}
}

func bgp(dst string) []byte {
	return wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.IPv4("10.0.0.9", dst, wt.TTL(1)), wt.TCP(wire.TCPFields{SrcPort: 40000, DstPort: 179, Flags: wire.TCPSyn}))
}

func ospf(dst wire.MAC, ip string) []byte {
	return wt.Frame(wt.Eth(dst, hostMAC(1)), wt.IPv4("10.0.0.9", ip, wt.TTL(1), wt.IPv4With(func(f *wire.IPv4Fields) { f.Proto = 89 })), wt.Zeros(44))
}

// What sessions of routing live by goes to the twin, as it came.
func TestTwinGetsWhatIsForTheSwitch(t *testing.T) {
	r := newRig(t, twinConfig(0))
	for name, f := range map[string][]byte{
		"BGP":             bgp("10.0.0.1"),
		"BGP to loopback": bgp("10.255.0.1"),
		"OSPF hello":      ospf(groupMAC4("224.0.0.5"), "224.0.0.5"),
		"OSPF DR":         ospf(groupMAC4("224.0.0.6"), "224.0.0.6"),
		"OSPF unicast":    ospf(selfMAC, "10.0.0.1"),
		"OSPFv3":          wt.Frame(wt.Eth(wire.MAC{0x33, 0x33, 0, 0, 0, 5}, hostMAC(1)), wt.IPv6("fe80::9", "ff02::5", wt.TTL(1)), wt.UDP(1, 2), wt.Zeros(20)),
		"BGP to link-local": wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.IPv6("fe80::9", linkLocalOf(selfMAC.Uint64()).String(), wt.TTL(1)),
			wt.TCP(wire.TCPFields{SrcPort: 179, DstPort: 40000, Flags: wire.TCPSyn})),
		"UDP":        udp(selfMAC, hostMAC(1), "10.0.0.1", "10.0.0.9"),
		"echo reply": wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.IPv4("10.0.0.9", "10.0.0.1"), wt.ICMP(wire.ICMPEchoReply, 0, 7)),
		"RA":         wt.Frame(wt.Eth(wire.MAC{0x33, 0x33, 0, 0, 0, 1}, hostMAC(1)), wt.IPv6("fe80::9", "ff02::1", wt.TTL(255)), wt.ICMPv6(134, 0, 0), wt.Zeros(8)),
		"ARP reply":  arp(wire.ARPReply, selfMAC, hostMAC(1), "10.0.0.9", "10.0.0.1"),
		"NA": wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.IPv6("fd00:0:0:a::9", "fd00:0:0:a::1", wt.TTL(255)),
			wt.ND(wire.NDFields{Type: wire.ICMPv6NeighborAdvertisement, Rest: wire.NDSolicited, Target: wt.Addr6("fd00:0:0:a::9")})),
	} {
		r.in(0, f)
		got := r.out(2)
		if len(got) != 1 || !bytes.Equal(got[0], f) {
			t.Errorf("%s: the twin got %d frames %x (drops %v)", name, len(got), got, r.drops())
		}
		r.none(0)
	}
	tagged := wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.VLAN(7, 0), wt.IPv4("10.0.0.9", "10.0.0.1"), wt.UDP(1, 2), wt.Zeros(40))
	r.in(0, tagged)
	wt.Check(t, r.one(2), wt.Untagged(), wt.Addrs("10.0.0.9", "10.0.0.1"))
}

// What the switch answers itself it goes on answering, what it passes on it goes on
// passing on, and a port without a twin is as before.
func TestTwinGetsNothingElse(t *testing.T) {
	r := newRig(t, twinConfig(0))
	echo := wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.IPv4("10.0.0.9", "10.0.0.1"), wt.ICMP(wire.ICMPEcho, 0, 7), wt.Zeros(8))
	for name, f := range map[string][]byte{
		"ARP request": arp(wire.ARPRequest, wire.BroadcastMAC, hostMAC(1), "10.0.0.9", "10.0.0.1"),
		"echo":        echo,
		"solicitation": wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.IPv6("fe80::9", "fd00:0:0:a::1", wt.TTL(255)),
			wt.ND(wire.NDFields{Type: wire.ICMPv6NeighborSolicitation, Target: wt.Addr6("fd00:0:0:a::1")})),
	} {
		r.in(0, f)
		if got := r.out(0); len(got) != 1 {
			t.Errorf("%s got %d answers", name, len(got))
		}
		r.none(2)
	}
	r.in(0, udp(selfMAC, hostMAC(1), "10.0.1.2", "10.0.0.9"), ospf(groupMAC4("239.1.1.1"), "239.1.1.1"))
	r.one(1) // it asks for the neighbour
	r.none(2)
	r.in(1, wt.Frame(wt.Eth(selfMAC, hostMAC(2)), wt.IPv4("10.0.1.9", "10.0.1.1"), wt.TCP(wire.TCPFields{SrcPort: 1, DstPort: 179})))
	r.in(3, l2(77, 78), arp(wire.ARPRequest, wire.BroadcastMAC, hostMAC(5), "10.7.0.9", "10.7.0.1"))
	if got := r.out(4); len(got) != 2 {
		t.Errorf("%d frames were flooded, want 2", len(got))
	}
	r.none(2)
}

// The kernel sends for the switch: what it sends leaves by the routed port, from the
// switch's own address, unchanged, and by no other.
func TestTwinSendsByItsPort(t *testing.T) {
	r := newRig(t, twinConfig(0))
	f := wt.Frame(wt.Eth(hostMAC(1), selfMAC), wt.IPv4("10.0.0.1", "10.0.0.9", wt.TTL(1), wt.TOS(48<<2)), wt.TCP(wire.TCPFields{SrcPort: 179, DstPort: 40000}))
	r.in(2, f)
	if got := r.one(0); !bytes.Equal(got, f) {
		t.Errorf("%x left as %x", f, got)
	}
	if c := r.counts(2); c.RxClass[6].Frames != 1 {
		t.Errorf("network control is of another class: %+v", c.RxClass)
	}
	hello := ospf(groupMAC4("224.0.0.5"), "224.0.0.5")
	r.in(2, hello)
	r.one(0)
	for _, p := range []uint16{1, 2, 3, 4} {
		r.none(p)
	}
	r.in(2, wt.PFC(selfMAC, 0xff, 100))
	r.none(0)
	r.wantDrop(2, frame.ReservedMulticast)
	r.setLink(0, false)
	r.in(2, hello)
	r.wantDrop(2, frame.EgressPortDown)
}

// Each group of frames has its own share, so that a flood of one does not starve
// the sessions of another.
func TestTwinIsLimitedByGroup(t *testing.T) {
	r := newRig(t, twinConfig(200))
	const burst = 20 // a tenth of a second's
	for range 3 * burst {
		r.in(0, udp(selfMAC, hostMAC(1), "10.0.0.1", "10.0.0.9"))
	}
	if got, lost := len(r.out(2)), r.counts(0).Drops[frame.KernelLimit]; got != burst || lost != 2*burst {
		t.Errorf("the twin got %d of a flood, %d were over the limit; want %d and %d", got, lost, burst, 2*burst)
	}
	r.in(0, bgp("10.0.0.1"), ospf(groupMAC4("224.0.0.5"), "224.0.0.5"), arp(wire.ARPReply, selfMAC, hostMAC(1), "10.0.0.9", "10.0.0.1"))
	if got := len(r.out(2)); got != 3 {
		t.Errorf("the twin got %d frames of routing and neighbours during the flood, want 3", got)
	}
	r.advance(frame.Second / 200)
	r.in(0, udp(selfMAC, hostMAC(1), "10.0.0.1", "10.0.0.9"), udp(selfMAC, hostMAC(1), "10.0.0.1", "10.0.0.9"))
	if got := len(r.out(2)); got != 1 {
		t.Errorf("%d frames went after the time of one, want 1", got)
	}
}

func TestTwinOfAnotherWorker(t *testing.T) {
	cfg := twinConfig(0)
	cfg.Ports[0].Worker = 1
	r := newRigOf(t, cfg, 2, 4096)
	f := bgp("10.0.0.1")
	r.in(0, f)
	if got := r.one(2); !bytes.Equal(got, f) {
		t.Errorf("%x came as %x", f, got)
	}
	r.in(2, ospf(groupMAC4("224.0.0.5"), "224.0.0.5"))
	r.one(0)
}

func TestTwinsAreChecked(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"not routed":         func(c *Config) { c.Ports[2].Twin.Of = 3 },
		"has a twin already": func(c *Config) { c.Ports[3].Twin = &Twin{Of: 0} },
		"none of its own":    func(c *Config) { c.Ports[2].Addresses = []netip.Prefix{netip.MustParsePrefix("10.8.0.1/24")} },
	} {
		cfg := twinConfig(0)
		change(cfg)
		depot := frame.NewDepot(frame.MustArena(64, 2048, frame.DefaultHeadroom))
		if _, err := New(cfg, []*frame.Pool{depot.NewPool(frame.MustArena(64, 2048, frame.DefaultHeadroom))}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
