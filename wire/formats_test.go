package wire_test

import (
	. "gswitch/frame"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// format is one frame per wire format: what the parser must say of it, and
// which protocols tshark must see in it.
type format struct {
	name  string
	b     []byte
	flags uint32
	// Offsets of outer network and transport, innermost network and transport.
	l3, l4, l3in, l4in uint16
	proto, protoIn     uint8
	sport, dport       uint16
	tshark             string // frame.protocols ends so
}

var (
	macA, macB = wt.MAC(1), wt.MAC(2)
	eth        = wt.Eth(macB, macA)
	mcast      = wt.Eth(wire.MAC{0x33, 0x33, 0, 0, 0, 1}, macA)
	ip4        = wt.IPv4("10.0.0.1", "10.0.0.2")
	ip6        = wt.IPv6("fd00::1", "fd00::2")
	udp        = wt.UDP(1000, 2000)
	data       = wt.Zeros(40)
	tcp        = wt.TCP(wire.TCPFields{SrcPort: 1000, DstPort: 2000, Seq: 1, Ack: 2, Flags: wire.TCPAck, Window: 100})
)

func roce(op uint8, more ...wt.Layer) []byte {
	l := []wt.Layer{eth, wt.IPv4("10.0.0.1", "10.0.0.2", wt.TOS(26<<2|wire.ECT0)), wt.UDP(49152, wire.RoCEv2Port), wt.BTH(op, 7, 99)}
	return wt.Frame(append(l, append(more, wt.Zeros(wire.ICRCLen))...)...)
}

func nd(typ uint8, rest uint32, opts []byte) wt.Layer {
	return wt.ND(wire.NDFields{Type: typ, Rest: rest, Target: wt.Addr6("fe80::2"), RedirectedDest: wt.Addr6("fd00::9"), ReachableTime: 1000, RetransTimer: 2000, Options: opts})
}

func lladdr(typ uint8) []byte {
	b := make([]byte, wire.NDLinkLayerLen)
	wire.PutNDLinkLayer(b, typ, macA)
	return b
}

// hpccBlock is HPCC's header with two records of five.
var hpccBlock = append([]byte{0x21, 0x23, 0x3a, 0xbc, 0xde, 0xf1, 0x23, 0x45, 0x06, 0x78, 0x59, 0x60, 0x2d, 0x25, 0xbc, 0xd1, 0x02, 0x21}, make([]byte, 24)...)

// intMD is an INT-MD 2.1 header with one hop of three words, on the way to
// port.
func intMD(port uint16) []byte {
	return []byte{0x14, 6, byte(port >> 8), byte(port), 0x20, 0, 3, 9, 0xd0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 7, 0, 1, 0, 2, 3, 0, 0, 99}
}

func formats() []format {
	reth := wt.Header(&wire.RETHFields{VA: 1 << 40, RKey: 5, Length: 4096})
	aeth := wt.Header(&wire.AETHFields{Syndrome: 0x1f, MSN: 3})
	imm := wt.Header(&wire.ImmDtFields{Data: 0xdeadbeef})
	atomic := wt.Header(&wire.AtomicETHFields{VA: 8, RKey: 5, SwapOrAdd: 1, Compare: 2})
	atomicAck := wt.Header(&wire.AtomicAckETHFields{Original: 77})
	hop := wt.Ext(wire.ProtoHopByHop, []byte{5, 2, 0, 0, 1, 0}) // router alert, PadN
	pad := []byte{1, 4, 0, 0, 0, 0}                             // PadN
	nsIP := wt.IPv6("fe80::1", "fe80::2", wt.TTL(255))
	v4, v6, u, tc, ect := HasIPv4, HasIPv6|InnerIPv6, HasUDP, HasTCP, IsECT
	const udpP, tcpP, icmpP, icmp6P, gre = wire.ProtoUDP, wire.ProtoTCP, wire.ProtoICMP, wire.ProtoICMPv6, wire.ProtoGRE

	return []format{
		{"udp4", wt.Frame(eth, ip4, udp, data), v4 | u, 14, 34, 14, 34, udpP, udpP, 1000, 2000, "eth:ethertype:ip:udp"},
		{"tcp4", wt.Frame(eth, ip4, tcp), v4 | tc, 14, 34, 14, 34, tcpP, tcpP, 1000, 2000, "eth:ethertype:ip:tcp"},
		{"tcp4-options", wt.Frame(eth, ip4, wt.TCP(wire.TCPFields{SrcPort: 1, DstPort: 2, Flags: wire.TCPSyn, Options: []byte{2, 4, 5, 0xb4, 1, 1, 4, 2}})), v4 | tc, 14, 34, 14, 34, tcpP, tcpP, 1, 2, "ip:tcp"},
		{"vlan", wt.Frame(eth, wt.VLAN(100, 5), ip4, udp, data), v4 | u | HasVLAN, 18, 38, 18, 38, udpP, udpP, 1000, 2000, "vlan:ethertype:ip:udp"},
		{"qinq", wt.Frame(eth, wt.QinQ(200, 6), wt.VLAN(100, 5), ip4, udp, data), v4 | u | HasVLAN, 22, 42, 22, 42, udpP, udpP, 1000, 2000, "ieee8021ad:ethertype:vlan:ethertype:ip:udp"},
		{"arp", wt.Frame(wt.Eth(wire.BroadcastMAC, macA), wt.ARP(wire.ARPFields{Op: wire.ARPRequest, SenderMAC: macA, SenderIP: wt.Addr4("10.0.0.1"), TargetIP: wt.Addr4("10.0.0.2")})), IsARP | IsMulticast | IsBroadcast, 14, 0, 14, 0, 0, 0, 0, 0, "arp"},
		{"ipv4-options", wt.Frame(eth, wt.IPv4("10.0.0.1", "10.0.0.2", wt.IPv4With(func(f *wire.IPv4Fields) { f.Options = []byte{0x94, 4, 0, 0} })), udp, data), v4 | u | HasOptions, 14, 38, 14, 38, udpP, udpP, 1000, 2000, "ip:udp"},
		{"ipv4-fragment", wt.Frame(eth, wt.IPv4("10.0.0.1", "10.0.0.2", wt.IPv4With(func(f *wire.IPv4Fields) { f.FlagsOffset = 185; f.Proto = udpP })), data), v4 | IsFragment, 14, 0, 14, 0, udpP, udpP, 0, 0, "eth:ethertype:ip:data"},
		{"icmp", wt.Frame(eth, ip4, wt.ICMP(wire.ICMPEcho, 0, 1<<16|1), data), v4 | HasICMP, 14, 34, 14, 34, icmpP, icmpP, 0, 0, "ip:icmp"},
		{"udp6", wt.Frame(eth, ip6, udp, data), v6 | u, 14, 54, 14, 54, udpP, udpP, 1000, 2000, "eth:ethertype:ipv6:udp"},
		{"tcp6", wt.Frame(eth, ip6, tcp), v6 | tc, 14, 54, 14, 54, tcpP, tcpP, 1000, 2000, "eth:ethertype:ipv6:tcp"},
		{"ipv6-extensions", wt.Frame(eth, ip6, hop, wt.Ext(wire.ProtoRouting, []byte{0, 0, 0, 0, 0, 0}), wt.Ext(wire.ProtoDstOpts, pad), wt.Ext(wire.ProtoAH, make([]byte, 22)), udp, data), v6 | u | HasOptions, 14, 14 + 40 + 24 + 24, 14, 102, udpP, udpP, 1000, 2000, "ah:udp"},
		{"ipv6-fragment", wt.Frame(eth, ip6, wt.Ext(wire.ProtoFragment, []byte{0x05, 0xc8, 0, 0, 0, 9}), wt.Zeros(64)), v6 | IsFragment | HasOptions, 14, 0, 14, 0, 253, 253, 0, 0, "ipv6:ipv6.fraghdr:data"},
		{"ipv6-atomic-fragment", wt.Frame(eth, ip6, wt.Ext(wire.ProtoFragment, make([]byte, 6)), udp, data), v6 | u | HasOptions, 14, 62, 14, 62, udpP, udpP, 1000, 2000, "ipv6:ipv6.fraghdr:udp"},
		{"icmpv6-echo", wt.Frame(eth, ip6, wt.ICMPv6(wire.ICMPv6Echo, 0, 1<<16|1), data), v6 | HasICMP, 14, 54, 14, 54, icmp6P, icmp6P, 0, 0, "ipv6:icmpv6"},
		{"nd-rs", wt.Frame(mcast, nsIP, nd(wire.ICMPv6RouterSolicitation, 0, lladdr(wire.NDSourceLinkLayer))), v6 | HasICMP | IsMulticast, 14, 54, 14, 54, icmp6P, icmp6P, 0, 0, "icmpv6"},
		{"nd-ra", wt.Frame(mcast, nsIP, nd(wire.ICMPv6RouterAdvertisement, 64<<24|1800, append(lladdr(wire.NDSourceLinkLayer), 5, 1, 0, 0, 0, 0, 5, 0xdc))), v6 | HasICMP | IsMulticast, 14, 54, 14, 54, icmp6P, icmp6P, 0, 0, "icmpv6"},
		{"nd-ns", wt.Frame(mcast, nsIP, nd(wire.ICMPv6NeighborSolicitation, 0, lladdr(wire.NDSourceLinkLayer))), v6 | HasICMP | IsMulticast, 14, 54, 14, 54, icmp6P, icmp6P, 0, 0, "icmpv6"},
		{"nd-na", wt.Frame(eth, nsIP, nd(wire.ICMPv6NeighborAdvertisement, wire.NDSolicited|wire.NDOverride, lladdr(wire.NDTargetLinkLayer))), v6 | HasICMP, 14, 54, 14, 54, icmp6P, icmp6P, 0, 0, "icmpv6"},
		{"nd-redirect", wt.Frame(eth, nsIP, nd(wire.ICMPv6Redirect, 0, lladdr(wire.NDTargetLinkLayer))), v6 | HasICMP, 14, 54, 14, 54, icmp6P, icmp6P, 0, 0, "icmpv6"},
		{"roce-send-only", roce(wire.RCSendOnly, data), v4 | u | HasRoCE | ect, 14, 34, 14, 34, udpP, udpP, 49152, 4791, "udp:infiniband"},
		{"roce-write-only-imm", roce(wire.RCWriteOnlyImmediate, reth, imm, data), v4 | u | HasRoCE | ect, 14, 34, 14, 34, udpP, udpP, 49152, 4791, "udp:infiniband"},
		{"roce-ack", roce(wire.RCAcknowledge, aeth), v4 | u | HasRoCE | ect, 14, 34, 14, 34, udpP, udpP, 49152, 4791, "udp:infiniband"},
		{"roce-cmp-swap", roce(wire.RCCompareSwap, atomic), v4 | u | HasRoCE | ect, 14, 34, 14, 34, udpP, udpP, 49152, 4791, "udp:infiniband"},
		{"roce-atomic-ack", roce(wire.RCAtomicAcknowledge, aeth, atomicAck), v4 | u | HasRoCE | ect, 14, 34, 14, 34, udpP, udpP, 49152, 4791, "udp:infiniband"},
		{"roce-v6", wt.Frame(eth, ip6, wt.UDP(49152, wire.RoCEv2Port), wt.BTH(wire.RCSendOnly, 7, 1), wt.Zeros(36)), v6 | u | HasRoCE, 14, 54, 14, 54, udpP, udpP, 49152, 4791, "udp:infiniband"},
		{"hpcc", wt.Frame(eth, ip4, wt.UDP(49152, wire.HPCCPort), wt.Payload(hpccBlock), wt.BTH(wire.RCSendMiddle, 7, 1), wt.Zeros(36)), v4 | u | HasRoCE | HasINT, 14, 34, 14, 34, udpP, udpP, 49152, 4793, "ip:udp"},
		{"hpcc-v6-vlan", wt.Frame(eth, wt.VLAN(100, 5), ip6, wt.UDP(49152, wire.HPCCPort), wt.Payload(hpccBlock), wt.BTH(wire.RCSendMiddle, 7, 1), wt.Zeros(36)), v6 | u | HasRoCE | HasINT | HasVLAN, 18, 58, 18, 58, udpP, udpP, 49152, 4793, "ipv6:udp"},
		{"hpcc-grow", wt.Frame(eth, ip4, wt.UDP(49152, wire.HPCCGrowPort), wt.Payload(hpccBlock[:18]), wt.BTH(wire.RCSendMiddle, 7, 1), wt.Zeros(36)), v4 | u | HasRoCE | HasINT, 14, 34, 14, 34, udpP, udpP, 49152, 4794, "ip:udp"},
		{"int-md-roce", wt.Frame(eth, ip4, wt.UDP(49152, wire.INTPort), wt.Payload(intMD(4791)), wt.BTH(wire.RCSendMiddle, 7, 1), wt.Zeros(36)), v4 | u | HasRoCE | HasINT, 14, 34, 14, 34, udpP, udpP, 49152, 4795, "ip:udp"},
		{"int-md-udp", wt.Frame(eth, ip4, wt.UDP(1000, wire.INTPort), wt.Payload(intMD(2000)), data), v4 | u | HasINT, 14, 34, 14, 34, udpP, udpP, 1000, 4795, "ip:udp"},
		{"slack", wt.Frame(eth, wt.Slack(1000000, -3000), ip4, udp, data), v4 | u, 38, 58, 38, 58, udpP, udpP, 1000, 2000, "eth:ethertype:nsh:ip:udp"},
		{"slack-vlan-v6", wt.Frame(eth, wt.VLAN(100, 5), wt.Slack(0, 0), ip6, tcp), v6 | tc | HasVLAN, 42, 82, 42, 82, tcpP, tcpP, 1000, 2000, "vlan:ethertype:nsh:ipv6:tcp"},
		{"slack-icmp", wt.Frame(eth, wt.Slack(1, 1), ip4, wt.ICMP(wire.ICMPEcho, 0, 1<<16|1), data), v4 | HasICMP, 38, 58, 38, 58, icmpP, icmpP, 0, 0, "nsh:ip:icmp"},
		{"pause", wt.Pause(macA, 0xffff), IsMACControl | IsMulticast, 14, 0, 14, 0, 0, 0, 0, 0, "macc"},
		{"pfc", wt.PFC(macA, 3, 0xffff), IsMACControl | IsMulticast, 14, 0, 14, 0, 0, 0, 0, 0, "macc"},
		{"gre-ipv4", wt.Frame(eth, ip4, wt.GRE(0, 0, 0), wt.IPv4("192.168.0.1", "192.168.0.2"), udp, data), v4 | u | HasTunnel, 14, 34, 38, 58, gre, udpP, 1000, 2000, "ip:gre:ip:udp"},
		{"gre-options-ipv6", wt.Frame(eth, ip4, wt.GRE(wire.GREChecksum|wire.GREKey|wire.GRESequence, 7, 8), ip6, udp, data), v4 | u | HasTunnel | InnerIPv6, 14, 34, 50, 90, gre, udpP, 1000, 2000, "gre:ipv6:udp"},
		{"gre-ethernet", wt.Frame(eth, ip4, wt.GRE(wire.GREKey, 7, 0), eth, wt.VLAN(5, 0), ip4, tcp), v4 | tc | HasTunnel, 14, 34, 60, 80, gre, tcpP, 1000, 2000, "gre:eth:ethertype:vlan:ethertype:ip:tcp"},
		{"erspan-2", wt.Frame(eth, ip4, wt.GRE(0, 0, 9), wt.ERSPAN2(wire.ERSPAN2Fields{VLAN: 3, COS: 1, SessionID: 11, Index: 7}), eth, ip4, udp, data), v4 | u | HasTunnel, 14, 34, 64, 84, gre, udpP, 1000, 2000, "gre:erspan:eth:ethertype:ip:udp"},
		{"erspan-3", wt.Frame(eth, ip4, wt.GRE(0, 0, 9), wt.ERSPAN3(wire.ERSPAN3Fields{VLAN: 3, SessionID: 11, Timestamp: 5, ProtocolDU: true, Granularity: 1}), eth, ip4, udp, data), v4 | u | HasTunnel, 14, 34, 68, 88, gre, udpP, 1000, 2000, "gre:erspan:eth:ethertype:ip:udp"},
		{"erspan-3-platform", wt.Frame(eth, ip4, wt.GRE(0, 0, 9), wt.ERSPAN3(wire.ERSPAN3Fields{SessionID: 11, ProtocolDU: true, Granularity: 2, HasPlatform: true, Platform: 3 << 58}), eth, ip4, udp, data), v4 | u | HasTunnel, 14, 34, 76, 96, gre, udpP, 1000, 2000, "gre:erspan:eth:ethertype:ip:udp"},
		{"ip-in-ip", wt.Frame(eth, ip4, wt.IPv4("192.168.0.1", "192.168.0.2"), udp, data), v4 | u | HasTunnel, 14, 34, 34, 54, wire.ProtoIPv4, udpP, 1000, 2000, "ip:ip:udp"},
		{"6in4", wt.Frame(eth, ip4, ip6, tcp), v4 | tc | HasTunnel | InnerIPv6, 14, 34, 34, 74, wire.ProtoIPv6, tcpP, 1000, 2000, "ip:ipv6:tcp"},
		{"4in6", wt.Frame(eth, ip6, ip4, tcp), HasIPv6 | tc | HasTunnel, 14, 54, 54, 74, wire.ProtoIPv4, tcpP, 1000, 2000, "ipv6:ip:tcp"},
		{"gre-in-ipv6", wt.Frame(eth, ip6, wt.GRE(0, 0, 0), ip6, udp, data), v6 | u | HasTunnel, 14, 54, 58, 98, gre, udpP, 1000, 2000, "ipv6:gre:ipv6:udp"},
		{"four-deep", wt.Frame(eth, ip4, ip4, ip4, ip4, udp, data), v4 | u | HasTunnel, 14, 34, 74, 94, wire.ProtoIPv4, udpP, 1000, 2000, "ip:ip:ip:ip:udp"},
	}
}
