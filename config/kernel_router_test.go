package config_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gswitch/frame"
	st "gswitch/vswitch/switchtest"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

const router = `    ports:
      - {interface: a, address: [192.0.2.1/24, "2001:db8:1::1/64"]}
      - {interface: b, address: [198.51.100.1/24, "2001:db8:2::1/64"]%s}
%s    neighbors:
      - {address: 198.51.100.2, mac: "02:00:00:00:00:02"}
      - {address: 2001:db8:2::2, mac: "02:00:00:00:00:02"}
      - {address: 192.0.2.2, mac: "02:00:00:00:00:01"}
      - {address: 2001:db8:1::2, mac: "02:00:00:00:00:01"}
`

// packet is one that host 1 gives the router.
func packet(src, dst string, o ...wt.IPOption) []byte { return packetTo(st.SelfMAC, src, dst, o...) }

func packetTo(to wire.MAC, src, dst string, o ...wt.IPOption) []byte {
	ip := wt.IPv4
	if slices.Contains([]byte(src), ':') {
		ip = wt.IPv6
	}
	return wt.Frame(wt.Eth(to, mac(1)), ip(src, dst, o...), wt.UDP(1, 2), wt.Zeros(40))
}

// router: packets of both versions, whose time to live goes by one, and martians.
func TestKernelRouter(t *testing.T) {
	b := newBench(t, fmt.Sprintf(router, "", `    routes: [{prefix: 169.254.9.0/24, via: 198.51.100.2}]
`))
	for _, v := range []struct{ src, dst string }{{"192.0.2.2", "198.51.100.2"}, {"2001:db8:1::2", "2001:db8:2::2"}} {
		f := b.one("routed", 0, packet(v.src, v.dst, wt.TTL(9)), 1)
		wt.Check(t, f, wt.MACs(mac(2), st.SelfMAC), wt.Addrs(v.src, v.dst), wt.HasTTL(8), wt.Checksums())
		if back := b.one("its last hop", 0, packet(v.src, v.dst, wt.TTL(1)), 0); wire.Ethernet(back).Dst() != mac(1) {
			t.Errorf("%s: the receiver of the time exceeded message is %v", v.src, wire.Ethernet(back).Dst())
		}
		b.dropped("to another station", 0, packetTo(mac(7), v.src, v.dst), frame.ForeignMAC)
		b.dropped("a multicast source, "+v.src, 0, packet(map[bool]string{true: "ff02::9", false: "224.0.0.9"}[v.src[0] == '2'], v.dst), frame.MartianSource)
		b.dropped("loopback as source, "+v.src, 0, packet(map[bool]string{true: "::1", false: "127.0.0.1"}[v.src[0] == '2'], v.dst), frame.MartianSource)
	}
	b.dropped("class E as source, which the kernel forwards", 0, packet("240.0.0.1", "198.51.100.2"), frame.MartianSource) // RFC 1812 section 5.3.7
	b.goes("source equal to destination", 0, packet("198.51.100.2", "198.51.100.2"), 1)
	b.goes("source equal to destination, IPv6", 0, packet("2001:db8:2::2", "2001:db8:2::2"), 1)
	b.goes("link-local destination with a route", 0, packet("192.0.2.2", "169.254.9.9"), 1)
	b.dropped("unspecified source", 0, packet("0.0.0.0", "198.51.100.2"), frame.MartianSource)
	b.dropped("limited broadcast as source", 0, packet("255.255.255.255", "198.51.100.2"), frame.MartianSource)
	b.dropped("loopback as destination", 0, packet("192.0.2.2", "127.0.0.9"), frame.MulticastRouted)
	b.dropped("multicast to a MAC of one station", 0, packet("192.0.2.2", "225.1.2.3"), frame.MulticastRouted)
}

