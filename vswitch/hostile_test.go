package vswitch

import (
	"net/netip"
	"testing"

	"gswitch/frame"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// What neighbours on the wire may send that they should not.

// A scan of a connected network must not take the memory that ports receive
// into, nor the table from the neighbours that exist.
func TestScanLeavesRoom(t *testing.T) {
	cfg := routerConfig()
	cfg.Ports[1].Addresses = prefixes("10.1.0.1/16")
	r := newRigOf(t, cfg, 1, 4096)
	for round := range neighborPending {
		for i := range 10_000 {
			if round > 0 && i >= 400 {
				break
			}
			dst := netip.AddrFrom4([4]byte{10, 1, byte(i>>8 + 1), byte(i)})
			r.in(0, udp(selfMAC, hostMAC(1), dst.String(), "10.0.0.9"))
			r.out(1)
		}
	}
	free := make([]frame.Ref, 0, 4096)
	for ref := r.pools[0].New(make([]byte, 60)); ref != frame.Nil; ref = r.pools[0].New(make([]byte, 60)) {
		free = append(free, ref)
	}
	for _, ref := range free {
		r.pools[0].Free(ref)
	}
	if len(free) < 2048 {
		t.Errorf("%d of 4096 chunks are left", len(free))
	}
	if l := r.sw.Nodes[0].local; l.pending > r.sw.Nodes[0].chunks.limit/8 || l.unresolved > MaxUnresolved {
		t.Errorf("%d frames wait for %d neighbours", l.pending, l.unresolved)
	}
	r.in(1, arp(wire.ARPRequest, wire.BroadcastMAC, hostMAC(2), "10.1.200.2", "10.1.0.1"))
	r.out(1)
	r.in(0, udp(selfMAC, hostMAC(1), "10.1.200.2", "10.0.0.9"))
	if b := r.one(1); wire.Ethernet(b).Dst() != hostMAC(2) {
		t.Error("a neighbour that exists is not reached")
	}
	// The timers of the whole table do not stop the worker, and do end.
	for range 6 * 200 {
		r.advance(5 * frame.Millisecond)
		r.out(0)
		r.out(1)
	}
	if l := r.sw.Nodes[0].local; l.pending != 0 || l.unresolved != 0 || len(l.table) != 1 {
		t.Errorf("%d frames wait for %d neighbours of %d", l.pending, l.unresolved, len(l.table))
	}
}

// One step visits few timers, however many entries there are.
func TestTimersDoNotGrowWithTheTable(t *testing.T) {
	cfg := routerConfig()
	cfg.Ports[1].Addresses = prefixes("10.1.0.1/16")
	r := newRigOf(t, cfg, 1, 4096)
	n := r.sw.Nodes[0]
	for i := range 3000 {
		dst := netip.AddrFrom4([4]byte{10, 1, byte(i>>8 + 1), byte(i)})
		r.in(0, udp(selfMAC, hostMAC(1), dst.String(), "10.0.0.9"))
		r.out(1)
	}
	made := n.Counts().Made
	r.now += 10 * frame.Second
	n.Advance(r.now)
	if asked := n.Counts().Made - made; asked == 0 || asked > vector {
		t.Errorf("one step asked %d times", asked)
	}
	if n.Wake(r.now) > r.now {
		t.Error("the rest is not due")
	}
}

// Addresses that come and go do not wear the neighbour table out.
func TestNeighborTableSurvivesChurn(t *testing.T) {
	tab := newNeighborTable(8, 0)
	for i := range uint64(1000) {
		k := addrKey{1, i * 0x9e3779b97f4a7c15}
		tab.set(1, k, i+1)
		if got := tab.lookup(1, k); got != i+1 {
			t.Fatalf("entry %d is lost after %d others", i, i)
		}
		if i >= 8 {
			old := addrKey{1, (i - 8) * 0x9e3779b97f4a7c15}
			tab.remove(1, old)
			if tab.lookup(1, old) != 0 {
				t.Fatal("an entry that was removed is found")
			}
		}
	}
}

// Malformed frames for the router are dropped as what they are.
func TestMalformedForTheRouter(t *testing.T) {
	bad := arp(wire.ARPRequest, selfMAC, hostMAC(1), "10.0.0.9", "10.0.0.1")
	bad[15] = 6 // hardware type
	sum := udp(selfMAC, hostMAC(1), "10.0.1.2", "10.0.0.9")
	sum[24]++
	for reason, f := range map[frame.Reason][]byte{
		frame.ParseShortARP:     bad,
		frame.ParseIPv4Checksum: sum,
	} {
		r := newRig(t, routerConfig())
		r.in(0, f)
		r.none(0)
		r.none(1)
		r.wantDrop(0, reason)
	}
}

// What must not be routed (RFC 1812 5.3.7, RFC 2644, RFC 4291 2.5), and is not
// answered with an error either.
func TestNotRouted(t *testing.T) {
	v4 := func(src, dst string) []byte { return udp(selfMAC, hostMAC(1), dst, src) }
	v6 := func(src, dst string) []byte {
		return wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.IPv6(src, dst), wt.UDP(1, 2), wt.Zeros(10))
	}
	for _, c := range []struct {
		f    []byte
		want frame.Reason
	}{
		{v4("127.0.0.1", "10.0.1.2"), frame.MartianSource},
		{v4("0.0.0.0", "10.0.1.2"), frame.MartianSource},
		{v4("224.0.0.9", "10.0.1.2"), frame.MartianSource},
		{v4("255.255.255.255", "10.0.1.2"), frame.MartianSource},
		{v4("10.0.0.9", "127.0.0.1"), frame.MulticastRouted},
		{v4("10.0.0.9", "10.0.1.255"), frame.MulticastRouted},
		{v4("10.0.0.9", "10.0.1.0"), frame.MulticastRouted},
		{v4("10.0.0.9", "224.0.0.5"), frame.MulticastRouted},
		{v6("::1", "fd00:0:0:b::2"), frame.MartianSource},
		{v6("ff02::1", "fd00:0:0:b::2"), frame.MartianSource},
		{v6("fe80::9", "fd00:0:0:b::2"), frame.MartianSource},
		{v6("::ffff:10.0.0.9", "fd00:0:0:b::2"), frame.MartianSource},
		{v6("fd00:0:0:a::9", "::ffff:10.0.1.2"), frame.MulticastRouted},
		{v6("fd00:0:0:a::9", "fe80::77"), frame.MulticastRouted},
	} {
		cfg := routerConfig()
		cfg.Routes = []Route{
			{Prefix: netip.MustParsePrefix("0.0.0.0/0"), NextHops: []NextHop{{Via: netip.MustParseAddr("10.0.1.2")}}},
			{Prefix: netip.MustParsePrefix("::/0"), NextHops: []NextHop{{Via: netip.MustParseAddr("fd00:0:0:b::2")}}},
		}
		r := newRig(t, cfg)
		r.in(0, c.f)
		r.none(0)
		r.none(1)
		r.wantDrop(0, c.want)
	}
	// No error about a packet for a group either where there is no route.
	r := newRig(t, routerConfig())
	r.in(0, v4("10.0.0.9", "239.1.1.1"), v6("fd00:0:0:a::9", "ff0e::1"))
	r.none(0)
}

