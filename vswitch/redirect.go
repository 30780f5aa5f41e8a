package vswitch

import (
	"gswitch/frame"
	"gswitch/wire"
)

// redirectAgain is how long a sender is not redirected again (Linux waits at least as
// long between two redirects).
const redirectAgain = frame.Second

// redirects records which senders were redirected recently. Senders whose addresses map
// to the same entry share it, so there are at most as many redirects per second as
// entries.
type redirects [64]frame.Time

// redirect tells the sender of a frame that leaves through the network it came from about
// a better first hop (RFC 1812 5.2.7.2, RFC 4861 8.2). The frame is forwarded
// nevertheless.
func (n *Node) redirect(now frame.Time, r frame.Ref, m *frame.Meta, hop nextHop, a *addresses) {
	prog := n.prog
	if prog.Config.NoRedirects || m.Flags&unanswerable != 0 || !prog.onLink(hop.iface, a.src) {
		return
	}
	again := &n.own.redirected[n.neighbors.home(hop.iface, a.src)%uint32(len(n.own.redirected))]
	if now < *again {
		return
	}
	*again = now + redirectAgain
	if m.Flags&frame.HasIPv6 != 0 {
		n.redirect6(now, r, m, hop, a)
	} else if hop.key.is4() {
		n.icmpError(now, r, wire.ICMPRedirect, wire.ICMPCodeRedirectHost, uint32(hop.key.lo))
	}
}

// quoteRedirect is how many bytes of a packet a redirect quotes: a multiple of 8 that
// keeps the message within 1280 bytes, options included.
const quoteRedirect = (1280 - wire.IPv6Len - wire.NDRedirectLen - wire.NDLinkLayerLen - 8) &^ 7

// redirect6 sends a redirect of neighbour discovery. The better first hop is
// the destination itself or a router by its link-local address; other
// addresses of routers may not be named (RFC 4861 4.5).
func (n *Node) redirect6(now frame.Time, r frame.Ref, m *frame.Meta, hop nextHop, a *addresses) {
	if hop.key != a.dst && !hop.key.addr().IsLinkLocalUnicast() || !n.own.icmp.Take(now, 1) {
		return
	}
	f := &n.prog.ifaces[hop.iface]
	packet := n.arena.Bytes(r)[m.L3:]
	quoted := min(len(packet)&^7, quoteRedirect, (n.arena.Room()-wire.EthernetLen-wire.IPv6Len-wire.NDRedirectLen-wire.NDLinkLayerLen-8)&^7)
	var opt [wire.NDLinkLayerLen + 8 + quoteRedirect]byte
	at := 0
	if mac := n.neighbors.lookup(hop.iface, hop.key); mac != 0 {
		at = wire.PutNDLinkLayer(opt[:], wire.NDTargetLinkLayer, wire.MACFromUint64(mac))
	}
	opt[at], opt[at+1] = wire.NDRedirectedHeader, uint8(1+quoted/8)
	at += 8 + copy(opt[at+8:], packet[:quoted])

	nd := wire.NDFields{Type: wire.ICMPv6Redirect, Target: hop.key.as16(), RedirectedDest: a.dst.as16(), Options: opt[:at]}
	var b [wire.EthernetLen + wire.IPv6Len + wire.NDRedirectLen + len(opt)]byte
	msg := b[wire.EthernetLen+wire.IPv6Len:]
	msg = msg[:nd.Encode(msg)]
	peer := wire.Ethernet(n.arena.Bytes(r)).Src()
	src, dst := f.local.As16(), a.src.as16()
	eth := wire.EthernetFields{Dst: peer, Src: wire.MACFromUint64(n.selfMAC), EtherType: wire.EtherTypeIPv6}
	eth.Encode(b[:])
	ip := wire.IPv6Fields{TrafficClass: networkControl << 2, PayloadLen: uint16(len(msg)), NextHeader: wire.ProtoICMPv6, HopLimit: 255, Src: src, Dst: dst}
	ip.Encode(b[wire.EthernetLen:])
	wire.UpdateICMPChecksum(wire.PseudoSum6(src, dst, wire.ProtoICMPv6, len(msg)), msg)
	n.count.ICMPSent++
	n.send(b[:len(b)-len(opt)+at], m.InPort, m.VID, peer)
}
