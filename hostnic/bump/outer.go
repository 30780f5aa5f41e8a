package bump

import (
	"gswitch/frame"
	"gswitch/wire"
)

// fromFabric takes in a frame of the outer port.
func (b *Bump) fromFabric(now frame.Time, r frame.Ref) {
	m, p := b.arena.Meta(r), b.arena.Bytes(r)
	b.count.FromFabric.add(m)
	switch {
	case m.Flags&frame.IsMACControl != 0:
		b.nic.ReceiveParsed(now, r)
		return
	case m.Reason != frame.Keep || m.Flags&(notCarried|frame.HasTunnel) != 0 || b.mac == 0 || wire.Ethernet(p).DstUint64() != b.mac:
	case m.Flags&frame.HasRoCE != 0:
		if bth := wire.BTHOffset(m, p); wire.BTH(p[bth:]).PKey() == partition {
			b.channelFrame(now, r, m, p, bth)
			return
		}
	case m.Proto == wire.ProtoUDP:
		if m.DstPort == Port && ours(p[int(m.L4)+wire.UDPLen:]) {
			b.datagram(now, m, p)
			b.drop(r, frame.LocalConsumed)
			return
		}
	case m.Proto == wire.ProtoTCP:
		if wire.TCP(p[m.L4:]).Flags()&wire.TCPSyn != 0 {
			k := key{proto: m.Proto, ports: uint32(m.DstPort)<<16 | uint32(m.SrcPort)}
			k.addressesOf(p[m.L3:], m.Flags&frame.HasIPv6 != 0, false)
			if b.mayCarry(&k) {
				b.clamp(m, p)
			}
		}
	case isUnreachable(m, p) && b.unreachable(now, m, p, false):
		b.drop(r, frame.LocalConsumed)
		return
	}
	b.count.PassedIn++
	b.toKernel(r)
}

// channelFrame gives a frame of a channel to its queue pair. Where there is
// none the other end is informed, so that it need not wait for its timers.
func (b *Bump) channelFrame(now frame.Time, r frame.Ref, m *frame.Meta, p []byte, bth int) {
	h := wire.BTH(p[bth:])
	id := b.channelOf(h.DestQP())
	if id < 0 {
		if h.Opcode() == wire.RCSendOnly && b.resets.take(now) {
			b.count.ResetsSent++
			b.send(now, endsOf(m, p), &message{kind: reset, peer: h.DestQP(), port: m.SrcPort})
		}
		b.drop(r, frame.QPStale)
		return
	}
	if h.Opcode() == wire.RCSendOnly {
		b.channels[id].last = now
	}
	b.nic.ReceiveParsed(now, r)
}

// deliver gives the kernel what came by channels, if it is what may come by
// them.
func (b *Bump) deliver(now frame.Time) {
	for n := b.nic.TakeFrames(b.arrived[:]); n > 0; n = b.nic.TakeFrames(b.arrived[:]) {
		for _, a := range b.arrived[:n] {
			id := b.channelOf(a.QPN)
			if id < 0 || !b.channels[id].key.brings(b.arena.Bytes(a.Ref)) {
				b.drop(a.Ref, frame.ChannelPacket)
				continue
			}
			b.count.Delivered++
			b.toKernel(a.Ref)
		}
	}
}

// brings reports whether a frame holds one whole packet from the other end of
// a channel to ours.
func (k *key) brings(p []byte) bool {
	ip := p[wire.EthernetLen:]
	var of key
	switch {
	case !k.v6 && len(ip) >= wire.IPv4Len && ip[0]>>4 == 4:
		h := wire.IPv4(ip)
		if h.HeaderLen() < wire.IPv4Len || int(h.TotalLen()) != len(ip) || h.HeaderLen() > len(ip) {
			return false
		}
	case k.v6 && len(ip) >= wire.IPv6Len && ip[0]>>4 == 6:
		if wire.IPv6Len+int(wire.IPv6(ip).PayloadLen()) != len(ip) {
			return false
		}
	default:
		return false
	}
	of.addressesOf(ip, k.v6, false)
	return of.l0 == k.l0 && of.l1 == k.l1 && of.r0 == k.r0 && of.r1 == k.r1
}

// isUnreachable reports whether a packet is an error of an unreachable port
// (RFC 792, RFC 4443 section 3.1), with enough of what was sent there.
func isUnreachable(m *frame.Meta, p []byte) bool {
	if m.Flags&(frame.HasTunnel|frame.HasICMP) != frame.HasICMP {
		return false
	}
	h := p[m.L4:]
	if m.Flags&frame.HasIPv6 != 0 {
		return len(h) >= wire.ICMPLen+wire.IPv6Len+wire.UDPLen && h[0] == 1 && h[1] == 4
	}
	return len(h) >= wire.ICMPLen+wire.IPv4Len+wire.UDPLen && h[0] == 3 && h[1] == 3
}

// unreachable looks at what an ICMP error quotes. It reports whether that was a
// datagram of a bump, which the kernel of a host without one answers so: ours,
// or with sent one that our kernel answers. What channels carried is checked by
// such an error where a bump was taken away. Anybody can send such errors: they are
// accepted that quote what only who got the datagram, or the frame, can know.
func (b *Bump) unreachable(now frame.Time, m *frame.Meta, p []byte, sent bool) bool {
	quoted := p[int(m.L4)+wire.ICMPLen:]
	v6 := m.Flags&frame.HasIPv6 != 0
	var k key
	udp := quoted
	switch {
	case v6 && quoted[0]>>4 == 6 && quoted[6] == wire.ProtoUDP:
		udp = quoted[wire.IPv6Len:]
	case !v6 && quoted[0] == 0x45 && quoted[9] == wire.ProtoUDP:
		udp = quoted[wire.IPv4Len:]
	default:
		return false
	}
	exchange := wire.UDP(udp).DstPort() == Port && (len(udp) == wire.UDPLen || ours(udp[wire.UDPLen:]))
	if sent {
		return exchange
	}
	k.addressesOf(quoted, v6, true)
	id := b.find(&k)
	exchange = exchange && wire.UDP(udp).SrcPort() == Port
	switch {
	case id < 0:
		return false
	case exchange && b.said(id, udp) || b.channelSent(id, udp):
		b.count.Refusals++
		b.markAbsent(now, id)
		return true
	case exchange:
		b.count.Stale++
	}
	return exchange
}

// said reports whether a datagram of the exchange, as it is quoted, is one that a peer
// was sent.
func (b *Bump) said(peer int, udp []byte) bool {
	var m message
	return len(udp) >= wire.UDPLen+messageLen && m.decode(udp[wire.UDPLen:][:messageLen]) == nil && m.from == b.incarnation(b.peers[peer].key.remote())
}

// channelSent reports whether a quoted datagram is a frame of a channel with a peer, by
// its port and queue pair.
func (b *Bump) channelSent(peer int, udp []byte) bool {
	n, port, why := wire.TelemetryLen(udp, wire.UDPLen, len(udp), wire.UDP(udp).DstPort())
	bth := wire.UDPLen + n
	if why != frame.Keep || port != wire.RoCEv2Port || len(udp) < bth+wire.BTHLen {
		return false
	}
	for i := range b.channels {
		if c := &b.channels[i]; c.state >= opened && c.peer == peer && c.remote == wire.BTH(udp[bth:]).DestQP() && b.nic.SourcePort(c.qpn) == wire.UDP(udp).SrcPort() {
			return true
		}
	}
	return false
}