// The link-local address is the switch's as much as the others: pings,
// unreachability probes sent to it alone, pings of all nodes.
func TestLinkLocalAddress(t *testing.T) {
	r := newRig(t, routerConfig())
	self := linkLocalOf(selfMAC.Uint64())
	r.in(0, wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.IPv6("fe80::9", self.String()), wt.ICMPv6(wire.ICMPv6Echo, 0, 5)))
	b := r.one(0)
	if b[54] != wire.ICMPv6EchoReply || wire.IPv6(b[14:]).Src() != self.As16() {
		t.Errorf("reply %x", b)
	}
	opt := make([]byte, wire.NDLinkLayerLen)
	wire.PutNDLinkLayer(opt, wire.NDSourceLinkLayer, hostMAC(1))
	r.in(0, wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.IPv6("fe80::9", self.String(), wt.TTL(255)), wt.ND(wire.NDFields{Type: wire.ICMPv6NeighborSolicitation, Target: self.As16(), Options: opt})))
	if b := r.one(0); b[54] != wire.ICMPv6NeighborAdvertisement {
		t.Errorf("answer to a probe %x", b)
	}
	r.in(0, wt.Frame(wt.Eth(wire.MAC{0x33, 0x33, 0, 0, 0, 1}, hostMAC(1)), wt.IPv6("fe80::9", "ff02::1"), wt.ICMPv6(wire.ICMPv6Echo, 0, 5)))
	b = r.one(0)
	if src := netip.AddrFrom16(wire.IPv6(b[14:]).Src()); src != self {
		t.Errorf("the answer to a ping of all nodes comes from %v", src)
	}
	checkICMP6(t, b)
}

