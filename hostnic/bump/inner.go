package bump

import (
	"gswitch/frame"
	"gswitch/wire"
)

// notCarried are frames that pass untouched whatever they are: no packet of
// one host for another, or not in one piece.
const notCarried = frame.IsMulticast | frame.IsBroadcast | frame.IsFragment | frame.HasVLAN | frame.Chained | frame.Truncated | frame.IsMACControl

// anotherStation is for how long the kernel must not have used its address
// before another one takes its place.
const anotherStation = 10 * frame.Second

// fromKernel takes in a frame of the inner port.
func (b *Bump) fromKernel(now frame.Time, r frame.Ref) {
	m, p := b.arena.Meta(r), b.arena.Bytes(r)
	b.count.FromKernel.add(m)
	m.Class = b.cfg.Default.Class
	if m.Reason != frame.Keep || m.Flags&notCarried != 0 || m.Flags&(frame.HasIPv4|frame.HasIPv6) == 0 {
		if len(p) >= wire.EthernetLen {
			b.station(now, wire.Ethernet(p).SrcUint64())
		}
		b.pass(now, r, m.Flags&(frame.IsARP|frame.IsMulticast) != 0)
		return
	}
	if !b.station(now, wire.Ethernet(p).SrcUint64()) {
		b.pass(now, r, false)
		return
	}
	size := b.packetLen(m, p)
	if m.Proto == wire.ProtoICMPv6 && m.Flags&frame.HasTunnel == 0 && isDiscovery(p[m.L4]) {
		b.pass(now, r, true)
		return
	}
	if isUnreachable(m, p) && b.unreachable(now, m, p, true) {
		b.drop(r, frame.LocalConsumed)
		return
	}
	complete(m, p, size)
	k := keyOf(m, p)
	if isTCP(m) && wire.TCP(p[m.L4:]).Flags()&wire.TCPSyn != 0 && b.mayCarry(&k) {
		b.clamp(m, p)
	}
	id := b.byKey.find(&k)
	if id < 0 {
		id = b.assign(now, &k, wire.Ethernet(p).Dst())
	}
	if id < 0 || b.channels[id].state != opened {
		b.pass(now, r, false)
		return
	}
	b.carry(now, r, m, p, size, id)
}

// station learns the host's address and reports whether a frame is from it.
func (b *Bump) station(now frame.Time, mac uint64) bool {
	if mac != b.mac {
		if mac == 0 || mac>>40&1 != 0 || !b.cfg.MAC.IsZero() || b.mac != 0 && now-b.macSeen < anotherStation {
			return false
		}
		b.dropAll(now) // they have the old address
		b.mac = mac
	}
	b.macSeen = now
	return true
}

// packetLen returns the bytes of an IP packet, without what pads its frame.
func (b *Bump) packetLen(m *frame.Meta, p []byte) int {
	if m.Flags&frame.HasIPv6 != 0 {
		return wire.IPv6Len + int(wire.IPv6(p[m.L3:]).PayloadLen())
	}
	return int(wire.IPv4(p[m.L3:]).TotalLen())
}

// pass sends a frame as it is.
func (b *Bump) pass(now frame.Time, r frame.Ref, urgent bool) {
	if b.nic.QueueFrame(now, r, urgent, b.upMost) {
		b.count.PassedOut++
	}
}

// assign finds the channel of a packet whose tuple has none, or opens it. It
// returns -1 if there is none.
func (b *Bump) assign(now frame.Time, k *key, mac wire.MAC) int {
	rule := b.rule(k)
	if rule.Flows == Pass {
		return -1
	}
	p := b.peerOf(now, k, mac)
	if p < 0 || b.peers[p].state != known {
		return -1
	}
	refused := now < b.peers[p].refused
	if rule.Flows == PerTuple && b.tuples < b.cfg.Channels && !refused {
		return b.openChannel(now, *k, p, mac, rule)
	}
	if rule.Flows == PerTuple {
		b.count.Overflows++
	}
	h := k.hostOf()
	if id := b.byKey.find(&h); id >= 0 || refused || len(b.channels)-len(b.free)-b.tuples >= b.cfg.Channels {
		return id
	}
	return b.openChannel(now, h, p, mac, rule)
}

// carry puts a packet into its channel.
func (b *Bump) carry(now frame.Time, r frame.Ref, m *frame.Meta, p []byte, size, id int) {
	c := &b.channels[id]
	c.last = now
	if size > c.packet {
		b.oversize(now, r, m, p, size, c)
		return
	}
	backlog, _ := b.nic.Backlog(c.qpn)
	if backlog+uint64(size) > uint64(b.cfg.Queue) {
		c.drops++
		b.drop(r, frame.QueueTail)
		return
	}
	if backlog > uint64(b.cfg.Mark) && m.Flags&frame.IsECT != 0 {
		wire.MarkCE(b.arena, r)
		c.marks++
		b.count.Marked++
	}
	if mac := wire.Ethernet(p).DstUint64(); mac != c.mac {
		c.mac = mac
		b.nic.SetRemoteMAC(c.qpn, wire.MACFromUint64(mac))
	}
	b.arena.Pull(r, int(m.L3))
	m.Len, m.Wire = uint16(size), uint32(size)
	if why := b.nic.SendFrame(now, c.qpn, r); why != frame.Keep {
		c.drops++
		b.drop(r, why)
		return
	}
	b.count.Carried++
}
