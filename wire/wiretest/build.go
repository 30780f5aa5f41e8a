// Package wiretest builds frames layer by layer and checks them field by
// field, for tests and tools. It allocates freely and panics on what cannot
// be built, such as an address that does not parse.
//
//	b := wiretest.Frame(wiretest.Eth(wiretest.MAC(2), wiretest.MAC(1)), wiretest.VLAN(100, 3),
//		wiretest.IPv4("10.0.0.1", "10.0.0.2", wiretest.TTL(9)), wiretest.UDP(1000, 2000), wiretest.Zeros(100))
//
// EtherTypes, protocol numbers, lengths and checksums follow from the layers.
package wiretest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"

	"gswitch/wire"
)

// Layer is a header, or payload.
type Layer struct {
	etherType uint16 // how an Ethernet header or tag before it announces it
	proto     uint8  // how an IP header before it announces it
	greFlags  uint16 // what a GRE header before it must carry
	build     func(payload []byte, inner []Layer) []byte
}

// Encoder is what every record in package wire is.
type Encoder interface{ Encode(b []byte) int }

// Packet puts the layers together, the outermost first.
func Packet(layers ...Layer) []byte {
	var b []byte
	for i := len(layers) - 1; i >= 0; i-- {
		b = layers[i].build(b, layers[i+1:])
	}
	return b
}

// Frame is Packet, padded with zeros to the least length of an Ethernet frame.
func Frame(layers ...Layer) []byte {
	b := Packet(layers...)
	return append(b, make([]byte, max(0, wire.MinFrame-len(b)))...)
}

// MAC returns the locally administered address 02:00:00:00:nn:nn.
func MAC(n uint16) wire.MAC { return wire.MAC{0: 2, 4: byte(n >> 8), 5: byte(n)} }

// Addr4 and Addr6 read an address.
func Addr4(s string) [4]byte  { return netip.MustParseAddr(s).As4() }
func Addr6(s string) [16]byte { return netip.MustParseAddr(s).As16() }

// Payload is the bytes b.
func Payload(b []byte) Layer {
	return Layer{build: func(p []byte, _ []Layer) []byte { return append(bytes.Clone(b), p...) }}
}

// Zeros is n zero bytes.
func Zeros(n int) Layer { return Payload(make([]byte, n)) }

// Header is any record of package wire, without an effect on its neighbours.
func Header(f Encoder) Layer {
	return Layer{build: func(p []byte, _ []Layer) []byte { return prepend(f, p) }}
}

func prepend(f Encoder, payload []byte) []byte {
	b := make([]byte, 2048)
	n := f.Encode(b)
	if n == 0 {
		panic(fmt.Sprintf("wiretest: cannot encode %+v", f))
	}
	return append(b[:n], payload...)
}

func etherTypeOf(inner []Layer) uint16 {
	if len(inner) == 0 || inner[0].etherType == 0 {
		return 0x88b5 // IEEE 802 local experimental EtherType 1
	}
	return inner[0].etherType
}

func protoOf(inner []Layer) uint8 {
	if len(inner) == 0 || inner[0].proto == 0 {
		return 253 // experimentation (RFC 3692)
	}
	return inner[0].proto
}

// Eth is an Ethernet header; its EtherType follows from the next layer.
func Eth(dst, src wire.MAC) Layer {
	return Layer{etherType: wire.EtherTypeTEB, build: func(p []byte, inner []Layer) []byte {
		return prepend(&wire.EthernetFields{Dst: dst, Src: src, EtherType: etherTypeOf(inner)}, p)
	}}
}

// EthType is an Ethernet header with a given EtherType.
func EthType(dst, src wire.MAC, etherType uint16) Layer {
	return Header(&wire.EthernetFields{Dst: dst, Src: src, EtherType: etherType})
}

// Slack is a network service header that carries slack, in nanoseconds.
func Slack(initial, left int64) Layer {
	return Layer{etherType: wire.EtherTypeNSH, build: func(p []byte, inner []Layer) []byte {
		return prepend(&wire.SlackFields{Initial: initial, Left: left, EtherType: etherTypeOf(inner)}, p)
	}}
}

// VLAN is an 802.1Q tag.
func VLAN(vid uint16, pcp uint8) Layer { return tag(wire.EtherTypeVLAN, vid, pcp) }

// QinQ is an 802.1ad service tag.
func QinQ(vid uint16, pcp uint8) Layer { return tag(wire.EtherTypeQinQ, vid, pcp) }

func tag(tpid, vid uint16, pcp uint8) Layer {
	return Layer{etherType: tpid, build: func(p []byte, inner []Layer) []byte {
		return prepend(&wire.VLANFields{PCP: pcp, VID: vid, EtherType: etherTypeOf(inner)}, p)
	}}
}

// ARP is an ARP packet.
func ARP(f wire.ARPFields) Layer {
	return Layer{etherType: wire.EtherTypeARP, build: func(p []byte, _ []Layer) []byte { return prepend(&f, p) }}
}

