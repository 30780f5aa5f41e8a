package vswitch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"gswitch/frame"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// routerConfig has a routed port on 10.0.0.0/24 and one on 10.0.1.0/24.
func routerConfig() *Config {
	cfg := baseConfig(2)
	cfg.Ports[0].Addresses = prefixes("10.0.0.1/24", "fd00:0:0:a::1/64")
	cfg.Ports[1].Addresses = prefixes("10.0.1.1/24", "fd00:0:0:b::1/64")
	cfg.Loopbacks = []netip.Addr{netip.MustParseAddr("10.255.0.1")}
	return cfg
}

func arp(op uint16, dst wire.MAC, sender wire.MAC, sip, tip string) []byte {
	return wt.Frame(wt.Eth(dst, sender), wt.ARP(wire.ARPFields{Op: op, SenderMAC: sender, SenderIP: wt.Addr4(sip), TargetIP: wt.Addr4(tip)}))
}

func TestAnswersARP(t *testing.T) {
	r := newRig(t, routerConfig())
	r.in(0, arp(wire.ARPRequest, wire.BroadcastMAC, hostMAC(1), "10.0.0.9", "10.0.0.1"))
	b := r.one(0)
	a := wire.ARP(b[14:])
	if e := wire.Ethernet(b); e.Dst() != hostMAC(1) || e.Src() != selfMAC {
		t.Errorf("reply goes from %v to %v", e.Src(), e.Dst())
	}
	if a.Op() != wire.ARPReply || a.SenderIP() != wt.Addr4("10.0.0.1") || a.SenderMAC() != selfMAC || a.TargetIP() != wt.Addr4("10.0.0.9") || a.TargetMAC() != hostMAC(1) {
		t.Errorf("wrong reply %x", b)
	}
	r.in(0, arp(wire.ARPRequest, wire.BroadcastMAC, hostMAC(1), "10.0.0.9", "10.0.0.77"))
	r.none(0)
}

// The first frame to an unknown neighbour waits until the neighbour answers;
// the next ones need no question.
func TestResolvesAndRewrites(t *testing.T) {
	r := newRig(t, routerConfig())
	f := udp(selfMAC, hostMAC(1), "10.0.1.2", "10.0.0.9", wt.TTL(9))
	r.in(0, f)
	q := r.one(1)
	if a := wire.ARP(q[14:]); a.Op() != wire.ARPRequest || a.TargetIP() != wt.Addr4("10.0.1.2") || a.SenderIP() != wt.Addr4("10.0.1.1") || wire.Ethernet(q).Dst() != wire.BroadcastMAC {
		t.Fatalf("wrong question %x", q)
	}
	r.in(1, arp(wire.ARPReply, selfMAC, hostMAC(2), "10.0.1.2", "10.0.1.1"))
	want := udp(hostMAC(2), selfMAC, "10.0.1.2", "10.0.0.9", wt.TTL(8))
	if got := r.one(1); !bytes.Equal(got, want) {
		t.Errorf("routed frame is\n%x, want\n%x", got, want)
	}
	r.in(0, f, f)
	if got := r.out(1); len(got) != 2 || !bytes.Equal(got[1], want) {
		t.Errorf("%d frames, want 2", len(got))
	}
}

func TestUnansweredNeighbourFails(t *testing.T) {
	r := newRig(t, routerConfig())
	for range neighborPending + 2 {
		r.in(0, udp(selfMAC, hostMAC(1), "10.0.1.2", "10.0.0.9"))
	}
	r.out(1)
	if c := r.counts(0); c.Drops[frame.NeighborQueue] != 2 {
		t.Errorf("%d frames found the neighbour's queue full, want 2", c.Drops[frame.NeighborQueue])
	}
	questions := 1
	for range 5 {
		r.advance(neighborRetry)
		questions += len(r.out(1))
	}
	if questions != neighborTries {
		t.Errorf("%d questions were asked, want %d", questions, neighborTries)
	}
	if c := r.counts(0); c.Drops[frame.NeighborFailed] != neighborPending {
		t.Errorf("%d frames dropped, want %d", c.Drops[frame.NeighborFailed], neighborPending)
	}
	if errors := r.out(0); len(errors) != neighborPending {
		t.Errorf("%d host-unreachable errors, want %d", len(errors), neighborPending)
	}
	r.in(0, udp(selfMAC, hostMAC(1), "10.0.1.2", "10.0.0.9")) // asked anew
	if r.one(1); r.counts(0).Drops[frame.NeighborFailed] != neighborPending {
		t.Error("a failed neighbour was not tried again")
	}
}

