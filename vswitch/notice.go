package vswitch

import (
	"encoding/binary"
	"gswitch/notice"
	"math/bits"

	"gswitch/frame"
	"gswitch/wire"
)

// Messages of congestion points to senders are ICMP messages, so that they can cross
// routers, too.

// noticeDSCP puts notices into the highest class, which is never paused: behind the data
// that they are about they would be late.
const noticeDSCP = 56

// dummySource is the source of ICMP messages of a switch without an address of
// its own (RFC 7600).
var dummySource = [4]byte{192, 0, 0, 8}

// unanswerable are the flags of frames whose sender gets no notice.
const unanswerable = frame.IsMulticast | frame.IsBroadcast | frame.IsClone

// Answerable reports whether a frame has a sender that a notice can reach.
func Answerable(m *frame.Meta) bool {
	return m.Flags&(frame.HasIPv4|frame.HasIPv6) != 0 && m.Flags&unanswerable == 0 && m.InPort != m.OutPort
}

// NoteSender records how to reach the sender of a frame with bytes b.
func NoteSender(to *notice.Sender, b []byte, m *frame.Meta) {
	to.IPv6 = m.Flags&frame.HasIPv6 != 0
	to.Port, to.VID, to.MAC, to.About = m.InPort, m.VID, wire.Ethernet(b).SrcUint64(), m.OutPort
	if m.Flags&frame.Routed != 0 {
		to.MAC = 0 // it is ours by now: the way back is a route
	}
	quote := len(to.Back)
	if !to.IPv6 {
		quote -= wire.IPv6Len - wire.IPv4Len
	}
	l3 := int(m.L3)
	to.Len = uint8(copy(to.Back[:quote], b[l3:]))
}

// compose makes a message to the sender of a flow. It returns false if there
// is no chunk for it.
func (n *Node) compose(now frame.Time, t *Message, to *notice.Sender) (composedNotice, bool) {
	n.count.Made++
	r := n.pool.Alloc()
	if r == frame.Nil {
		n.countDrop(frame.NoPort, frame.ArenaExhausted)
		return composedNotice{}, false
	}
	m := n.arena.Reset(r)
	m.Arrival, m.About = now, to.About+1
	l4 := wire.EthernetLen + wire.IPv4Len
	if to.IPv6 {
		l4 = wire.EthernetLen + wire.IPv6Len
	}
	size := l4 + t.n + int(to.Len)
	m.Len, m.Wire = uint16(size), uint32(size)
	b := n.arena.Bytes(r)
	iface := n.prog.ifaceAt(to.Port, to.VID)
	pseudo := uint64(0)
	if to.IPv6 {
		pseudo = n.addressNotice6(b, to, iface)
	} else {
		n.addressNotice4(b, to, iface)
	}
	t.write(b[l4:], to, pseudo)
	if to.MAC == 0 {
		putMACs(b, n.selfMAC, n.selfMAC)
		return composedNotice{r: r, routed: true, ipv6: to.IPv6}, true
	}
	putMACs(b, to.MAC, n.selfMAC)
	return composedNotice{r: r, port: to.Port, vid: to.VID, ipv6: to.IPv6}, true
}

// Message is an ICMP message that a congestion point sends to all its flows, without the
// quoted packet.
type Message struct {
	Head [notice.MaxLen]byte
	n    int
	sum  uint64 // of head, for the checksum over IPv4
}

// Set takes the first n bytes of Head, an ICMP message of type notice.Type4, as the
// message.
func (t *Message) Set(n int) {
	t.n = n
	t.sum = sumOf(t.Head[:n])
}

// sumOf returns the sum of b in the form that wire.SegmentChecksum continues from. b must
// have even length.
func sumOf(b []byte) uint64 { return uint64(bits.ReverseBytes16(^wire.Checksum(b))) }

// write writes the message for sender to into b, including the checksum.
func (t *Message) write(b []byte, to *notice.Sender, pseudo uint64) {
	copy(b, t.Head[:t.n])
	copy(b[t.n:], to.Back[:to.Len])
	if to.IPv6 {
		b[0] = notice.Type6
		wire.UpdateICMPChecksum(pseudo, b)
		return
	}
	wire.ICMP(b).SetChecksum(wire.SegmentChecksum(t.sum, b[t.n:]))
}

// SendNotice sends a message to the sender of a flow and returns false if there is no
// chunk for it. It may only be called outside of the stages of a vector.
func (n *Node) SendNotice(now frame.Time, t *Message, to *notice.Sender) bool {
	s, ok := n.compose(now, t, to)
	if ok {
		n.sendNotice(now, s)
	}
	return ok
}

