package wire_test

import (
	"bytes"
	"testing"

	"gswitch/frame"
	"gswitch/wire"
)

var macAddr2 = wire.MAC{0x02, 0, 0, 0, 0, 2}

func TestARPRequest(t *testing.T) {
	var b [wire.ARPFrameLen]byte
	for _, c := range []struct {
		known, dst wire.MAC
	}{{wire.MAC{}, wire.BroadcastMAC}, {macAddr2, macAddr2}} {
		if got := wire.EncodeARPRequest(&b, macAddr1, [4]byte{10, 0, 0, 1}, [4]byte{10, 0, 0, 2}, c.known); got != c.dst || wire.Ethernet(b[:]).Dst() != c.dst {
			t.Errorf("known %v: sent to %v, in the frame %v", c.known, got, wire.Ethernet(b[:]).Dst())
		}
	}
	want := unhex(t, `020000000002 020000000001 0806 0001 0800 06 04 0001 020000000001 0a000001 000000000000 0a000002`)
	if !bytes.Equal(b[:], want) {
		t.Errorf("% x, want % x", b, want)
	}
	wire.ARP(b[wire.EthernetLen:]).Answer(macAddr2)
	want = unhex(t, `0001 0800 06 04 0002 020000000002 0a000002 020000000001 0a000001`)
	if !bytes.Equal(b[wire.EthernetLen:], want) {
		t.Errorf("answered by % x, want % x", b[wire.EthernetLen:], want)
	}
}

func TestNDFrame(t *testing.T) {
	self, peer := [16]byte{0: 0xfd, 15: 1}, [16]byte{0: 0xfd, 15: 2}
	group, groupMAC := wire.SolicitedNode(peer)
	for name, c := range map[string]struct {
		make   func(f *wire.NDFrame)
		dst    [16]byte
		mac    wire.MAC
		flags  uint32
		option uint8
	}{
		"solicitation":  {func(f *wire.NDFrame) { f.Solicit(peer, wire.MAC{}) }, group, groupMAC, 0, wire.NDSourceLinkLayer},
		"confirmation":  {func(f *wire.NDFrame) { f.Solicit(peer, macAddr2) }, peer, macAddr2, 0, wire.NDSourceLinkLayer},
		"advertisement": {func(f *wire.NDFrame) { f.Advertise(self, peer, macAddr2, wire.NDRouter) }, peer, macAddr2, wire.NDRouter | wire.NDSolicited | wire.NDOverride, wire.NDTargetLinkLayer},
		"answer to a probe for duplicates": {func(f *wire.NDFrame) { f.Advertise(self, [16]byte{}, macAddr2, 0) }, [16]byte{0: 0xff, 1: 2, 15: 1}, wire.MAC{0x33, 0x33, 0, 0, 0, 1},
			wire.NDOverride, wire.NDTargetLinkLayer},
	} {
		f := wire.NDFrame{DSCP: 48, Src: self, Self: macAddr1}
		c.make(&f)
		var b [wire.NDFrameLen]byte
		f.Encode(&b)
		ip, msg := wire.IPv6(b[wire.EthernetLen:]), b[wire.EthernetLen+wire.IPv6Len:]
		var nd wire.NDFields
		if _, why := nd.Decode(msg); why != frame.Keep || nd.Type != f.Type || nd.Rest != c.flags || nd.Target != f.Target {
			t.Errorf("%s: %v, %+v", name, why, nd)
		}
		if mac, ok := nd.Options.LinkLayer(c.option); !ok || mac != macAddr1 {
			t.Errorf("%s: the option has %v, %v", name, mac, ok)
		}
		if wire.Ethernet(b[:]).Dst() != c.mac || wire.Ethernet(b[:]).Src() != macAddr1 || ip.Dst() != c.dst || ip.Src() != self || ip.HopLimit() != 255 || ip.TrafficClass() != 48<<2 {
			t.Errorf("%s: % x", name, b)
		}
		if sum := wire.SegmentChecksum(wire.PseudoSum6(ip.Src(), ip.Dst(), wire.ProtoICMPv6, len(msg)), msg); sum != 0 {
			t.Errorf("%s: checksum %#x", name, sum)
		}
	}
}

func TestAnswerEcho6(t *testing.T) {
	a, group, self := [16]byte{0: 0xfd, 15: 1}, wire.AllNodes, [16]byte{0: 0xfd, 15: 2}
	b := make([]byte, wire.IPv6Len+16)
	msg := b[wire.IPv6Len:]
	(&wire.IPv6Fields{PayloadLen: 16, NextHeader: wire.ProtoICMPv6, HopLimit: 1, Src: a, Dst: group}).Encode(b)
	msg[0], msg[15] = wire.ICMPv6Echo, 7
	ip := wire.IPv6(b)
	wire.AnswerEcho6(ip, msg, self)
	if ip.Src() != self || ip.Dst() != a || ip.HopLimit() != 64 || msg[0] != wire.ICMPv6EchoReply || msg[15] != 7 {
		t.Errorf("% x", b)
	}
	if sum := wire.SegmentChecksum(wire.PseudoSum6(self, a, wire.ProtoICMPv6, len(msg)), msg); sum != 0 {
		t.Errorf("checksum %#x", sum)
	}
}