func TestPing(t *testing.T) {
	echo := func(ip string) []byte {
		return wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.IPv4("10.0.0.9", ip), wt.ICMP(wire.ICMPEcho, 0, 7<<16|3), wt.Payload([]byte("abcdefgh")))
	}
	r := newRig(t, routerConfig())
	for _, ip := range []string{"10.0.0.1", "10.0.1.1", "10.255.0.1"} {
		r.in(0, echo(ip))
		b := r.one(0)
		h := wire.IPv4(b[14:])
		m := wire.ICMP(b[34:])
		if h.Src() != wt.Addr4(ip) || h.Dst() != wt.Addr4("10.0.0.9") || !h.ChecksumOK() || m.Type() != wire.ICMPEchoReply || m.EchoID() != 7 || m.EchoSeq() != 3 {
			t.Errorf("%s: wrong reply %x", ip, b)
		}
		if wire.Checksum(b[34:14+int(h.TotalLen())]) != 0 {
			t.Errorf("%s: wrong ICMP checksum", ip)
		}
	}
	bad := echo("10.0.0.1")
	bad[45]++
	r.in(0, bad)
	r.none(0)
	r.wantDrop(0, frame.LocalUnhandled)
}

func TestPing6AndDiscovery(t *testing.T) {
	r := newRig(t, routerConfig())
	target := wt.Addr6("fd00:0:0:a::1")
	group, mac := wire.SolicitedNode(target)
	opt := make([]byte, wire.NDLinkLayerLen)
	wire.PutNDLinkLayer(opt, wire.NDSourceLinkLayer, hostMAC(1))
	r.in(0, wt.Frame(wt.Eth(mac, hostMAC(1)), wt.IPv6("fd00:0:0:a::9", netip.AddrFrom16(group).String(), wt.TTL(255)),
		wt.ND(wire.NDFields{Type: wire.ICMPv6NeighborSolicitation, Target: target, Options: opt})))
	b := r.one(0)
	nd := wire.NDNeighbor(b[54:])
	if nd.Type() != wire.ICMPv6NeighborAdvertisement || nd.Target() != target || nd.Flags()&wire.NDSolicited == 0 {
		t.Fatalf("wrong advertisement %x", b)
	}
	if m, ok := nd.Options().LinkLayer(wire.NDTargetLinkLayer); !ok || m != selfMAC {
		t.Errorf("advertisement names %v", m)
	}
	checkICMP6(t, b)

	r.in(0, wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.IPv6("fd00:0:0:a::9", "fd00:0:0:a::1"), wt.ICMPv6(wire.ICMPv6Echo, 0, 5), wt.Payload([]byte("xyz"))))
	b = r.one(0)
	if b[54] != wire.ICMPv6EchoReply {
		t.Errorf("wrong echo reply %x", b)
	}
	checkICMP6(t, b)

	// Through the switch: the neighbour is asked by multicast, then the frame goes.
	f := wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.IPv6("fd00:0:0:a::9", "fd00:0:0:b::2"), wt.UDP(1, 2), wt.Zeros(10))
	r.in(0, f)
	q := r.one(1)
	if wire.NDNeighbor(q[54:]).Target() != wt.Addr6("fd00:0:0:b::2") {
		t.Fatalf("wrong solicitation %x", q)
	}
	checkICMP6(t, q)
	wire.PutNDLinkLayer(opt, wire.NDTargetLinkLayer, hostMAC(2))
	r.in(1, wt.Frame(wt.Eth(selfMAC, hostMAC(2)), wt.IPv6("fd00:0:0:b::2", "fd00:0:0:b::1", wt.TTL(255)),
		wt.ND(wire.NDFields{Type: wire.ICMPv6NeighborAdvertisement, Rest: wire.NDSolicited, Target: wt.Addr6("fd00:0:0:b::2"), Options: opt})))
	b = r.one(1)
	if wire.Ethernet(b).Dst() != hostMAC(2) || wire.IPv6(b[14:]).HopLimit() != 63 {
		t.Errorf("wrong routed frame %x", b)
	}
}

