package vswitch

import (
	"encoding/binary"

	"gswitch/frame"
	"gswitch/wire"
)

// local is the slow path: what the switch itself must answer or find out. It runs on
// worker 0, which is the only writer of the neighbour table; other workers pass their
// frames to it. Nothing here is done per frame of a forwarded flow.
type local struct {
	n     *Node
	table map[nextHop]*neighbor
	// The same in order of creation: whatever handles all of them uses this order, so
	// that a run is repeatable.
	first, last *neighbor
	// Each list holds timers of one length, and is therefore sorted by expiry: the cost
	// of a timer does not grow with the table.
	retries, confirms timerList
	due               frame.Time                  // next timer
	datagrams         []datagram                  // incomplete echo requests, in order of arrival
	gathered          []byte                      // bytes of a frame in several chunks
	pending           int                         // frames that wait for neighbours
	unresolved        int                         // neighbours without a MAC
	shares            [MaxPorts + 1]neighborShare // by port; the last one is for static ones, and those without a port
}

func newLocal(n *Node) *local {
	return &local{n: n, table: make(map[nextHop]*neighbor), due: frame.Never}
}

// adopt takes a new configuration: neighbours of interfaces that changed are
// removed, static ones are bound.
func (l *local) adopt(now frame.Time) {
	cfg := l.n.prog.Config
	for nb, next := l.first, (*neighbor)(nil); nb != nil; nb = next {
		next = nb.after
		if nb.state == neighborStatic || int(nb.iface) >= len(l.n.prog.ifaces) || !l.n.prog.onLink(nb.iface, nb.key) {
			l.remove(nb, frame.NeighborFailed)
		}
	}
	for _, s := range cfg.Neighbors {
		k := keyOf(s.Addr)
		for i := 1; i < len(l.n.prog.ifaces); i++ {
			if l.n.prog.onLink(uint16(i), k) {
				nb := l.entry(nextHop{uint16(i), k}, frame.NoPort)
				l.charge(nb, frame.NoPort)
				l.become(nb, neighborStatic)
				l.disarm(nb)
				nb.mac = s.MAC.Uint64()
				l.n.neighbors.set(nb.iface, k, nb.mac)
				l.release(nb)
			}
		}
	}
}

// toLocal hands a frame to the slow path.
func (n *Node) toLocal(r frame.Ref) {
	m := n.arena.Meta(r)
	m.Flags |= frame.ToLocal
	if n.stages.forwards != 0 {
		n.vec.one[0] = r
		n.showForwarded(n.vec.one[:])
	}
	if n.local == nil {
		n.handOver(0, r)
		return
	}
	n.count.ToLocal++
	n.local.handle(n.now, r, m)
}

// copyToLocal hands a copy to the slow path and leaves r where it is.
func (n *Node) copyToLocal(r frame.Ref) {
	n.count.Made++
	if c := n.pool.Copy(r); c != frame.Nil {
		n.toLocal(c)
	} else {
		n.countDrop(n.arena.Meta(r).InPort, frame.ArenaExhausted)
	}
}

// ifaceOf returns the routed interface that a frame arrived at, or noIface.
func (p *Program) ifaceOf(m *frame.Meta) uint16 { return p.ifaceAt(m.InPort, m.VID) }

// ifaceAt is that of frames which come by a port in a VLAN.
func (p *Program) ifaceAt(port, vid uint16) uint16 {
	if int(port) >= len(p.ports) {
		return noIface
	}
	if f := p.ports[port].iface; f != noIface {
		return f
	}
	return p.vlans[vid&0xfff].iface
}

// localGroup reports whether a frame to a group address may concern the switch
// itself: ARP and ICMPv6 on a routed interface.
func (n *Node) localGroup(m *frame.Meta, r frame.Ref) bool {
	if !n.prog.anyRouted || m.Reason != frame.Keep {
		return false
	}
	f := n.prog.ifaceOf(m)
	switch {
	case f == noIface:
		return false
	case m.Flags&frame.IsARP != 0:
		return n.prog.arpConcerns(f, wire.ARP(n.arena.Bytes(r)[m.L3:]))
	}
	return m.Flags&frame.HasIPv6 != 0 && m.Proto == wire.ProtoICMPv6
}

