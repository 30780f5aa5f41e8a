package vswitch

import (
	"gswitch/frame"
	"gswitch/pipeline"
	"gswitch/wire"
)

// defaultICMPRate is how many ICMP errors are sent in a second unless the
// configuration says otherwise (RFC 1812 4.3.2.8, RFC 4443 2.4 f ask for a
// limit and leave the number open).
const defaultICMPRate = 1000

// limitICMP sets the rate of this worker's ICMP errors.
func (n *Node) limitICMP(now frame.Time) {
	rate := int64(n.prog.Config.ICMPRate)
	if rate == 0 {
		rate = defaultICMPRate
	}
	n.own.icmp, _ = pipeline.NewEventMeter(rate, max(rate/10, 6))
	n.own.icmp.Take(now, 0)
}

// unreach says what could not be reached.
type unreach uint8

const (
	unreachNet unreach = iota
	unreachHost
	unreachPort
	prohibited
)

// ICMPv6 codes (RFC 4443 3.1).
const (
	icmp6NoRoute     = 0
	icmp6Prohibited  = 1
	icmp6AddrUnreach = 3
	icmp6PortUnreach = 4
)

// unreachable refuses a frame that matched no route.
func (n *Node) unreachable(now frame.Time, r frame.Ref) {
	n.icmpUnreachable(now, r, n.arena.Meta(r), unreachNet)
	n.drop(r, frame.NoRoute)
}

// refuse drops a frame whose route leads nowhere. Answers are those of Linux
// for its routes of the same names (RFC 1812 5.2.7.1, RFC 4443 3.1).
func (n *Node) refuse(now frame.Time, r frame.Ref, m *frame.Meta, kind routeKind) {
	switch {
	case kind == routeUnreachable && m.Flags&frame.HasIPv6 != 0:
		n.icmpUnreachable(now, r, m, unreachNet)
		n.drop(r, frame.Unreachable)
	case kind == routeUnreachable:
		n.icmpUnreachable(now, r, m, unreachHost)
		n.drop(r, frame.Unreachable)
	case kind == routeProhibit:
		n.icmpUnreachable(now, r, m, prohibited)
		n.drop(r, frame.Prohibited)
	default:
		n.drop(r, frame.Blackhole)
	}
}

func (n *Node) icmpUnreachable(now frame.Time, r frame.Ref, m *frame.Meta, what unreach) {
	if m.Flags&frame.HasIPv4 != 0 {
		code := [...]uint8{unreachNet: wire.ICMPCodeNetUnreach, unreachHost: wire.ICMPCodeHostUnreach, unreachPort: wire.ICMPCodePortUnreach, prohibited: wire.ICMPCodeProhibited}[what]
		n.icmpError(now, r, wire.ICMPDstUnreachable, code, 0)
	} else {
		code := [...]uint8{unreachNet: icmp6NoRoute, unreachHost: icmp6AddrUnreach, unreachPort: icmp6PortUnreach, prohibited: icmp6Prohibited}[what]
		n.icmpError(now, r, wire.ICMPv6DstUnreachable, code, 0)
	}
}

func (n *Node) icmpTimeExceeded(now frame.Time, r frame.Ref, m *frame.Meta) {
	if m.Flags&frame.HasIPv4 != 0 {
		n.icmpError(now, r, wire.ICMPTimeExceeded, 0, 0)
	} else {
		n.icmpError(now, r, wire.ICMPv6TimeExceeded, 0, 0)
	}
}

// icmpTooBig sends the sender the MTU of the way out (RFC 1191 4, RFC 4443
// 3.2). We never fragment: IPv4 senders are notified as if DF were set.
func (n *Node) icmpTooBig(now frame.Time, r frame.Ref, m *frame.Meta, mtu uint32) {
	if m.Flags&frame.HasIPv4 != 0 {
		n.icmpError(now, r, wire.ICMPDstUnreachable, wire.ICMPCodeFragNeeded, mtu)
	} else {
		n.icmpError(now, r, wire.ICMPv6PacketTooBig, 0, mtu)
	}
}

// Bytes of the offending packet that an error quotes: an ICMP error is at
// most 576 bytes long (RFC 1812 4.3.2.3), an ICMPv6 one at most 1280
// (RFC 4443 2.4 c).
const (
	quote4 = 576 - wire.IPv4Len - wire.ICMPLen
	quote6 = 1280 - wire.IPv6Len - wire.ICMPLen
)

