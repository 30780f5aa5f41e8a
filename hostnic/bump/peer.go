package bump

import (
	"net/netip"

	"gswitch/frame"
	"gswitch/wire"
)

// peer is a host that ours exchanges frames with.
type peer struct {
	key         key // the remote address alone
	state       peerState
	ends        ends // where it is asked
	incarnation uint64
	number      uint64 // asked of it and not answered yet, 0 none
	tries       int
	due         frame.Time // the next Hello, or when one may be sent again
	refused     frame.Time // until when it opens no channels
	last        frame.Time
	channels    int
	used        bool
}

type peerState uint8

const (
	asked  peerState = iota // and has not answered yet
	known                   // has a bump
	absent                  // has none: not asked before due
)

func (s peerState) String() string { return [...]string{"asked", "known", "absent"}[s%3] }

const (
	MaxPeers   = 1024 // hosts that a bump has channels or requests with
	askAgain   = 250 * frame.Millisecond
	askTries   = 4
	asksItself = askTries + 1 // of a peer that asked: it is not asked, but answered
	askLater   = 60 * frame.Second
	askAtMost  = 5 * frame.Millisecond // between Hellos that a contradiction causes
	refusedFor = frame.Second
)

// ends are the addresses that a datagram goes between.
type ends struct {
	local, remote netip.Addr
	mac           wire.MAC // of the next hop
}

// endsOf are those of the answer to a packet that was received.
func endsOf(m *frame.Meta, p []byte) ends {
	mac := wire.Ethernet(p).Src()
	if m.Flags&frame.HasIPv6 != 0 {
		ip := wire.IPv6(p[m.L3:])
		return ends{ip.DstAddr(), ip.SrcAddr(), mac}
	}
	ip := wire.IPv4(p[m.L3:])
	return ends{ip.DstAddr(), ip.SrcAddr(), mac}
}

// incarnation is the number by which a peer knows this start of ours from those
// before. Each peer gets another one, so that none can act in the name of another.
func (b *Bump) incarnation(to netip.Addr) uint64 {
	ip := to.As16()
	return b.starts.Of(be.Uint64(ip[:]), be.Uint64(ip[8:])) | 1
}

// find returns the peer at the remote address of k, -1 if there is none.
func (b *Bump) find(k *key) int {
	r := k.remoteOf()
	return b.byAddr.find(&r)
}

// mayCarry reports whether packets of a tuple may travel in a channel, now or
// later.
func (b *Bump) mayCarry(k *key) bool {
	if b.rule(k).Flows == Pass {
		return false
	}
	i := b.find(k)
	return i < 0 || b.peers[i].state != absent
}

// peerOf returns the peer of a packet that the kernel sends. It asks one that
// is new, or that was absent for long. -1: there is no room.
func (b *Bump) peerOf(now frame.Time, k *key, mac wire.MAC) int {
	i := b.find(k)
	if i < 0 {
		if i = b.newPeer(now, k.remoteOf()); i < 0 {
			return -1
		}
		b.peers[i].ends = ends{k.local(), k.remote(), mac}
		b.sendHello(now, i)
		return i
	}
	p := &b.peers[i]
	p.last = now
	if p.state == absent && now >= p.due {
		p.state, p.tries, p.ends = asked, 0, ends{k.local(), k.remote(), mac}
		b.sendHello(now, i)
	}
	return i
}

// newPeer makes an entry, at the cost of the one that was idle for longest.
func (b *Bump) newPeer(now frame.Time, k key) int {
	i := len(b.peers)
	if i < MaxPeers {
		b.peers = append(b.peers, peer{})
	} else {
		i = -1
		for j := range b.peers {
			if b.peers[j].channels == 0 && (i < 0 || b.peers[j].last < b.peers[i].last) {
				i = j
			}
		}
		if i < 0 {
			return -1
		}
		b.byAddr.remove(&b.peers[i].key)
	}
	b.peers[i] = peer{key: k, used: true, last: now, due: frame.Never}
	b.byAddr.put(k, i)
	return i
}