// IPOption changes a field of an IP header before it is encoded; of the two
// records it is given one, the other is nil.
type IPOption func(*wire.IPv4Fields, *wire.IPv6Fields)

// TTL sets TTL or hop limit; without it, it is 64.
func TTL(v uint8) IPOption {
	return func(f *wire.IPv4Fields, g *wire.IPv6Fields) {
		if f != nil {
			f.TTL = v
		} else {
			g.HopLimit = v
		}
	}
}

// TOS sets TOS or traffic class: DSCP<<2 | ECN.
func TOS(v uint8) IPOption {
	return func(f *wire.IPv4Fields, g *wire.IPv6Fields) {
		if f != nil {
			f.TOS = v
		} else {
			g.TrafficClass = v
		}
	}
}

// IPv4With lets the caller set any field of an IPv4 header. TotalLen and
// Checksum are computed only where they are 0.
func IPv4With(set func(*wire.IPv4Fields)) IPOption {
	return func(f *wire.IPv4Fields, _ *wire.IPv6Fields) { set(f) }
}

// IPv4 is an IPv4 header.
func IPv4(src, dst string, opts ...IPOption) Layer {
	return Layer{etherType: wire.EtherTypeIPv4, proto: wire.ProtoIPv4, build: func(p []byte, inner []Layer) []byte {
		f := wire.IPv4Fields{TTL: 64, Src: Addr4(src), Dst: Addr4(dst), Proto: protoOf(inner)}
		for _, o := range opts {
			o(&f, nil)
		}
		if f.TotalLen == 0 {
			f.TotalLen = uint16(f.HeaderLen() + len(p))
		}
		if f.FlagsOffset&(wire.IPv4MoreFragments|wire.IPv4OffsetMask) == 0 {
			seal(wire.PseudoSum4(f.Src, f.Dst, f.Proto, len(p)), f.Proto, p)
		}
		b := prepend(&f, p)
		if f.Checksum == 0 {
			wire.IPv4(b).UpdateChecksum()
		}
		return b
	}}
}

// IPv6 is an IPv6 header.
func IPv6(src, dst string, opts ...IPOption) Layer {
	return Layer{etherType: wire.EtherTypeIPv6, proto: wire.ProtoIPv6, build: func(p []byte, inner []Layer) []byte {
		f := wire.IPv6Fields{HopLimit: 64, Src: Addr6(src), Dst: Addr6(dst), NextHeader: protoOf(inner), PayloadLen: uint16(len(p))}
		if len(inner) > 0 && inner[0].proto == wire.ProtoHopByHop && inner[0].etherType == extension {
			f.NextHeader = wire.ProtoHopByHop
		}
		for _, o := range opts {
			o(nil, &f)
		}
		proto, seg := f.NextHeader, p
		for wire.IsIPv6Ext(proto) {
			x := wire.IPv6ExtFields{Kind: proto}
			n, _ := x.Decode(seg)
			if proto == wire.ProtoFragment && wire.IPv6Fragment(seg).IsFragment() {
				return prepend(&f, p)
			}
			proto, seg = x.NextHeader, seg[n:]
		}
		seal(wire.PseudoSum6(f.Src, f.Dst, proto, len(seg)), proto, seg)
		return prepend(&f, p)
	}}
}

// extension marks extension headers in Layer.etherType, which nothing before
// them looks at, for hop-by-hop options have protocol number 0.
const extension = 1

// Ext is an IPv6 extension header with the given body after its two first
// bytes; body and these make a multiple of 8 bytes (of 4 for AH).
func Ext(kind uint8, body []byte) Layer {
	return Layer{etherType: extension, proto: kind, build: func(p []byte, inner []Layer) []byte {
		f := wire.IPv6ExtFields{Kind: kind, NextHeader: protoOf(inner), Body: body}
		switch kind {
		case wire.ProtoAH:
			f.Len = uint8((len(body)+2)/4 - 2)
		case wire.ProtoFragment:
		default:
			f.Len = uint8((len(body)+2)/8 - 1)
		}
		return prepend(&f, p)
	}}
}

// seal computes the checksum of the segment after an IP header, where its
// record left it 0.
func seal(pseudo uint64, proto uint8, seg []byte) {
	switch {
	case proto == wire.ProtoUDP && len(seg) >= wire.UDPLen && wire.UDP(seg).Checksum() == 0:
		wire.UpdateUDPChecksum(pseudo, seg)
	case proto == wire.ProtoTCP && len(seg) >= wire.TCPLen && wire.TCP(seg).Checksum() == 0:
		wire.UpdateTCPChecksum(pseudo, seg)
	case proto == wire.ProtoICMP && len(seg) >= wire.ICMPLen && wire.ICMP(seg).Checksum() == 0:
		wire.UpdateICMPChecksum(0, seg)
	case proto == wire.ProtoICMPv6 && len(seg) >= wire.ICMPLen && wire.ICMP(seg).Checksum() == 0:
		wire.UpdateICMPChecksum(pseudo, seg)
	}
}