// min_max_mtu, ip6_forward_instats_vrf and router_nh: what is too large, what has no route, next hops of the other
// version. All have a reason of their own, and the sender is notified.
func TestKernelRouterErrors(t *testing.T) {
	b := newBench(t, fmt.Sprintf(router, ", mtu: 1300", `    routes: [{prefix: 203.0.113.0/24, via: "2001:db8:2::2"}]
`))
	large := func(src, dst string, bytes int) []byte {
		f := packet(src, dst)
		ip := wt.IPv4
		if src[4] == ':' {
			ip = wt.IPv6
		}
		return wt.Frame(wt.Eth(st.SelfMAC, mac(1)), ip(src, dst), wt.UDP(1, 2), wt.Zeros(bytes-(len(f)-wire.EthernetLen-40)))
	}
	for _, v := range []struct{ src, dst, nowhere string }{{"192.0.2.2", "198.51.100.2", "100.64.0.1"}, {"2001:db8:1::2", "2001:db8:2::2", "2001:db8:9::1"}} {
		b.goes("as large as the MTU", 0, large(v.src, v.dst, 1300), 1)
		for why, f := range map[frame.Reason][]byte{frame.MTUExceeded: large(v.src, v.dst, 1301), frame.NoRoute: packet(v.src, v.nowhere), frame.TTLExpired: packet(v.src, v.dst, wt.TTL(1))} {
			before := b.Counts(0).Drops[why]
			b.one(why.String(), 0, f, 0) // to the sender
			if n := b.Counts(0).Drops[why] - before; n != 1 {
				t.Errorf("%v of %s is counted %d times", why, v.src, n)
			}
		}
	}
	f := b.one("IPv4 by an IPv6 next hop", 0, packet("192.0.2.2", "203.0.113.9"), 1)
	wt.Check(t, f, wt.MACs(mac(2), st.SelfMAC), wt.Addrs("192.0.2.2", "203.0.113.9"))
}

// router_broadcast: the broadcast of a network is not routed, as where bc_forwarding is 0.
func TestKernelRouterBroadcast(t *testing.T) {
	b := newBench(t, fmt.Sprintf(router, "", ""))
	for _, dst := range []string{"198.51.100.255", "198.51.100.0", "192.0.2.255", "255.255.255.255"} {
		b.dropped(dst, 0, packet("192.0.2.2", dst), frame.MulticastRouted)
	}
}

// no_forwarding: ports that route do not bridge, whatever comes.
func TestKernelNoForwarding(t *testing.T) {
	b := newBench(t, fmt.Sprintf(router, "", ""))
	for name, to := range map[string]wire.MAC{"broadcast": everybody, "multicast": group, "IPv6 multicast": {0x33, 0x33, 1, 2, 3, 4}, "unknown": mac(99), "a neighbour": mac(2),
		"spanning tree": {0x01, 0x80, 0xc2, 0, 0, 0}, "LLDP": {0x01, 0x80, 0xc2, 0, 0, 0x0e}, "PTP": {0x01, 0x1b, 0x19, 0, 0, 0}} {
		for _, vlan := range []int{-1, 5} {
			b.goes(name, 0, station(to, mac(1), vlan))
		}
	}
	bridge := newBench(t, "    ports: [{interface: a}, {interface: b}]\n")
	for last := range byte(16) { // IEEE 802.1Q table 8-1
		bridge.goes(fmt.Sprint("01-80-C2-00-00-0", last), 0, station(wire.MAC{0x01, 0x80, 0xc2, 0, 0, last}, mac(1), -1))
	}
	bridge.goes("PTP over Ethernet", 0, station(wire.MAC{0x01, 0x1b, 0x19, 0, 0, 0}, mac(1), -1), 1)
}