// sendHello sends a Hello to a peer.
func (b *Bump) sendHello(now frame.Time, i int) {
	p := &b.peers[i]
	if p.number == 0 {
		p.number = b.draws.Next() | 1
	}
	p.tries++
	p.due = now + askAgain
	b.wakeBy(p.due)
	b.count.Asked++
	b.send(now, p.ends, &message{kind: hello, to: p.incarnation, nonce: p.number})
}

// contradicts asks a peer whose datagrams do not fit what is known of it.
func (b *Bump) contradicts(now frame.Time, i int, at ends) {
	p := &b.peers[i]
	b.count.Stale++
	if now < p.due-askAgain+askAtMost && p.due != frame.Never {
		return
	}
	if p.state != known { // else it is asked where it proved that it is
		p.ends = at
	}
	p.tries = 0
	b.sendHello(now, i)
}

// markAbsent notes that a host has no bump, or no longer.
func (b *Bump) markAbsent(now frame.Time, i int) {
	b.dropPeer(now, i)
	p := &b.peers[i]
	p.state, p.number, p.due = absent, 0, now+askLater
}

// adopt notes the incarnation of a peer that has just proved it.
func (b *Bump) adopt(now frame.Time, i int, incarnation uint64, at ends) {
	p := &b.peers[i]
	if p.incarnation != incarnation {
		b.dropPeer(now, i)
	}
	p.state, p.incarnation, p.number, p.tries, p.due, p.ends = known, incarnation, 0, 0, frame.Never, at
	p.refused, p.last = 0, now
}

// advancePeers repeats requests, and ends those without an answer.
func (b *Bump) advancePeers(now frame.Time) {
	for i := range b.peers {
		p := &b.peers[i]
		if p.number == 0 {
			continue
		}
		if p.due <= now {
			switch {
			case p.tries < askTries:
				b.sendHello(now, i)
			case p.state == known: // it was asked because of a contradiction
				p.number, p.due = 0, frame.Never
				continue
			case p.tries == asksItself: // and then it sent no more
				p.state, p.number, p.due = absent, 0, now
				continue
			default:
				b.markAbsent(now, i)
				continue
			}
		}
		b.wakeBy(p.due)
	}
}

// datagram takes in a datagram of another bump.
func (b *Bump) datagram(now frame.Time, fm *frame.Meta, p []byte) {
	udp := p[fm.L4:]
	size := int(wire.UDP(udp).Length())
	at := endsOf(fm, p)
	var m message
	if size > len(udp) || !checksumOK(fm, p, size) || at.remote == at.local || at.remote.IsMulticast() || at.remote.IsUnspecified() ||
		fm.SrcPort != Port || m.decode(udp[wire.UDPLen:size]) != nil {
		b.count.BadDatagrams++
		return
	}
	var k key
	k.addressesOf(p[fm.L3:], fm.Flags&frame.HasIPv6 != 0, false)
	i := b.find(&k)
	if i < 0 {
		if m.kind != hello && m.kind != open && m.kind != reset {
			b.count.Stale++
			return
		}
		if i = b.newPeer(now, k.remoteOf()); i < 0 {
			b.count.Stale++
			return
		}
		b.peers[i].ends = at
	}
	b.takeMessage(now, i, &k, at, &m)
}