func checkICMP6(t *testing.T, b []byte) {
	t.Helper()
	ip := wire.IPv6(b[14:])
	msg := b[54 : 54+int(ip.PayloadLen())]
	if wire.SegmentChecksum(wire.PseudoSum6(ip.Src(), ip.Dst(), wire.ProtoICMPv6, len(msg)), msg) != 0 {
		t.Errorf("wrong ICMPv6 checksum in %x", b)
	}
}

func TestICMPErrors(t *testing.T) {
	cfg := routerConfig()
	cfg.Ports[1].MTU = 600
	cfg.Routes = []Route{{Prefix: netip.MustParsePrefix("192.0.2.0/24"), Refuse: Blackhole}}
	for _, c := range []struct {
		name      string
		f         []byte
		typ, code uint8
		reason    frame.Reason
	}{
		{"ttl", udp(selfMAC, hostMAC(1), "10.0.1.2", "10.0.0.9", wt.TTL(1)), wire.ICMPTimeExceeded, 0, frame.TTLExpired},
		{"no route", udp(selfMAC, hostMAC(1), "203.0.113.1", "10.0.0.9"), wire.ICMPDstUnreachable, wire.ICMPCodeNetUnreach, frame.NoRoute},
		{"too big", wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.IPv4("10.0.0.9", "10.0.1.2"), wt.UDP(1, 2), wt.Zeros(1000)), wire.ICMPDstUnreachable, wire.ICMPCodeFragNeeded, frame.MTUExceeded},
		{"port of the switch", udp(selfMAC, hostMAC(1), "10.0.0.1", "10.0.0.9"), wire.ICMPDstUnreachable, wire.ICMPCodePortUnreach, frame.LocalUnhandled},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, cfg)
			r.in(0, c.f)
			r.wantDrop(0, c.reason)
			b := r.one(0)
			h, m := wire.IPv4(b[14:]), wire.ICMP(b[34:])
			if h.Src() != wt.Addr4("10.0.0.1") || h.Dst() != wt.Addr4("10.0.0.9") || !h.ChecksumOK() || m.Type() != c.typ || m.Code() != c.code {
				t.Errorf("wrong error %x", b)
			}
			if wire.Checksum(b[34:14+int(h.TotalLen())]) != 0 {
				t.Error("wrong ICMP checksum")
			}
			if quoted := b[42:]; !bytes.Equal(quoted[12:28], c.f[26:42]) {
				t.Errorf("error quotes %x", quoted)
			}
			if c.reason == frame.MTUExceeded && m.NextMTU() != 600 {
				t.Errorf("error says MTU %d, want 600", m.NextMTU())
			}
			r.in(0, b) // an error about an error
			r.none(0)
		})
	}
	r := newRig(t, cfg)
	r.in(0, udp(selfMAC, hostMAC(1), "192.0.2.1", "10.0.0.9"))
	r.none(0)
	r.wantDrop(0, frame.Blackhole)
}

