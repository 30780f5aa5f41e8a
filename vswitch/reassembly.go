package vswitch

import (
	"encoding/binary"
	"slices"

	"gswitch/frame"
	"gswitch/wire"
)

// Echo requests to the switch may arrive in fragments, or in frames that span several
// chunks. The state for them is bounded: a number of datagrams at a time, of which a new
// one replaces the oldest, each no longer than IP allows. A datagram with overlapping
// fragments is dropped (RFC 5722).
const (
	MaxReassemblies = 16
	reassemblyTime  = 60 * frame.Second // RFC 8200 4.5; RFC 1122 3.3.2: 60 s to 120 s
	maxDatagram     = 1<<16 - 1
	maxFragments    = 128 // of one datagram
)

// datagramKey distinguishes datagrams (RFC 791 2.3, RFC 8200 4.5).
type datagramKey struct {
	src, dst addrKey
	id       uint32
	v6       bool
}

// datagram is one that is put together.
type datagram struct {
	key   datagramKey
	since frame.Time
	data  []byte // what follows the IP header
	parts []part // that are there, by their place
	got   int    // bytes
	total int    // bytes; -1 before the last fragment came
	bad   bool   // fragments contradicted each other
}

// part is a range of bytes.
type part struct{ from, to int }

// add puts a fragment in. It reports whether the datagram is whole.
func (d *datagram) add(at int, b []byte, more bool) bool {
	p := part{at, at + len(b)}
	i, _ := slices.BinarySearchFunc(d.parts, p, func(x, y part) int { return x.from - y.from })
	switch {
	case len(b) == 0 || p.to > maxDatagram || more && len(b)%8 != 0 || len(d.parts) == maxFragments,
		i > 0 && d.parts[i-1].to > p.from,
		i < len(d.parts) && (d.parts[i].from < p.to || !more),
		d.total >= 0 && (p.to > d.total || !more):
		d.bad = true
	}
	if d.bad {
		return false
	}
	if !more {
		d.total = p.to
	}
	d.parts = slices.Insert(d.parts, i, p)
	d.got += len(b)
	if grow := p.to - len(d.data); grow > 0 {
		d.data = append(d.data, make([]byte, grow)...)
	}
	copy(d.data[p.from:], b)
	return d.got == d.total
}

// reassemble takes a fragment, or a frame of several chunks, that is addressed
// to the switch. It answers an echo request that is whole.
func (l *local) reassemble(now frame.Time, r frame.Ref, m *frame.Meta) {
	n := l.n
	key, at, more, payload, ok := fragmentOf(l.whole(r, m), m)
	if !ok || key.dst.isMulticast(m) {
		n.drop(r, frame.LocalUnhandled)
		return
	}
	i := slices.IndexFunc(l.datagrams, func(d datagram) bool { return d.key == key })
	if i >= 0 && now-l.datagrams[i].since > reassemblyTime {
		l.datagrams = slices.Delete(l.datagrams, i, i+1)
		i = -1
	}
	if i < 0 {
		if len(l.datagrams) == MaxReassemblies {
			l.datagrams = slices.Delete(l.datagrams, 0, 1)
		}
		l.datagrams = append(l.datagrams, datagram{key: key, since: now, total: -1})
		i = len(l.datagrams) - 1
	}
	d := &l.datagrams[i]
	whole := d.add(at, payload, more)
	switch {
	case d.bad:
		n.drop(r, frame.LocalUnhandled)
	case whole:
		l.echo(r, m, d)
		l.datagrams = slices.Delete(l.datagrams, i, i+1)
	default:
		n.drop(r, frame.LocalConsumed)
	}
}

// whole returns all bytes of a frame, from its network header on.
func (l *local) whole(r frame.Ref, m *frame.Meta) []byte {
	b := l.n.arena.Bytes(r)[m.L3:]
	if m.Next == frame.Nil {
		return b
	}
	l.gathered = append(l.gathered[:0], b...)
	for c := m.Next; c != frame.Nil; c = l.n.arena.Meta(c).Next {
		l.gathered = append(l.gathered, l.n.arena.Bytes(c)...)
	}
	return l.gathered
}