// takeMessage acts on a datagram of a peer.
func (b *Bump) takeMessage(now frame.Time, i int, k *key, at ends, m *message) {
	p := &b.peers[i]
	switch m.kind {
	case hello:
		if p.number == 0 {
			p.number, p.tries, p.due = b.draws.Next()|1, asksItself, now+askAgain
			b.wakeBy(p.due)
		}
		b.send(now, at, &message{kind: welcome, to: m.from, nonce: p.number, echo: m.nonce})
		return
	case welcome:
		if p.number == 0 || m.echo != p.number {
			b.count.Stale++
			return
		}
		b.adopt(now, i, m.from, at)
		b.send(now, at, &message{kind: confirm, to: m.from, echo: m.nonce})
		return
	case confirm:
		if p.number == 0 || m.echo != p.number || m.to != b.incarnation(at.remote) {
			b.count.Stale++
			return
		}
		b.adopt(now, i, m.from, at)
		return
	}
	if p.state != known || m.from != p.incarnation || m.to != b.incarnation(at.remote) && m.kind != reset {
		b.contradicts(now, i, at)
		return
	}
	p.last = now
	switch m.kind {
	case open:
		b.asksToOpen(now, i, k, at, m)
	case accept:
		b.accepted(now, i, m)
	case refuse:
		b.refused(now, i, m)
	case closing:
		b.asksToClose(now, i, at, m)
	case closed, busy:
		b.closeAnswered(now, i, m)
	case reset:
		b.wasReset(now, i, m)
	}
}

// checksumOK reports whether the checksum of a UDP datagram is right.
func checksumOK(m *frame.Meta, p []byte, size int) bool {
	udp := p[m.L4:][:size]
	if m.Flags&frame.HasIPv6 != 0 {
		ip := wire.IPv6(p[m.L3:])
		return wire.SegmentChecksum(wire.PseudoSum6(ip.Src(), ip.Dst(), wire.ProtoUDP, size), udp) == 0
	}
	ip := wire.IPv4(p[m.L3:])
	return wire.UDP(udp).Checksum() != 0 && wire.SegmentChecksum(wire.PseudoSum4(ip.Src(), ip.Dst(), wire.ProtoUDP, size), udp) == 0
}

// send sends a datagram. One for which there is no chunk is lost like one on the
// way: a peer that waits for an answer asks again.
func (b *Bump) send(now frame.Time, at ends, m *message) {
	r := b.pool.Alloc()
	if r == frame.Nil {
		b.count.Drops[frame.ArenaExhausted]++
		return
	}
	m.from = b.incarnation(at.remote)
	m.encode(&b.out)
	fm := b.arena.Reset(r)
	const size = wire.UDPLen + messageLen
	head := wire.EthernetLen + wire.IPv4Len
	if at.local.Is6() {
		head = wire.EthernetLen + wire.IPv6Len
	}
	fm.Class = b.cfg.Default.Class
	fm.Len = uint16(head + size)
	fm.Wire = uint32(fm.Len)
	f := b.arena.Bytes(r)
	eth := wire.EthernetFields{Dst: at.mac, Src: wire.MACFromUint64(b.mac), EtherType: wire.EtherTypeIPv4}
	tos := b.cfg.NIC.DSCP[fm.Class&7] << 2
	udp := wire.UDPFields{SrcPort: Port, DstPort: Port, Length: size}
	udp.Encode(f[head:])
	copy(f[head+wire.UDPLen:], b.out[:])
	var sum uint64
	if at.local.Is6() {
		eth.EtherType = wire.EtherTypeIPv6
		ip := wire.IPv6Fields{TrafficClass: tos, PayloadLen: size, NextHeader: wire.ProtoUDP, HopLimit: 64, Src: at.local.As16(), Dst: at.remote.As16()}
		ip.Encode(f[wire.EthernetLen:])
		sum = wire.PseudoSum6(ip.Src, ip.Dst, wire.ProtoUDP, size)
	} else {
		b.ipID++
		ip := wire.IPv4Fields{TOS: tos, TotalLen: wire.IPv4Len + size, ID: b.ipID, TTL: 64, Proto: wire.ProtoUDP, Src: at.local.As4(), Dst: at.remote.As4()}
		ip.Encode(f[wire.EthernetLen:])
		wire.IPv4(f[wire.EthernetLen:]).UpdateChecksum()
		sum = wire.PseudoSum4(ip.Src, ip.Dst, wire.ProtoUDP, size)
	}
	eth.Encode(f)
	wire.UpdateUDPChecksum(sum, f[head:])
	b.nic.QueueFrame(now, r, true, 0)
}