// Routes that lead nowhere answer as those of Linux do.
func TestRoutesThatRefuse(t *testing.T) {
	const v4, v6 = "192.0.2.1", "2001:db8::1"
	for _, c := range []struct {
		refuse    Refusal
		dst       string
		typ, code uint8
		reason    frame.Reason
	}{
		{Unreachable, v4, wire.ICMPDstUnreachable, wire.ICMPCodeHostUnreach, frame.Unreachable},
		{Prohibit, v4, wire.ICMPDstUnreachable, wire.ICMPCodeProhibited, frame.Prohibited},
		{Unreachable, v6, wire.ICMPv6DstUnreachable, icmp6NoRoute, frame.Unreachable},
		{Prohibit, v6, wire.ICMPv6DstUnreachable, icmp6Prohibited, frame.Prohibited},
	} {
		cfg := routerConfig()
		cfg.Routes = []Route{{Prefix: netip.MustParsePrefix("192.0.2.0/24"), Refuse: c.refuse}, {Prefix: netip.MustParsePrefix("2001:db8::/32"), Refuse: c.refuse}}
		r := newRig(t, cfg)
		f, at := udp(selfMAC, hostMAC(1), v4, "10.0.0.9"), 34
		if c.dst == v6 {
			f, at = wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.IPv6("fd00:0:0:a::9", v6), wt.UDP(1, 2), wt.Zeros(10)), 54
		}
		r.in(0, f)
		r.wantDrop(0, c.reason)
		if b := r.one(0); b[at] != c.typ || b[at+1] != c.code {
			t.Errorf("%s to %s: type %d code %d, want %d and %d", c.refuse, c.dst, b[at], b[at+1], c.typ, c.code)
		}
		kinds := 0
		for info := range r.sw.Program().Routes {
			if info.Kind == c.refuse.String() {
				kinds++
			}
		}
		if kinds != 2 {
			t.Errorf("%d routes are shown as %s, want 2", kinds, c.refuse)
		}
	}
}

// An IPv4 route may lead to an IPv6 next hop (RFC 8950), which is looked for by
// neighbour discovery; a link-local one is named with its port.
func TestIPv4ByIPv6NextHop(t *testing.T) {
	for _, via := range []string{"fd00:0:0:b::2", "fe80::2%b"} {
		cfg := routerConfig()
		cfg.Ports[1].Addresses = prefixes("fd00:0:0:b::1/64") // no IPv4 there at all
		cfg.Routes = []Route{{Prefix: netip.MustParsePrefix("20.0.0.0/8"), NextHops: []NextHop{{Via: netip.MustParseAddr(via)}}}}
		r := newRig(t, cfg)
		r.in(0, udp(selfMAC, hostMAC(1), "20.0.0.1", "10.0.0.9"))
		target := netip.MustParseAddr(via).WithZone("").As16()
		q := r.one(1)
		if wire.NDNeighbor(q[54:]).Type() != wire.ICMPv6NeighborSolicitation || wire.NDNeighbor(q[54:]).Target() != target {
			t.Fatalf("wrong solicitation %x", q)
		}
		opt := make([]byte, wire.NDLinkLayerLen)
		wire.PutNDLinkLayer(opt, wire.NDTargetLinkLayer, hostMAC(2))
		r.in(1, wt.Frame(wt.Eth(selfMAC, hostMAC(2)), wt.IPv6(netip.AddrFrom16(target).String(), netip.AddrFrom16(wire.IPv6(q[14:]).Src()).String(), wt.TTL(255)),
			wt.ND(wire.NDFields{Type: wire.ICMPv6NeighborAdvertisement, Rest: wire.NDSolicited, Target: target, Options: opt})))
		if b := r.one(1); wire.Ethernet(b).Dst() != hostMAC(2) || wire.IPv4(b[14:]).Dst() != wt.Addr4("20.0.0.1") || wire.IPv4(b[14:]).TTL() != 63 {
			t.Errorf("by %s: wrong frame %x", via, b)
		}
		for info := range r.sw.Program().Routes {
			if info.Kind == "via" && info.Via[0].Via.String() != via {
				t.Errorf("the route is shown by %s, want %s", info.Via[0].Via, via)
			}
		}
	}
}