// router_bridge_vlan and router_vid_1: interfaces of VLANs, among them VLAN 1 with its tag.
func TestKernelRouterBridge(t *testing.T) {
	b := newBench(t, `    ports:
      - {interface: a, vlan: {trunk: [1, 10]}}
      - {interface: b, vlan: {access: 10}}
      - {interface: c, address: [198.51.100.1/24, "2001:db8:2::1/64"]}
    vlans:
      - {id: 1, address: [203.0.113.1/24]}
      - {id: 10, address: [192.0.2.1/24, "2001:db8:1::1/64"]}
    neighbors:
      - {address: 198.51.100.2, mac: "02:00:00:00:00:02"}
      - {address: 2001:db8:2::2, mac: "02:00:00:00:00:02"}
      - {address: 192.0.2.2, mac: "02:00:00:00:00:01"}
      - {address: 203.0.113.2, mac: "02:00:00:00:00:03"}
`)
	tagged := func(src int, vlan uint16, from, to string) []byte {
		ip := wt.IPv4
		if from[4] == ':' {
			ip = wt.IPv6
		}
		return wt.Frame(wt.Eth(st.SelfMAC, mac(src)), wt.VLAN(vlan, 0), ip(from, to), wt.UDP(1, 2), wt.Zeros(40))
	}
	b.goes("bridged in the VLAN", 1, station(everybody, mac(4), -1), 0)
	wt.Check(t, b.one("routed out of a VLAN", 0, tagged(1, 10, "192.0.2.2", "198.51.100.2"), 2), wt.MACs(mac(2), st.SelfMAC), wt.HasTTL(63), wt.Untagged(), wt.Checksums())
	wt.Check(t, b.one("IPv6", 0, tagged(1, 10, "2001:db8:1::2", "2001:db8:2::2"), 2), wt.MACs(mac(2), st.SelfMAC), wt.HasTTL(63), wt.Untagged())
	wt.Check(t, b.one("out of VLAN 1", 0, tagged(3, 1, "203.0.113.2", "198.51.100.2"), 2), wt.MACs(mac(2), st.SelfMAC), wt.Untagged())
	wt.Check(t, b.one("between VLANs of a port", 0, tagged(3, 1, "203.0.113.2", "192.0.2.2"), 0), wt.MACs(mac(1), st.SelfMAC), wt.Tagged(10, 0), wt.HasTTL(63))
	back := wt.Frame(wt.Eth(st.SelfMAC, mac(2)), wt.IPv4("198.51.100.2", "192.0.2.2"), wt.UDP(1, 2), wt.Zeros(40))
	wt.Check(t, b.one("routed into a VLAN", 2, back, 0), wt.MACs(mac(1), st.SelfMAC), wt.Tagged(10, 0), wt.HasTTL(63))
}

// several is a router with two ways to a prefix of each version.
func several(weights [2]int, extra string) string {
	hops := func(a, b string) string {
		return fmt.Sprintf("next_hops: [{via: %q, weight: %d}, {via: %q, weight: %d}]", a, weights[0], b, weights[1])
	}
	return `    ports:
      - {interface: a, address: [192.0.2.1/24, "2001:db8:1::1/64"]}
      - {interface: b, address: [198.51.100.1/24, "2001:db8:2::1/64"]}
      - {interface: c, address: [203.0.113.1/24, "2001:db8:3::1/64"]}
    routes:
      - {prefix: 10.0.0.0/8, ` + hops("198.51.100.2", "203.0.113.2") + `}
      - {prefix: "2001:db8:100::/40", ` + hops("2001:db8:2::2", "2001:db8:3::2") + `}
    neighbors:
      - {address: 198.51.100.2, mac: "02:00:00:00:00:02"}
      - {address: 2001:db8:2::2, mac: "02:00:00:00:00:02"}
      - {address: 203.0.113.2, mac: "02:00:00:00:00:03"}
      - {address: 2001:db8:3::2, mac: "02:00:00:00:00:03"}
` + extra
}