// Duplicate address detection of a station for our address (RFC 4862 5.4.3).
func TestAnswersDuplicateAddressDetection(t *testing.T) {
	r := newRig(t, routerConfig())
	target := wt.Addr6("fd00:0:0:a::1")
	group, mac := wire.SolicitedNode(target)
	r.in(0, wt.Frame(wt.Eth(mac, hostMAC(1)), wt.IPv6("::", netip.AddrFrom16(group).String(), wt.TTL(255)), wt.ND(wire.NDFields{Type: wire.ICMPv6NeighborSolicitation, Target: target})))
	b := r.one(0)
	if ip := wire.IPv6(b[14:]); ip.Dst() != wire.AllNodes || wire.NDNeighbor(b[54:]).Flags()&wire.NDSolicited != 0 {
		t.Errorf("answer %x", b)
	}
	if nb := r.sw.Nodes[0].Neighbors(); len(nb) != 0 {
		t.Errorf("a probe made a neighbour: %+v", nb)
	}
}

// ARP senders that no station can be.
func TestARPFromNowhere(t *testing.T) {
	for _, sender := range []wire.MAC{{}, wire.BroadcastMAC, {1, 0, 0x5e, 0, 0, 1}, selfMAC} {
		r := newRig(t, routerConfig())
		b := arp(wire.ARPRequest, wire.BroadcastMAC, hostMAC(1), "10.0.0.9", "10.0.0.1")
		a := wire.ARP(b[14:])
		a.SetSenderMAC(sender)
		r.in(0, b)
		if sender != selfMAC {
			r.none(0)
		}
		r.out(0)
		if n := r.sw.Nodes[0].neighbors.lookup(r.sw.Program().ports[0].iface, keyOf(netip.MustParseAddr("10.0.0.9"))); n != 0 {
			t.Errorf("%v became a neighbour", sender)
		}
	}
}

// Only what MAC control sends to us pauses us (IEEE 802.3 31B.1).
func TestPauseForSomebodyElse(t *testing.T) {
	r := newRig(t, losslessConfig(2))
	f := pfcFrame(1<<3, 0xffff)
	copy(f, []byte{2, 0, 0, 0, 0, 9})
	r.in(1, f)
	r.wantDrop(1, frame.ForeignMAC)
	r.in(0, tagged(1, 0, 3, 100))
	r.one(1)
}

// Frames that a port cannot carry are dropped where they can be counted.
func TestBridgeKeepsToTheMTU(t *testing.T) {
	cfg := baseConfig(2)
	cfg.Ports[0].MTU = 9000
	r := newRig(t, cfg)
	r.in(0, tagged(2, 1, 0, 1518)) // the tag does not count
	r.one(1)
	r.in(0, tagged(2, 1, 0, 1519))
	r.none(1)
	r.wantDrop(0, frame.MTUExceeded)
}

// The MTU of a VLAN's interface is that of its ports.
func TestVLANInterfaceMTU(t *testing.T) {
	cfg := baseConfig(3)
	cfg.VLANs = []VLANConfig{{ID: 10, Name: "red", Addresses: prefixes("10.0.10.1/24")}, {ID: 20, Name: "blue", Addresses: prefixes("10.0.20.1/24")}}
	for i := range cfg.Ports {
		cfg.Ports[i].VLANMode, cfg.Ports[i].PVID, cfg.Ports[i].MTU = VLANAccess, 10, 4000
	}
	cfg.Ports[1].PVID, cfg.Ports[1].MTU = 20, 2000
	r := newRig(t, cfg)
	if a, b := r.sw.Program().ifaces[1].mtu, r.sw.Program().ifaces[2].mtu; a != 4000 || b != 2000 {
		t.Errorf("MTUs %d and %d, want 4000 and 2000", a, b)
	}
}