// Flows are distinguished by the fields that the configuration names.
func TestHashFields(t *testing.T) {
	v4 := func(src string, sport uint16) []byte {
		return wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.IPv4(src, "20.0.0.1"), wt.UDP(sport, 2), wt.Zeros(10))
	}
	v6 := func(label uint32) []byte {
		b := wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.IPv6("fd00::1", "fd00::2"), wt.UDP(1, 2), wt.Zeros(10))
		b[15], b[16], b[17] = byte(label>>16)&0xf, byte(label>>8), byte(label)
		return b
	}
	differ := func(f wire.HashFields, a, b []byte) bool {
		r := newRig(t, &Config{Name: "s", Seed: 3, HashFields: f, MAC: selfMAC, Ports: baseConfig(2).Ports, Class: DefaultClassMaps()})
		var hash [2]uint32
		for i, x := range [][]byte{a, b} {
			ref := r.pools[0].New(x)
			r.sw.Nodes[0].parser.Parse(r.arena, []frame.Ref{ref})
			hash[i] = r.arena.Meta(ref).Hash
			r.pools[0].Free(ref)
		}
		return hash[0] != hash[1]
	}
	for _, c := range []struct {
		name   string
		fields wire.HashFields
		a, b   []byte
		differ bool
	}{
		{"ports, all", 0, v4("10.0.0.1", 5), v4("10.0.0.1", 6), true},
		{"ports, addresses alone", wire.HashSrc | wire.HashDst, v4("10.0.0.1", 5), v4("10.0.0.1", 6), false},
		{"addresses, addresses alone", wire.HashSrc | wire.HashDst, v4("10.0.0.1", 5), v4("10.0.0.2", 5), true},
		{"source, destination alone", wire.HashDst | wire.HashDstPort, v4("10.0.0.1", 5), v4("10.0.0.2", 6), false},
		{"label, all", 0, v6(1), v6(0x80001), true},
		{"label, five-tuple", wire.HashAll &^ wire.HashLabel, v6(1), v6(2), false},
	} {
		if got := differ(c.fields, c.a, c.b); got != c.differ {
			t.Errorf("%s: differ %v, want %v", c.name, got, c.differ)
		}
	}
	// A change of the fields is in force with the configuration.
	cfg := routerConfig()
	r := newRig(t, cfg)
	before := r.sw.Nodes[0].parser
	next := *cfg
	next.HashFields = wire.HashDst
	if err := r.sw.Apply(&next); err != nil {
		t.Fatal(err)
	}
	r.runAll()
	if *r.sw.Nodes[0].parser == *before {
		t.Error("the parser hashes as before")
	}
}

func TestICMPErrorsAreLimited(t *testing.T) {
	cfg := routerConfig()
	cfg.ICMPRate = 100
	r := newRig(t, cfg)
	for range 1000 {
		r.in(0, udp(selfMAC, hostMAC(1), "203.0.113.1", "10.0.0.9"))
		r.advance(frame.Millisecond)
	}
	c := r.sw.Nodes[0].Counts()
	if c.ICMPSent < 100 || c.ICMPSent > 115 || c.ICMPSent+c.ICMPLimited != 1000 {
		t.Errorf("%d errors sent and %d withheld in a second at 100 a second", c.ICMPSent, c.ICMPLimited)
	}
	r.out(0)
}

func TestRoutedPortsDoNotBridge(t *testing.T) {
	r := newRig(t, routerConfig())
	r.in(0, l2(2, 1))
	r.wantDrop(0, frame.ForeignMAC)
	r.in(0, udp(wire.BroadcastMAC, hostMAC(1), "10.0.0.255", "10.0.0.9"))
	r.wantDrop(0, frame.MulticastRouted)
	r.none(1)
}