// flow is a datagram of a flow in which some field changes.
func flow(v6 bool, field string, i int) []byte {
	src, dst, sport, dport := byte(2), byte(2), uint16(1), uint16(2)
	label, hi := uint32(0), byte(0)
	switch field {
	case "src":
		src, hi = byte(2+i%250), byte(i/250)
	case "dst":
		dst, hi = byte(i), byte(i>>8)
	case "src_port":
		sport = uint16(1000 + i)
	case "dst_port":
		dport = uint16(1000 + i)
	case "label":
		label = uint32(i)
	}
	var f []byte
	if v6 {
		f = wt.Frame(wt.Eth(st.SelfMAC, mac(1)), wt.IPv6(fmt.Sprintf("2001:db8:1::%x:%x", hi, src), fmt.Sprintf("2001:db8:100::%x:%x", hi, dst)), wt.UDP(sport, dport), wt.Zeros(20))
		f[15], f[16], f[17] = f[15]&0xf0|byte(label>>16), byte(label>>8), byte(label)
	} else {
		f = wt.Frame(wt.Eth(st.SelfMAC, mac(1)), wt.IPv4(fmt.Sprintf("172.16.%d.%d", hi, src), fmt.Sprintf("10.0.%d.%d", hi, dst)), wt.UDP(sport, dport), wt.Zeros(20))
	}
	return f
}

// share is the part of some flows that leaves by port 1; all must leave.
func (b *bench) share(v6 bool, field string, flows int) float64 {
	b.Helper()
	first := 0
	for i := range flows {
		out := b.sends(0, flow(v6, field, i))
		if len(out[1])+len(out[2]) != 1 {
			b.Fatalf("flow %d leaves by %v; drops %v", i, out, b.Drops())
		}
		first += len(out[1])
	}
	return float64(first) / float64(flows)
}

// router_multipath: flows of both versions divide by the weights. The kernel's test allows the ratio to be 15 % off;
// here it is within four standard deviations of what independent flows give.
func TestKernelMultipath(t *testing.T) {
	const flows = 4000
	for _, w := range [][2]int{{1, 1}, {2, 1}, {11, 45}} {
		b := newBench(t, several(w, ""))
		want := float64(w[0]) / float64(w[0]+w[1])
		for _, v6 := range []bool{false, true} {
			if got, sd := b.share(v6, "src_port", flows), math.Sqrt(want*(1-want)/flows); math.Abs(got-want) > 4*sd {
				t.Errorf("weights %v, IPv6 %v: %.3f of the flows go by the first, want %.3f within %.3f", w, v6, got, want, 4*sd)
			}
		}
	}
	b := newBench(t, several([2]int{1, 1}, ""))
	b.SetLink(1, false)
	if got := b.share(false, "src_port", 100); got != 0 {
		t.Errorf("%.2f of the flows go by a port without a link", got)
	}
}

// custom_multipath_hash: a field spreads flows if it is one of hash_fields, and only then.
func TestKernelMultipathHash(t *testing.T) {
	for _, field := range []string{"src", "dst", "src_port", "dst_port", "label"} {
		other := map[string]string{"src": "dst", "dst": "src", "src_port": "dst_port", "dst_port": "src_port", "label": "dst"}[field]
		for _, v6 := range []bool{false, true} {
			if field == "label" && !v6 {
				continue
			}
			with, without := newBench(t, several([2]int{1, 1}, "    hash_fields: ["+field+"]\n")), newBench(t, several([2]int{1, 1}, "    hash_fields: ["+other+"]\n"))
			if got := with.share(v6, field, 400); got < 0.4 || got > 0.6 { // half, within four standard deviations
				t.Errorf("by %s, IPv6 %v: %.2f go by the first", field, v6, got)
			}
			if got := without.share(v6, field, 50); got != 0 && got != 1 {
				t.Errorf("by %s, where %s changes, IPv6 %v: %.2f go by the first", other, field, v6, got)
			}
		}
	}
}

// router_mpath_seed: the seed says which flow goes where, and the same one always the same.
func TestKernelMultipathSeed(t *testing.T) {
	ways := func(seed int) (v []int) {
		b := newBench(t, several([2]int{1, 1}, "")+fmt.Sprintf("    seed: %d\n", seed))
		for i := range 64 {
			v = append(v, len(b.sends(0, flow(false, "src_port", i))[1]))
		}
		return v
	}
	one, again, other := ways(1), ways(1), ways(2)
	if !slices.Equal(one, again) || slices.Equal(one, other) {
		t.Errorf("seed 1 chooses %v and %v, seed 2 %v", one, again, other)
	}
}