// arpConcerns excludes most broadcasts, requests of other stations for others. Requests
// for our addresses, replies, and announcements (RFC 5227 3) pass.
func (p *Program) arpConcerns(f uint16, a wire.ARP) bool {
	sip, tip := a.SenderIP(), a.TargetIP()
	return a.Op() != wire.ARPRequest || sip == tip || p.owns(f, key4(binary.BigEndian.Uint32(tip[:])))
}

// handle takes one frame of the slow path.
func (l *local) handle(now frame.Time, r frame.Ref, m *frame.Meta) {
	n := l.n
	f, twin := n.prog.ifaceOf(m), n.prog.twinOf(m.InPort)
	switch {
	case m.Flags&frame.Routed != 0:
		l.forward(now, r, m)
	case f == noIface:
		n.drop(r, frame.LocalUnhandled)
	case m.Flags&frame.IsARP != 0:
		l.arp(now, r, m, f)
	case m.Flags&frame.Truncated != 0:
		n.drop(r, frame.LocalUnhandled)
	case twin != frame.NoPort && !l.answers(r, m):
		l.toTwin(now, r, m, twin)
	case m.Flags&frame.IsFragment != 0 || m.Next != frame.Nil && m.Flags&frame.HasICMP != 0:
		l.reassemble(now, r, m)
	case m.Proto == wire.ProtoICMPv6 && m.Flags&frame.HasIPv6 != 0:
		l.icmp6(now, r, m, f)
	case m.Proto == wire.ProtoICMP && m.Flags&frame.HasIPv4 != 0:
		l.icmp4(r, m)
	default:
		n.icmpUnreachable(now, r, m, unreachPort)
		n.drop(r, frame.LocalUnhandled)
	}
}

// arp answers requests for our addresses and learns from what it sees
// (RFC 826, packet reception).
func (l *local) arp(now frame.Time, r frame.Ref, m *frame.Meta, f uint16) {
	n := l.n
	a := wire.ARP(n.arena.Bytes(r)[m.L3:])
	sip, tip := a.SenderIP(), a.TargetIP()
	sender := key4(binary.BigEndian.Uint32(sip[:]))
	target := key4(binary.BigEndian.Uint32(tip[:]))
	ours := n.prog.owns(f, target)
	peer := a.SenderMAC()
	if peer.IsZero() || peer.IsMulticast() {
		n.drop(r, frame.LocalUnhandled)
		return
	}
	if sender != key4(0) { // else a probe (RFC 5227 2.1.1)
		l.learn(now, nextHop{f, sender}, peer.Uint64(), ours, m.InPort)
	}
	switch {
	case a.Op() == wire.ARPReply:
		l.learned(now, r, m)
		return
	case a.Op() != wire.ARPRequest || !ours:
		n.drop(r, frame.LocalConsumed)
		return
	}
	a.Answer(wire.MACFromUint64(n.selfMAC))
	l.reply(r, m, peer.Uint64())
}

// reply sends a frame back to where it came from.
func (l *local) reply(r frame.Ref, m *frame.Meta, dst uint64) {
	n := l.n
	putMACs(n.arena.Bytes(r), dst, n.selfMAC)
	m.OutPort = m.InPort
	m.Class = n.prog.class.DSCP[networkControl]
	m.Flags &^= frame.ToLocal
	n.emit(r)
}

// networkControl is the code point CS6 of what the switch itself sends
// (RFC 4594 3.1).
const networkControl = 48

// icmp4 answers echo requests (RFC 1122 3.2.2.6).
func (l *local) icmp4(r frame.Ref, m *frame.Meta) {
	n := l.n
	b := n.arena.Bytes(r)
	ip := wire.IPv4(b[m.L3:])
	if end := int(m.L3) + int(ip.TotalLen()); !wire.AnswerEcho(ip, b[m.L4:end]) {
		n.drop(r, frame.LocalUnhandled)
		return
	}
	l.reply(r, m, wire.Ethernet(b).SrcUint64())
}