// Flows spread over equal-cost next hops by weight, each flow on one of them.
func TestECMP(t *testing.T) {
	cfg := routerConfig()
	cfg.Ports = append(cfg.Ports, PortConfig{Name: "c", Enabled: true, Addresses: prefixes("10.0.2.1/24")})
	cfg.Neighbors = []StaticNeighbor{{netip.MustParseAddr("10.0.1.2"), hostMAC(2)}, {netip.MustParseAddr("10.0.2.2"), hostMAC(3)}}
	cfg.Routes = []Route{{Prefix: netip.MustParsePrefix("20.0.0.0/8"), NextHops: []NextHop{{netip.MustParseAddr("10.0.1.2"), 3}, {netip.MustParseAddr("10.0.2.2"), 1}}}}
	r := newRig(t, cfg)
	var got [2]int
	where := map[uint16]int{}
	for round := range 2 {
		for i := range uint16(4000) {
			r.in(0, wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.IPv4("10.0.0.9", "20.1.2.3"), wt.UDP(i, 80)))
			n := len(r.out(1))
			if n+len(r.out(2)) != 1 {
				t.Fatalf("flow %d vanished: %v", i, r.drops())
			}
			if round == 0 {
				got[1-n]++
				where[i] = n
			} else if where[i] != n {
				t.Fatalf("flow %d changed its way", i)
			}
		}
	}
	if got[0] < 2850 || got[0] > 3150 {
		t.Errorf("flows spread %v, want 3:1", got)
	}
}

// A next hop behind a port without a link is passed over; flows of the others
// stay where they are.
func TestECMPPassesOverPortsWithoutLink(t *testing.T) {
	cfg := routerConfig()
	cfg.Ports = append(cfg.Ports, PortConfig{Name: "c", Enabled: true, Addresses: prefixes("10.0.2.1/24")}, PortConfig{Name: "d", Enabled: true, Addresses: prefixes("10.0.3.1/24")})
	route := Route{Prefix: netip.MustParsePrefix("20.0.0.0/8")}
	for i, a := range []string{"10.0.1.2", "10.0.2.2", "10.0.3.2"} {
		cfg.Neighbors = append(cfg.Neighbors, StaticNeighbor{netip.MustParseAddr(a), hostMAC(2 + i)})
		route.NextHops = append(route.NextHops, NextHop{Via: netip.MustParseAddr(a)})
	}
	cfg.Routes = []Route{route}
	r := newRig(t, cfg)
	way := func(flow uint16) (port uint16) {
		r.in(0, wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.IPv4("10.0.0.9", "20.1.2.3"), wt.UDP(flow, 80)))
		for p := uint16(1); p < 4; p++ {
			if len(r.out(p)) == 1 {
				port = p
			}
		}
		return port
	}
	var before [600]uint16
	for i := range before {
		before[i] = way(uint16(i))
	}
	r.setLink(2, false)
	var got [4]int
	for i := range before {
		now := way(uint16(i))
		if before[i] != 2 && now != before[i] {
			t.Fatalf("flow %d moved from port %d to %d", i, before[i], now)
		}
		got[now]++
	}
	if got[0]+got[2] != 0 || got[1] < 250 || got[3] < 250 {
		t.Errorf("flows by port: %v", got)
	}
	r.setLink(1, false)
	r.setLink(3, false)
	r.in(0, udp(selfMAC, hostMAC(1), "20.1.2.3", "10.0.0.9"))
	r.wantDrop(0, frame.EgressPortDown)
}