// composedNotice is a message that is ready to be sent.
type composedNotice struct {
	r         frame.Ref
	port, vid uint16
	routed    bool // by the route to the sender, else by port and VLAN
	ipv6      bool
}

func (n *Node) sendNotice(now frame.Time, s composedNotice) {
	m := n.arena.Meta(s.r)
	if s.ipv6 {
		n.vec.one[0] = s.r
		n.parser.Parse(n.arena, n.vec.one[:])
	} else {
		n.parser.OwnICMP4(m, n.arena.Bytes(s.r))
	}
	m.Class = n.prog.class.DSCP[noticeDSCP]
	if s.routed {
		if n.routed.n == len(n.routed.vec) {
			n.route(now)
		}
		n.toRoute(s.r)
		return
	}
	m.VID, m.OutPort = s.vid, s.port
	n.emit(s.r)
}

// DeferNotice is SendNotice for use within the stages of a vector: the message is sent
// when all frames of the vector have been queued. It also returns false if there is no
// room for it.
func (n *Node) DeferNotice(t *Message, to *notice.Sender) bool {
	s, ok := n.compose(n.now, t, to)
	switch {
	case !ok:
		return false
	case n.stages.deferredN == len(n.stages.deferred):
		n.pool.Free(s.r)
		return false
	}
	n.stages.deferred[n.stages.deferredN] = s
	n.stages.deferredN++
	return true
}

// endVector shows features which frames have joined queues, and sends their notices.
// Notices join queues themselves, but cause no further ones.
func (n *Node) endVector(now frame.Time) {
	n.showQueued()
	for i := 0; i < n.stages.deferredN; i++ {
		n.sendNotice(now, n.stages.deferred[i])
	}
	n.stages.deferredN = 0
	if n.routed.n > 0 {
		n.route(now)
	}
	if n.vec.decidedN > 0 {
		n.egress()
	}
	n.showQueued()
}

// noticeHead4 is what the headers of all notices over IPv4 have in common, and
// noticeSum4 the sum of the IPv4 header among them.
var noticeHead4, noticeSum4 = func() (h [wire.EthernetLen + wire.IPv4Len]byte, sum uint64) {
	eth := wire.EthernetFields{EtherType: wire.EtherTypeIPv4}
	eth.Encode(h[:])
	ip := wire.IPv4Fields{TOS: noticeDSCP << 2, TTL: 64, Proto: wire.ProtoICMP}
	ip.Encode(h[wire.EthernetLen:])
	return h, sumOf(h[wire.EthernetLen:])
}()

func (n *Node) addressNotice4(b []byte, to *notice.Sender, iface uint16) {
	h := (*[wire.EthernetLen + wire.IPv4Len]byte)(b)
	*h = noticeHead4
	src, ok := n.prog.errorSource4(iface)
	if !ok {
		src = dummySource
	}
	size := uint16(len(b) - wire.EthernetLen)
	ip := wire.IPv4(h[wire.EthernetLen:])
	id := n.nextID()
	ip.SetTotalLen(size)
	ip.SetID(id)
	addresses := h[wire.EthernetLen+12:]
	copy(addresses, src[:])
	copy(addresses[4:], to.Back[12:16])
	ip.SetChecksum(wire.SegmentChecksum(noticeSum4+uint64(bits.ReverseBytes16(size))+uint64(bits.ReverseBytes16(id)), addresses))
}

// addressNotice6 returns the sum of the pseudo-header, too.
func (n *Node) addressNotice6(b []byte, to *notice.Sender, iface uint16) (pseudo uint64) {
	eth := wire.EthernetFields{EtherType: wire.EtherTypeIPv6}
	eth.Encode(b)
	dst := wire.IPv6(to.Back[:]).Src()
	src := linkLocalOf(n.selfMAC).As16()
	if iface != noIface {
		src = n.prog.errorSource6(iface, addrKey{binary.BigEndian.Uint64(dst[:]), binary.BigEndian.Uint64(dst[8:])})
	}
	size := len(b) - wire.EthernetLen - wire.IPv6Len
	ip := wire.IPv6Fields{TrafficClass: noticeDSCP << 2, PayloadLen: uint16(size), NextHeader: wire.ProtoICMPv6, HopLimit: 64, Src: src, Dst: dst}
	ip.Encode(b[wire.EthernetLen:])
	return wire.PseudoSum6(src, dst, wire.ProtoICMPv6, size)
}
