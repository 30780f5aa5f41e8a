package vswitch

import (
	"encoding/binary"
	"math/bits"

	"gswitch/frame"
	"gswitch/rocc"
	"gswitch/wire"
)

// What congestion points tell senders travels as ICMP messages, so that it
// finds its way over routers, too.

// notices go in the highest class, which is never paused: behind the data that
// they are about they would be late.
const noticeDSCP = 56

// dummySource is the source of ICMP messages of a switch without an address of
// its own (RFC 7600).
var dummySource = [4]byte{192, 0, 0, 8}

// untold are the flags of frames whose sender is not told.
const untold = frame.IsMulticast | frame.IsBroadcast | frame.IsClone

// tellable reports whether a frame has a sender that a notice would find.
func tellable(m *frame.Meta) bool {
	return m.Flags&(frame.HasIPv4|frame.HasIPv6) != 0 && m.Flags&untold == 0 && m.InPort != m.OutPort
}

// wayBack notes how the sender of a frame is found.
func wayBack(flow *rocc.Flow, b []byte, m *frame.Meta) {
	flow.IPv6 = m.Flags&frame.HasIPv6 != 0
	flow.Port, flow.VID, flow.MAC = m.InPort, m.VID, wire.Ethernet(b).SrcUint64()
	if m.Flags&frame.Routed != 0 {
		flow.MAC = 0 // ours by now: the way back is a route
	}
	quote := len(flow.Back)
	if !flow.IPv6 {
		quote -= wire.IPv6Len - wire.IPv4Len
	}
	l3 := int(m.L3)
	flow.Len = uint8(copy(flow.Back[:quote], b[l3:]))
}

// compose makes a message to the sender of a flow. It returns false if there
// is no chunk for it.
func (n *Node) compose(now frame.Time, t *message, flow *rocc.Flow) (sealed, bool) {
	n.count.Made++
	r := n.pool.Alloc()
	if r == frame.Nil {
		n.countDrop(frame.NoPort, frame.ArenaExhausted)
		return sealed{}, false
	}
	m := n.arena.Reset(r)
	m.Arrival = now
	l4 := wire.EthernetLen + wire.IPv4Len
	if flow.IPv6 {
		l4 = wire.EthernetLen + wire.IPv6Len
	}
	size := l4 + t.n + int(flow.Len)
	m.Len, m.Wire = uint16(size), uint32(size)
	b := n.arena.Bytes(r)
	iface := n.prog.ifaceAt(flow.Port, flow.VID)
	pseudo := uint64(0)
	if flow.IPv6 {
		pseudo = n.addressNotice6(b, flow, iface)
	} else {
		n.addressNotice4(b, flow, iface)
	}
	t.write(b[l4:], flow, pseudo)
	if flow.MAC == 0 {
		putMACs(b, n.selfMAC, n.selfMAC)
		return sealed{r: r, routed: true, ipv6: flow.IPv6}, true
	}
	putMACs(b, flow.MAC, n.selfMAC)
	return sealed{r: r, port: flow.Port, vid: flow.VID, ipv6: flow.IPv6}, true
}

// message is what a congestion point tells all its flows alike: all of an ICMP
// message but what it quotes.
type message struct {
	head [rocc.ReadingLen]byte
	n    int
	sum  uint64 // of head, for the checksum over IPv4
}

// set takes over the first n bytes of head, an ICMP message of type
// rocc.Type4.
func (t *message) set(n int) {
	t.n = n
	t.sum = sumOf(t.head[:n])
}

// sumOf returns the sum of b for wire.SegmentChecksum to go on with. b is of
// even length.
func sumOf(b []byte) uint64 { return uint64(bits.ReverseBytes16(^wire.Checksum(b))) }

// write makes b the message for a flow, checksum included.
func (t *message) write(b []byte, flow *rocc.Flow, pseudo uint64) {
	copy(b, t.head[:t.n])
	copy(b[t.n:], flow.Back[:flow.Len])
	if flow.IPv6 {
		b[0] = rocc.Type6
		wire.UpdateICMPChecksum(pseudo, b)
		return
	}
	wire.ICMP(b).SetChecksum(wire.SegmentChecksum(t.sum, b[t.n:]))
}

// tell sends a flow a message and returns false if there is no chunk for it.
func (n *Node) tell(now frame.Time, t *message, flow *rocc.Flow) bool {
	s, ok := n.compose(now, t, flow)
	if ok {
		n.sendNotice(now, s)
	}
	return ok
}

// sealed is a message that is ready to be sent.
type sealed struct {
	r         frame.Ref
	port, vid uint16
	routed    bool // by the route to the sender, else by port and VLAN
	ipv6      bool
}

func (n *Node) sendNotice(now frame.Time, s sealed) {
	m := n.arena.Meta(s.r)
	if s.ipv6 {
		n.scratchOne[0] = s.r
		n.parser.Parse(n.arena, n.scratchOne[:])
	} else {
		n.parser.OwnICMP4(m, n.arena.Bytes(s.r))
	}
	m.Class = n.prog.class.DSCP[noticeDSCP]
	if s.routed {
		if n.routeN == len(n.routeVec) {
			n.route(now)
		}
		n.toRoute(s.r)
		return
	}
	m.VID, m.OutPort = s.vid, s.port
	n.emit(s.r)
}

// later keeps a message until the frames of this vector have their queues,
// and reports false if there is no room.
func (n *Node) later(s sealed) bool {
	if n.sealedN == len(n.sealed) {
		return false
	}
	n.sealed[n.sealedN] = s
	n.sealedN++
	return true
}

// sendLater sends what later kept.
func (n *Node) sendLater(now frame.Time) {
	for i := 0; i < n.sealedN; i++ {
		n.sendNotice(now, n.sealed[i])
	}
	n.sealedN = 0
	if n.routeN > 0 {
		n.route(now)
	}
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

func (n *Node) addressNotice4(b []byte, flow *rocc.Flow, iface uint16) {
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
	copy(addresses[4:], flow.Back[12:16])
	ip.SetChecksum(wire.SegmentChecksum(noticeSum4+uint64(bits.ReverseBytes16(size))+uint64(bits.ReverseBytes16(id)), addresses))
}

// addressNotice6 returns the sum of the pseudo-header, too.
func (n *Node) addressNotice6(b []byte, flow *rocc.Flow, iface uint16) (pseudo uint64) {
	eth := wire.EthernetFields{EtherType: wire.EtherTypeIPv6}
	eth.Encode(b)
	to := wire.IPv6(flow.Back[:]).Src()
	src := linkLocal(n.selfMAC).As16()
	if iface != noIface {
		src = n.prog.errorSource6(iface, addrKey{binary.BigEndian.Uint64(to[:]), binary.BigEndian.Uint64(to[8:])})
	}
	size := len(b) - wire.EthernetLen - wire.IPv6Len
	ip := wire.IPv6Fields{TrafficClass: noticeDSCP << 2, PayloadLen: uint16(size), NextHeader: wire.ProtoICMPv6, HopLimit: 64, Src: src, Dst: to}
	ip.Encode(b[wire.EthernetLen:])
	return wire.PseudoSum6(src, to, wire.ProtoICMPv6, size)
}
