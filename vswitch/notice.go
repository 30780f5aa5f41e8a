package vswitch

import (
	"encoding/binary"

	"github.com/gswitch/gswitch/frame"
	"github.com/gswitch/gswitch/rocc"
	"github.com/gswitch/gswitch/wire"
)

// What congestion points tell senders travels as ICMP messages, so that it
// finds its way over routers, too.

// notices go in the highest class, which is never paused: behind the data that
// they are about they would be late.
const noticeDSCP = 56

// dummySource is the source of ICMP messages of a switch without an address of
// its own (RFC 7600).
var dummySource = [4]byte{192, 0, 0, 8}

// tellable reports whether a frame has a sender that a notice would find.
func tellable(m *frame.Meta) bool {
	return m.Flags&(frame.HasIPv4|frame.HasIPv6) != 0 && m.Flags&(frame.IsMulticast|frame.IsBroadcast|frame.IsClone) == 0 && m.InPort != m.OutPort
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

func noticeType(flow *rocc.Flow) uint8 {
	if flow.IPv6 {
		return rocc.Type6
	}
	return rocc.Type4
}

// compose makes a frame for an ICMP message of size bytes to the sender of a
// flow, frame.Nil if there is no chunk for it.
func (n *Node) compose(now frame.Time, flow *rocc.Flow, size int) (frame.Ref, []byte) {
	n.count.Made++
	r := n.pool.Alloc()
	if r == frame.Nil {
		n.countDrop(frame.NoPort, frame.ArenaExhausted)
		return r, nil
	}
	m := n.arena.Reset(r)
	m.Arrival = now
	l4 := wire.EthernetLen + wire.IPv4Len
	if flow.IPv6 {
		l4 = wire.EthernetLen + wire.IPv6Len
	}
	size += l4
	m.Len, m.Wire = uint16(size), uint32(size)
	b := n.arena.Bytes(r)
	iface := n.prog.ifaceOf(&frame.Meta{InPort: flow.Port, VID: flow.VID})
	if flow.IPv6 {
		n.addressNotice6(b, flow, iface)
	} else {
		n.addressNotice4(b, flow, iface)
	}
	return r, b[l4:]
}

// dispatch completes a message and sends it.
func (n *Node) dispatch(now frame.Time, r frame.Ref, msg []byte, flow *rocc.Flow) {
	n.sendNotice(now, n.seal(r, msg, flow))
}

// sealed is a message that is ready to be sent.
type sealed struct {
	r         frame.Ref
	port, vid uint16
	routed    bool // by the route to the sender, else by port and VLAN
}

// seal completes a message.
func (n *Node) seal(r frame.Ref, msg []byte, flow *rocc.Flow) sealed {
	b := n.arena.Bytes(r)
	pseudo := uint64(0)
	if flow.IPv6 {
		v6 := wire.IPv6(b[wire.EthernetLen:])
		pseudo = wire.PseudoSum6(v6.Src(), v6.Dst(), wire.ProtoICMPv6, len(msg))
	}
	wire.UpdateICMPChecksum(pseudo, msg)
	if flow.MAC == 0 {
		putMACs(b, n.selfMAC, n.selfMAC)
		return sealed{r: r, routed: true}
	}
	putMACs(b, flow.MAC, n.selfMAC)
	return sealed{r: r, port: flow.Port, vid: flow.VID}
}

func (n *Node) sendNotice(now frame.Time, s sealed) {
	n.scratchOne[0] = s.r
	n.parser.Parse(n.arena, n.scratchOne[:])
	m := n.arena.Meta(s.r)
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

func (n *Node) addressNotice4(b []byte, flow *rocc.Flow, iface uint16) {
	eth := wire.EthernetFields{EtherType: wire.EtherTypeIPv4}
	eth.Encode(b)
	src, ok := n.prog.errorSource4(iface)
	if !ok {
		src = dummySource
	}
	ip := wire.IPv4Fields{TOS: noticeDSCP << 2, TotalLen: uint16(len(b) - wire.EthernetLen), TTL: 64, Proto: wire.ProtoICMP, Src: src, Dst: wire.IPv4(flow.Back[:]).Src()}
	ip.Encode(b[wire.EthernetLen:])
	wire.IPv4(b[wire.EthernetLen:]).UpdateChecksum()
}

func (n *Node) addressNotice6(b []byte, flow *rocc.Flow, iface uint16) {
	eth := wire.EthernetFields{EtherType: wire.EtherTypeIPv6}
	eth.Encode(b)
	to := wire.IPv6(flow.Back[:]).Src()
	src := linkLocal(n.selfMAC).As16()
	if iface != noIface {
		src = n.prog.errorSource6(iface, addrKey{binary.BigEndian.Uint64(to[:]), binary.BigEndian.Uint64(to[8:])})
	}
	ip := wire.IPv6Fields{TrafficClass: noticeDSCP << 2, PayloadLen: uint16(len(b) - wire.EthernetLen - wire.IPv6Len), NextHeader: wire.ProtoICMPv6, HopLimit: 64, Src: src, Dst: to}
	ip.Encode(b[wire.EthernetLen:])
}