func TestRouteChangesAtRunTime(t *testing.T) {
	cfg := routerConfig()
	cfg.Neighbors = []StaticNeighbor{{netip.MustParseAddr("10.0.1.2"), hostMAC(2)}}
	r := newRig(t, cfg)
	f := udp(selfMAC, hostMAC(1), "20.0.0.1", "10.0.0.9")
	p := netip.MustParsePrefix("20.0.0.0/8")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(r.sw.SetRoute(Route{Prefix: p, NextHops: []NextHop{{Via: netip.MustParseAddr("10.0.1.2")}}}))
	r.runAll()
	r.in(0, f)
	r.one(1)
	must(r.sw.SetRoute(Route{Prefix: p, Refuse: Blackhole}))
	r.runAll()
	r.in(0, f)
	r.wantDrop(0, frame.Blackhole)
	must(r.sw.DeleteRoute(p))
	r.runAll()
	r.in(0, f)
	r.wantDrop(0, frame.NoRoute)
	r.out(0)
	if err := r.sw.SetRoute(Route{Prefix: p, NextHops: []NextHop{{Via: netip.MustParseAddr("99.0.0.1")}}}); err == nil {
		t.Error("a next hop on no connected network was accepted")
	}
	if err := r.sw.DeleteRoute(netip.MustParsePrefix("10.0.0.0/24")); err == nil {
		t.Error("a connected network was deleted")
	}
	// The route's counters went on under one id.
	for info := range r.sw.Program().Routes {
		_ = info
	}
	must(r.sw.SetRoute(Route{Prefix: p, NextHops: []NextHop{{Via: netip.MustParseAddr("10.0.1.2")}}}))
	var total Traffic
	for info := range r.sw.Program().Routes {
		if info.Prefix == p {
			total = r.sw.Nodes[0].RouteCounts(nil)[info.ID]
		}
	}
	if total.Frames != 2 {
		t.Errorf("the route counted %d frames, want 2", total.Frames)
	}
}

// Interfaces on VLANs: from VLAN 10 to VLAN 20 through the switch, answering
// ARP inside the VLAN while other hosts see the question too.
func TestVLANInterfaces(t *testing.T) {
	cfg := baseConfig(3)
	cfg.VLANs = []VLANConfig{{ID: 10, Name: "red", Addresses: prefixes("10.0.10.1/24")}, {ID: 20, Name: "blue", Addresses: prefixes("10.0.20.1/24")}}
	cfg.Ports[0].VLANMode, cfg.Ports[0].PVID = VLANAccess, 10
	cfg.Ports[1].VLANMode, cfg.Ports[1].PVID = VLANAccess, 20
	cfg.Ports[2].VLANMode = VLANTrunk
	r := newRig(t, cfg)
	r.in(0, arp(wire.ARPRequest, wire.BroadcastMAC, hostMAC(1), "10.0.10.9", "10.0.10.1"))
	if a := wire.ARP(r.one(0)[14:]); a.Op() != wire.ARPReply {
		t.Error("no ARP reply inside VLAN 10")
	}
	if b := r.one(2); binary.BigEndian.Uint16(b[14:]) != 10 {
		t.Errorf("the question left the trunk without tag 10: %x", b)
	}
	r.none(1)
	// Host 2 in VLAN 20 lives behind the trunk.
	r.in(0, udp(selfMAC, hostMAC(1), "10.0.20.2", "10.0.10.9"))
	r.one(1) // the question, flooded in VLAN 20
	if b := r.one(2); binary.BigEndian.Uint16(b[14:])&0xfff != 20 {
		t.Errorf("question on the trunk is not in VLAN 20: %x", b)
	}
	r.in(2, wt.Frame(wt.Eth(selfMAC, hostMAC(2)), wt.VLAN(20, 0), wt.ARP(wire.ARPFields{Op: wire.ARPReply, SenderMAC: hostMAC(2), SenderIP: wt.Addr4("10.0.20.2"), TargetMAC: selfMAC, TargetIP: wt.Addr4("10.0.20.1")})))
	b := r.one(2)
	if e := wire.Ethernet(b); e.Dst() != hostMAC(2) || binary.BigEndian.Uint16(b[14:])&0xfff != 20 || binary.BigEndian.Uint16(b[16:]) != 0x0800 {
		t.Errorf("routed frame is %x", b)
	}
	r.none(1)
}