// icmp6 answers echo requests and neighbour solicitations.
func (l *local) icmp6(now frame.Time, r frame.Ref, m *frame.Meta, f uint16) {
	n := l.n
	b := n.arena.Bytes(r)
	ip := wire.IPv6(b[m.L3:])
	end := int(m.L3) + wire.IPv6Len + int(ip.PayloadLen())
	if end > len(b) {
		n.drop(r, frame.LocalUnhandled)
		return
	}
	msg := b[m.L4:end]
	if wire.SegmentChecksum(wire.PseudoSum6(ip.Src(), ip.Dst(), wire.ProtoICMPv6, len(msg)), msg) != 0 {
		n.drop(r, frame.LocalUnhandled)
		return
	}
	dst := addressesOf(b, m).dst
	switch msg[0] {
	case wire.ICMPv6Echo:
		group := dst.isMulticast(m)
		if group && !n.prog.owns(f, dst) {
			n.drop(r, frame.LocalConsumed)
			return
		}
		from := ip.Dst()
		if group { // the answer comes from a station (RFC 4443 4.2)
			from = n.prog.ifaces[f].sourceFor(addressesOf(b, m).src).as16()
		}
		wire.AnswerEcho6(ip, msg, from)
		l.reply(r, m, wire.Ethernet(b).SrcUint64())
	case wire.ICMPv6NeighborSolicitation, wire.ICMPv6NeighborAdvertisement:
		l.discovery(now, r, m, f, ip, msg)
	default:
		n.drop(r, frame.LocalUnhandled)
	}
}

// discovery handles neighbour solicitations and advertisements (RFC 4861
// 7.2.3 to 7.2.5).
func (l *local) discovery(now frame.Time, r frame.Ref, m *frame.Meta, f uint16, ip wire.IPv6, msg []byte) {
	n := l.n
	var nd wire.NDFields
	if _, bad := nd.Decode(msg); bad != frame.Keep || ip.HopLimit() != 255 {
		n.drop(r, frame.LocalUnhandled)
		return
	}
	target := keyOf16(nd.Target)
	source := keyOf16(ip.Src())
	if target.isMulticast(m) || source.isMulticast(m) {
		n.drop(r, frame.LocalUnhandled)
		return
	}
	if nd.Type == wire.ICMPv6NeighborAdvertisement {
		if mac, ok := nd.Options.LinkLayer(wire.NDTargetLinkLayer); ok && !mac.IsMulticast() {
			l.learn(now, nextHop{f, target}, mac.Uint64(), false, m.InPort)
		}
		l.learned(now, r, m)
		return
	}
	ours := n.prog.owns(f, target)
	if mac, ok := nd.Options.LinkLayer(wire.NDSourceLinkLayer); ok && !mac.IsMulticast() && source != (addrKey{}) {
		l.learn(now, nextHop{f, source}, mac.Uint64(), ours, m.InPort)
	}
	if ours {
		var a wire.NDFrame
		a.Src = nd.Target
		a.Advertise(nd.Target, ip.Src(), wire.Ethernet(n.arena.Bytes(r)).Src(), wire.NDRouter)
		l.sendND(m.InPort, m.VID, &a)
	}
	n.drop(r, frame.LocalConsumed)
}

func keyOf16(a [16]byte) addrKey {
	return addrKey{binary.BigEndian.Uint64(a[:8]), binary.BigEndian.Uint64(a[8:])}
}

func (k addrKey) as16() (a [16]byte) {
	binary.BigEndian.PutUint64(a[:8], k.hi)
	binary.BigEndian.PutUint64(a[8:], k.lo)
	return a
}

func (k addrKey) as4() (a [4]byte) {
	binary.BigEndian.PutUint32(a[:], uint32(k.lo))
	return a
}