// UDP is a UDP header.
func UDP(src, dst uint16) Layer {
	return Layer{proto: wire.ProtoUDP, build: func(p []byte, _ []Layer) []byte {
		return prepend(&wire.UDPFields{SrcPort: src, DstPort: dst, Length: uint16(wire.UDPLen + len(p))}, p)
	}}
}

// TCP is a TCP header.
func TCP(f wire.TCPFields) Layer {
	return Layer{proto: wire.ProtoTCP, build: func(p []byte, _ []Layer) []byte { return prepend(&f, p) }}
}

// ICMP is an ICMP header; rest is the word after the checksum.
func ICMP(typ, code uint8, rest uint32) Layer { return icmp(wire.ProtoICMP, typ, code, rest) }

// ICMPv6 is an ICMPv6 header; rest is the word after the checksum.
func ICMPv6(typ, code uint8, rest uint32) Layer { return icmp(wire.ProtoICMPv6, typ, code, rest) }

func icmp(proto, typ, code uint8, rest uint32) Layer {
	return Layer{proto: proto, build: func(p []byte, _ []Layer) []byte {
		return prepend(&wire.ICMPFields{Type: typ, Code: code, Rest: rest}, p)
	}}
}

// ND is a neighbour or router discovery message.
func ND(f wire.NDFields) Layer {
	return Layer{proto: wire.ProtoICMPv6, build: func(p []byte, _ []Layer) []byte { return prepend(&f, p) }}
}

// BTH is a RoCEv2 base transport header. Extended headers follow as Header, and
// the invariant CRC as Zeros(wire.ICRCLen): it is not computed.
func BTH(opcode uint8, destQP, psn uint32) Layer {
	return Header(&wire.BTHFields{Opcode: opcode, PKey: 0xffff, DestQP: destQP, PSN: psn})
}

// GRE is a GRE header; its protocol follows from the next layer. The checksum
// is computed if flags ask for one.
func GRE(flags uint16, key, sequence uint32) Layer {
	return Layer{proto: wire.ProtoGRE, build: func(p []byte, inner []Layer) []byte {
		f := wire.GREFields{Flags: flags, Protocol: etherTypeOf(inner), Key: key, Sequence: sequence}
		if len(inner) > 0 {
			f.Flags |= inner[0].greFlags
		}
		b := prepend(&f, p)
		if f.Flags&wire.GREChecksum != 0 {
			binary.BigEndian.PutUint16(b[4:6], wire.Checksum(b))
		}
		return b
	}}
}

// ERSPAN2 is an ERSPAN type II header, which stands in GRE with a sequence
// number.
func ERSPAN2(f wire.ERSPAN2Fields) Layer {
	return Layer{etherType: wire.EtherTypeERSPAN2, greFlags: wire.GRESequence,
		build: func(p []byte, _ []Layer) []byte { return prepend(&f, p) }}
}

// ERSPAN3 is an ERSPAN type III header, which stands in GRE with a sequence
// number.
func ERSPAN3(f wire.ERSPAN3Fields) Layer {
	return Layer{etherType: wire.EtherTypeERSPAN3, greFlags: wire.GRESequence,
		build: func(p []byte, _ []Layer) []byte { return prepend(&f, p) }}
}

// PFC is a whole priority flow control frame.
func PFC(src wire.MAC, enable uint8, quanta uint16) []byte {
	f := wire.PFCFields{Src: src, Enable: enable}
	for c := range f.Quanta {
		if enable>>c&1 != 0 {
			f.Quanta[c] = quanta
		}
	}
	return prepend(&f, nil)
}

// Pause is a whole 802.3x pause frame.
func Pause(src wire.MAC, quanta uint16) []byte {
	return prepend(&wire.PauseFields{Src: src, Quanta: quanta}, nil)
}

// UDP4 is a whole frame with a UDP datagram over IPv4.
func UDP4(dst, src wire.MAC, srcIP, dstIP string, sport, dport uint16, payload []byte) []byte {
	return Frame(Eth(dst, src), IPv4(srcIP, dstIP), UDP(sport, dport), Payload(payload))
}

// UDP6 is a whole frame with a UDP datagram over IPv6.
func UDP6(dst, src wire.MAC, srcIP, dstIP string, sport, dport uint16, payload []byte) []byte {
	return Frame(Eth(dst, src), IPv6(srcIP, dstIP), UDP(sport, dport), Payload(payload))
}

// TCP4 is a whole frame with a TCP segment over IPv4.
func TCP4(dst, src wire.MAC, srcIP, dstIP string, sport, dport uint16, flags uint8, payload []byte) []byte {
	return Frame(Eth(dst, src), IPv4(srcIP, dstIP), TCP(wire.TCPFields{SrcPort: sport, DstPort: dport, Flags: flags, Window: 0xffff}), Payload(payload))
}
