package wire

// ARPFrameLen is the length of a frame with an ARP packet, in bytes.
const ARPFrameLen = EthernetLen + ARPLen

// EncodeARPRequest writes the frame by which a station asks for the MAC address of another one (RFC 826), and returns
// where it goes: to all, or, if the address is known and only confirmed, to that one (RFC 1122 2.3.2.1). known is zero
// if it is not.
func EncodeARPRequest(b *[ARPFrameLen]byte, self MAC, sender, target [4]byte, known MAC) MAC {
	dst := BroadcastMAC
	if !known.IsZero() {
		dst = known
	}
	eth := EthernetFields{Dst: dst, Src: self, EtherType: EtherTypeARP}
	eth.Encode(b[:])
	arp := ARPFields{Op: ARPRequest, SenderMAC: self, SenderIP: sender, TargetIP: target}
	arp.Encode(b[EthernetLen:])
	return dst
}

// Answer makes the reply of a request by the station whose IP address it asks for.
func (a ARP) Answer(self MAC) {
	peer, sip, tip := a.SenderMAC(), a.SenderIP(), a.TargetIP()
	a.SetOp(ARPReply)
	a.SetTargetMAC(peer)
	a.SetTargetIP(sip)
	a.SetSenderMAC(self)
	a.SetSenderIP(tip)
}

// NDFrameLen is the length of a frame with a neighbour solicitation or advertisement that has a link-layer address,
// in bytes.
const NDFrameLen = EthernetLen + IPv6Len + NDNeighborLen + NDLinkLayerLen

// NDFrame is a frame by which a station asks for the MAC address of another one, or names its own (RFC 4861 4.3, 4.4).
type NDFrame struct {
	Type     uint8  // ICMPv6NeighborSolicitation or ICMPv6NeighborAdvertisement
	Flags    uint32 // of an advertisement
	DSCP     uint8
	Target   [16]byte
	Src, Dst [16]byte
	Self     MAC // the sender's, which is the option as well
	DstMAC   MAC
}

// Solicit has a solicitation ask for target: by the group of its address or, if the MAC address is known and only
// confirmed, that one (RFC 4861 7.2.2). known is zero if it is not.
func (f *NDFrame) Solicit(target [16]byte, known MAC) {
	f.Type, f.Target = ICMPv6NeighborSolicitation, target
	f.Dst, f.DstMAC = SolicitedNode(target)
	if !known.IsZero() {
		f.Dst, f.DstMAC = target, known
	}
}

// Advertise has an advertisement answer a solicitation that came from src by the station peer. A probe for duplicates
// has no source: all nodes get the answer (RFC 4861 7.2.4).
func (f *NDFrame) Advertise(target, src [16]byte, peer MAC, flags uint32) {
	f.Type, f.Target = ICMPv6NeighborAdvertisement, target
	f.Flags, f.Dst, f.DstMAC = flags|NDSolicited|NDOverride, src, peer
	if src == [16]byte{} {
		f.Flags, f.Dst, f.DstMAC = flags|NDOverride, AllNodes, allNodesMAC
	}
}

func (f *NDFrame) Encode(b *[NDFrameLen]byte) {
	option := NDSourceLinkLayer
	if f.Type == ICMPv6NeighborAdvertisement {
		option = NDTargetLinkLayer
	}
	var opt [NDLinkLayerLen]byte
	PutNDLinkLayer(opt[:], option, f.Self)
	eth := EthernetFields{Dst: f.DstMAC, Src: f.Self, EtherType: EtherTypeIPv6}
	eth.Encode(b[:])
	msg := b[EthernetLen+IPv6Len:]
	nd := NDFields{Type: f.Type, Rest: f.Flags, Target: f.Target, Options: opt[:]}
	nd.Encode(msg)
	ip := IPv6Fields{TrafficClass: f.DSCP << 2, PayloadLen: uint16(len(msg)), NextHeader: ProtoICMPv6, HopLimit: 255, Src: f.Src, Dst: f.Dst}
	ip.Encode(b[EthernetLen:])
	UpdateICMPChecksum(PseudoSum6(f.Src, f.Dst, ProtoICMPv6, len(msg)), msg)
}

// AllNodes is the group of all nodes on a link (RFC 4291 2.7.1).
var AllNodes = [16]byte{0: 0xff, 1: 2, 15: 1}

// allNodesMAC is the Ethernet address that it maps to.
var allNodesMAC = MAC{0x33, 0x33, 0, 0, 0, 1}