// icmpError sends an ICMP or ICMPv6 error about r back to where r came from,
// unless the rules of RFC 1122 3.2.2 and RFC 4443 2.4 e or the rate limit
// forbid it. r stays the caller's.
func (n *Node) icmpError(now frame.Time, r frame.Ref, typ, code uint8, rest uint32) {
	m := n.arena.Meta(r)
	b := n.arena.Bytes(r)
	f := n.prog.ifaceOf(m)
	if f == noIface || m.Flags&unanswerable != 0 || m.Reason != frame.Keep {
		return
	}
	if addressesOf(b, m).dst.isMulticast(m) {
		return
	}
	src := addressesOf(b, m).src
	if src.isMulticast(m) || src == (addrKey{}) || src == key4(0) || isICMPError(b, m) || m.Flags&frame.HasIPv4 != 0 && wire.IPv4(b[m.L3:]).FlagsOffset()&0x1fff != 0 {
		return
	}
	if !n.own.icmp.Take(now, 1) {
		n.count.ICMPLimited++
		return
	}
	e := n.pool.Alloc()
	if e == frame.Nil {
		n.count.Made++
		n.countDrop(m.InPort, frame.ArenaExhausted)
		return
	}
	em := n.arena.Reset(e)
	em.InPort, em.OutPort, em.VID, em.Arrival = m.InPort, m.InPort, m.VID, now
	em.Class = n.prog.class.DSCP[networkControl]
	em.L3 = wire.EthernetLen
	var ok bool
	if m.Flags&frame.HasIPv4 != 0 {
		ok = n.writeError4(e, em, f, b[m.L3:], src, typ, code, rest)
	} else {
		ok = n.writeError6(e, em, f, b[m.L3:], src, typ, code, rest)
	}
	if !ok {
		n.pool.Free(e)
		return
	}
	putMACs(n.arena.Bytes(e), wire.Ethernet(b).SrcUint64(), n.selfMAC)
	n.count.ICMPSent++
	n.count.Made++
	n.emit(e)
}

// isICMPError reports whether the frame is itself an ICMP error, about which
// no error is sent.
func isICMPError(b []byte, m *frame.Meta) bool {
	if m.L4 == 0 || int(m.L4) >= len(b) {
		return false
	}
	if m.Flags&frame.HasIPv4 != 0 {
		t := b[m.L4]
		return m.Proto == wire.ProtoICMP && t != wire.ICMPEcho && t != wire.ICMPEchoReply
	}
	return m.Proto == wire.ProtoICMPv6 && b[m.L4] < 128
}

// nextID returns the identification of the next IPv4 header that this worker
// writes.
func (n *Node) nextID() uint16 {
	n.own.ipID++
	return n.own.ipID
}

func (n *Node) writeError4(e frame.Ref, em *frame.Meta, f uint16, packet []byte, to addrKey, typ, code uint8, rest uint32) bool {
	src, ok := n.prog.errorSource4(f)
	if !ok {
		return false
	}
	q := min(len(packet), quote4, n.arena.Room()-wire.EthernetLen-wire.IPv4Len-wire.ICMPLen)
	size := wire.EthernetLen + wire.IPv4Len + wire.ICMPLen + q
	em.Len, em.Wire, em.Flags = uint16(size), uint32(size), frame.HasIPv4|frame.Own
	b := n.arena.Bytes(e)
	eth := wire.EthernetFields{EtherType: wire.EtherTypeIPv4}
	eth.Encode(b)
	ip := wire.IPv4Fields{TOS: networkControl << 2, TotalLen: uint16(size - wire.EthernetLen), ID: n.nextID(), TTL: 64, Proto: wire.ProtoICMP, Src: src, Dst: to.as4()}
	ip.Encode(b[wire.EthernetLen:])
	wire.IPv4(b[wire.EthernetLen:]).UpdateChecksum()
	msg := b[wire.EthernetLen+wire.IPv4Len:]
	h := wire.ICMPFields{Type: typ, Code: code, Rest: rest}
	h.Encode(msg)
	copy(msg[wire.ICMPLen:], packet[:q])
	wire.UpdateICMPChecksum(0, msg)
	return true
}

func (n *Node) writeError6(e frame.Ref, em *frame.Meta, f uint16, packet []byte, to addrKey, typ, code uint8, rest uint32) bool {
	src := n.prog.errorSource6(f, to)
	q := min(len(packet), quote6, n.arena.Room()-wire.EthernetLen-wire.IPv6Len-wire.ICMPLen)
	size := wire.EthernetLen + wire.IPv6Len + wire.ICMPLen + q
	em.Len, em.Wire, em.Flags = uint16(size), uint32(size), frame.HasIPv6|frame.Own
	b := n.arena.Bytes(e)
	eth := wire.EthernetFields{EtherType: wire.EtherTypeIPv6}
	eth.Encode(b)
	msg := b[wire.EthernetLen+wire.IPv6Len:]
	ip := wire.IPv6Fields{TrafficClass: networkControl << 2, PayloadLen: uint16(len(msg)), NextHeader: wire.ProtoICMPv6, HopLimit: 64, Src: src, Dst: to.as16()}
	ip.Encode(b[wire.EthernetLen:])
	h := wire.ICMPFields{Type: typ, Code: code, Rest: rest}
	h.Encode(msg)
	copy(msg[wire.ICMPLen:], packet[:q])
	wire.UpdateICMPChecksum(wire.PseudoSum6(src, to.as16(), wire.ProtoICMPv6, len(msg)), msg)
	return true
}