// A host that comes back behind its port with another MAC is asked for at
// once, on a routed port and in a VLAN.
func TestNeighborsGoWithTheirLink(t *testing.T) {
	routed := routerConfig()
	bridged := baseConfig(3)
	bridged.VLANs = []VLANConfig{{ID: 10, Name: "red", Addresses: prefixes("10.0.1.1/24")}}
	bridged.Ports[0].Addresses = prefixes("10.0.0.1/24")
	for i := 1; i < 3; i++ {
		bridged.Ports[i].VLANMode, bridged.Ports[i].PVID = VLANAccess, 10
	}
	for name, cfg := range map[string]*Config{"routed": routed, "vlan": bridged} {
		r := newRig(t, cfg)
		f := udp(selfMAC, hostMAC(1), "10.0.1.2", "10.0.0.9")
		r.in(1, arp(wire.ARPRequest, wire.BroadcastMAC, hostMAC(2), "10.0.1.2", "10.0.1.1"))
		r.out(1)
		r.in(0, f)
		if b := r.one(1); wire.Ethernet(b).Dst() != hostMAC(2) {
			t.Fatalf("%s: frame for %v", name, wire.Ethernet(b).Dst())
		}
		r.setLink(1, false)
		r.setLink(1, true)
		r.in(0, f)
		if q := r.out(1); len(q) != 1 || wire.Ethernet(q[0]).EtherType() != wire.EtherTypeARP {
			t.Errorf("%s: %d frames, want one question", name, len(q))
		}
		r.in(1, arp(wire.ARPReply, selfMAC, hostMAC(7), "10.0.1.2", "10.0.1.1"))
		if b := r.one(1); wire.Ethernet(b).Dst() != hostMAC(7) {
			t.Errorf("%s: frame for %v, want the new station", name, wire.Ethernet(b).Dst())
		}
	}
}

// What is remembered of the frame before serves only frames that are alike.
func TestTrainsAreNotMixedUp(t *testing.T) {
	cfg := routerConfig()
	cfg.Neighbors = []StaticNeighbor{{netip.MustParseAddr("10.0.1.2"), hostMAC(2)}}
	r := newRig(t, cfg)
	good := udp(selfMAC, hostMAC(1), "10.0.1.2", "10.0.0.9")
	bad := append([]byte(nil), good...)
	bad[24] ^= 1
	far := udp(selfMAC, hostMAC(1), "203.0.113.1", "10.0.0.9")
	mapped := wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.IPv6("fd00:0:0:a::9", "::ffff:10.0.1.2"), wt.UDP(1, 2))
	r.in(0, good, bad, good, far, bad, good, mapped, good, far, good)
	if got := len(r.out(1)); got != 5 {
		t.Errorf("%d good frames came out, want 5: %v", got, r.drops())
	}
	// An IPv4-mapped address is no destination (RFC 6890 table 20).
	if c := r.counts(0); c.Drops[frame.ParseIPv4Checksum] != 2 || c.Drops[frame.NoRoute] != 2 || c.Drops[frame.MulticastRouted] != 1 {
		t.Errorf("dropped %v, want two for their checksum, two without a route, and the mapped address as a martian", r.drops())
	}
}

// A malformed broadcast at a routed port is dropped as what it is.
func TestMalformedBroadcastAtARoutedPort(t *testing.T) {
	r := newRig(t, routerConfig())
	bad := udp(wire.BroadcastMAC, hostMAC(1), "10.0.0.255", "10.0.0.9")
	bad[24] ^= 1
	r.in(0, bad)
	r.wantDrop(0, frame.ParseIPv4Checksum)
}

// What waits for several neighbours is dropped in the order in which they were
// asked, each time: a run repeats to the bit.
func TestNeighborsAreForgottenInOrder(t *testing.T) {
	for range 5 {
		r := newRig(t, routerConfig())
		n := r.sw.Nodes[0]
		n.TapDrops(make([]frame.Ref, 0, 64))
		var want []byte
		for i := range 40 {
			last := byte(2 + i*7%50)
			want = append(want, last)
			r.in(0, udp(selfMAC, hostMAC(1), fmt.Sprintf("10.0.1.%d", last), "10.0.0.9"))
		}
		r.out(1)
		r.setLink(1, false)
		var got []byte
		for _, ref := range n.TakeDrops() {
			got = append(got, r.arena.Bytes(ref)[33])
			r.pools[0].Free(ref)
		}
		n.TapDrops(nil)
		if !bytes.Equal(got, want) {
			t.Fatalf("dropped for %v, want %v", got, want)
		}
	}
}