// fragmentOf takes a packet with ICMP or ICMPv6, or a fragment of one, apart. In
// IPv6 the fragment header, if there is one, must be the only extension.
func fragmentOf(b []byte, m *frame.Meta) (key datagramKey, at int, more bool, payload []byte, ok bool) {
	if m.Flags&frame.HasIPv4 != 0 {
		ip := wire.IPv4(b)
		head, end := ip.HeaderLen(), int(ip.TotalLen())
		if ip.Proto() != wire.ProtoICMP || end < head || end > len(b) {
			return
		}
		src, dst := ip.Src(), ip.Dst()
		key = datagramKey{src: key4(binary.BigEndian.Uint32(src[:])), dst: key4(binary.BigEndian.Uint32(dst[:])), id: uint32(ip.ID())}
		word := ip.FlagsOffset()
		return key, int(word&wire.IPv4OffsetMask) * 8, word&wire.IPv4MoreFragments != 0, b[head:end], true
	}
	ip := wire.IPv6(b)
	end := wire.IPv6Len + int(ip.PayloadLen())
	if end > len(b) {
		return
	}
	key = datagramKey{src: keyOf16(ip.Src()), dst: keyOf16(ip.Dst()), v6: true}
	b = b[wire.IPv6Len:end]
	if ip.NextHeader() == wire.ProtoICMPv6 {
		return key, 0, false, b, true
	}
	if ip.NextHeader() != wire.ProtoFragment || len(b) < wire.IPv6FragmentLen {
		return
	}
	h := wire.IPv6Fragment(b)
	key.id = h.ID()
	return key, h.Offset(), h.More(), b[wire.IPv6FragmentLen:], h.NextHeader() == wire.ProtoICMPv6
}

// echo answers an echo request that was put together. r is its last fragment:
// the answer goes back to where that came from, in fragments of its own.
func (l *local) echo(r frame.Ref, m *frame.Meta, d *datagram) {
	n := l.n
	msg := d.data
	request, reply, sum := wire.ICMPEcho, wire.ICMPEchoReply, uint64(0)
	if d.key.v6 {
		request, reply, sum = wire.ICMPv6Echo, wire.ICMPv6EchoReply, wire.PseudoSum6(d.key.src.as16(), d.key.dst.as16(), wire.ProtoICMPv6, len(msg))
	}
	if len(msg) < wire.ICMPLen || msg[0] != request || wire.SegmentChecksum(sum, msg) != 0 {
		n.drop(r, frame.LocalUnhandled)
		return
	}
	msg[0] = reply
	wire.UpdateICMPChecksum(sum, msg) // the sum of the addresses does not depend on their order
	peer := wire.Ethernet(n.arena.Bytes(r)).Src()
	mtu := int(n.prog.ifaces[n.prog.ifaceOf(m)].mtu)
	port, vid := m.InPort, m.VID
	n.drop(r, frame.LocalConsumed)

	id := n.nextID()
	room := min(mtu, n.arena.Room()-wire.EthernetLen)
	for at := 0; at < len(msg); {
		var b []byte
		size := (room - wire.IPv4Len) &^ 7
		if d.key.v6 {
			size = (room - wire.IPv6Len - wire.IPv6FragmentLen) &^ 7
		}
		part := msg[at:min(at+size, len(msg))]
		last := at+len(part) == len(msg)
		if d.key.v6 {
			b = l.echoPart6(d, part, at, last, id)
		} else {
			b = l.echoPart4(d, part, at, last, id)
		}
		eth := wire.EthernetFields{Dst: peer, Src: wire.MACFromUint64(n.selfMAC), EtherType: wire.EtherTypeIPv4}
		if d.key.v6 {
			eth.EtherType = wire.EtherTypeIPv6
		}
		eth.Encode(b)
		n.send(b, port, vid, peer)
		at += len(part)
	}
}

func (l *local) echoPart4(d *datagram, part []byte, at int, last bool, id uint16) []byte {
	word := uint16(at / 8)
	if !last {
		word |= wire.IPv4MoreFragments
	}
	b := make([]byte, wire.EthernetLen+wire.IPv4Len, wire.EthernetLen+wire.IPv4Len+len(part))
	ip := wire.IPv4Fields{TOS: networkControl << 2, TotalLen: uint16(wire.IPv4Len + len(part)), ID: id, FlagsOffset: word, TTL: 64,
		Proto: wire.ProtoICMP, Src: d.key.dst.as4(), Dst: d.key.src.as4()}
	ip.Encode(b[wire.EthernetLen:])
	wire.IPv4(b[wire.EthernetLen:]).UpdateChecksum()
	return append(b, part...)
}

func (l *local) echoPart6(d *datagram, part []byte, at int, last bool, id uint16) []byte {
	word := uint16(at)
	if !last {
		word |= 1
	}
	const head = wire.EthernetLen + wire.IPv6Len + wire.IPv6FragmentLen
	b := make([]byte, head, head+len(part))
	ip := wire.IPv6Fields{TrafficClass: networkControl << 2, PayloadLen: uint16(wire.IPv6FragmentLen + len(part)), NextHeader: wire.ProtoFragment,
		HopLimit: 64, Src: d.key.dst.as16(), Dst: d.key.src.as16()}
	ip.Encode(b[wire.EthernetLen:])
	h := wire.IPv6FragmentFields{NextHeader: wire.ProtoICMPv6, OffsetMore: word, ID: uint32(id)}
	h.Encode(b[wire.EthernetLen+wire.IPv6Len:])
	return append(b, part...)
}