// A packet that was routed leaves with the tag of its new network or none,
// and a class keeps its priority on the wire.
func TestTagsEndAtTheRouter(t *testing.T) {
	cfg := baseConfig(3)
	cfg.VLANs = []VLANConfig{{ID: 1, Name: "one", Addresses: prefixes("10.0.1.1/24")}, {ID: 10, Name: "red", Addresses: prefixes("10.0.10.1/24")}, {ID: 20, Name: "blue", Addresses: prefixes("10.0.20.1/24")}}
	cfg.Ports[1].VLANMode = VLANTrunk // port 0 is transparent
	cfg.Class.PCP[3], cfg.Class.PCP[1] = 1, 3
	cfg.Neighbors = []StaticNeighbor{{netip.MustParseAddr("10.0.1.2"), hostMAC(2)}, {netip.MustParseAddr("10.0.20.2"), hostMAC(3)}}
	r := newRig(t, cfg)
	from := func(dst string) []byte {
		return wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.VLAN(10, 3), wt.IPv4("10.0.10.9", dst), wt.UDP(1, 2), wt.Zeros(20))
	}
	r.in(1, from("10.0.1.2"))
	if b := r.out(0); len(b) != 1 || wire.Ethernet(b[0]).EtherType() != wire.EtherTypeIPv4 {
		t.Errorf("left the transparent port as %x", b)
	}
	r.out(1)
	r.out(2)
	r.in(1, from("10.0.20.2"))
	if b := r.one(1); wire.VLAN(b[14:]).TCI() != 3<<13|20 {
		t.Errorf("left the trunk with tag %04x", wire.VLAN(b[14:]).TCI())
	}
}

// ARP between other stations is not the slow path's.
func TestForeignARPStaysOnTheFastPath(t *testing.T) {
	cfg := baseConfig(2)
	cfg.VLANs = []VLANConfig{{ID: 1, Name: "one", Addresses: prefixes("10.0.1.1/24")}}
	r := newRig(t, cfg)
	r.in(0, arp(wire.ARPRequest, wire.BroadcastMAC, hostMAC(1), "10.0.1.9", "10.0.1.8"))
	r.one(1)
	if n := r.sw.Nodes[0].Counts().ToLocal; n != 0 {
		t.Errorf("%d frames went to the slow path", n)
	}
	// But an announcement moves a neighbour that is known.
	r.in(0, arp(wire.ARPRequest, wire.BroadcastMAC, hostMAC(1), "10.0.1.9", "10.0.1.1"))
	r.in(1, arp(wire.ARPRequest, wire.BroadcastMAC, hostMAC(2), "10.0.1.9", "10.0.1.9"))
	if nb := r.sw.Nodes[0].Neighbors(); len(nb) != 1 || nb[0].MAC != hostMAC(2) {
		t.Errorf("neighbours %+v", nb)
	}
	r.out(0)
	r.out(1)
}

// A worker that hands over without end does not hold another one up.
func TestHandoffIsBounded(t *testing.T) {
	r := newRigOf(t, twoWorkers(baseConfig(2)), 2, 8192)
	var v [vector]frame.Ref
	for range 2 * takeVectors {
		for i := range v {
			v[i] = r.pools[0].New(l2(2, 1))
		}
		r.sw.Nodes[0].Receive(r.now, 0, v[:])
	}
	n := r.sw.Nodes[1]
	n.Advance(r.now)
	if left := n.others.in[0].Len(); left == 0 {
		t.Error("all was taken at once")
	}
	if n.Wake(r.now) > r.now {
		t.Error("what is left is not due")
	}
	r.runAll()
	r.runAll()
	if got := len(r.out(1)); got != 2*takeVectors*vector {
		t.Errorf("%d frames, want %d", got, 2*takeVectors*vector)
	}
}
