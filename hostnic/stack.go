package hostnic

import (
	"fmt"
	"net/netip"

	"gswitch/frame"
	"gswitch/wire"
)

// StackConfig makes a NIC usable on a real link: it answers for its own address (ARP,
// neighbour discovery, echo requests), resolves the MAC addresses of others and exchanges
// datagrams with them (Config.Stack). In virtual time all addresses are known, and hosts
// have no stack.
type StackConfig struct {
	Bits    int        // prefix length of Config.Addr: addresses on the link
	Gateway netip.Addr // next hop of all other addresses; invalid: none
	Port    uint16     // UDP port of the datagrams for TakeDatagram, and source port of those sent
	Class   uint8      // of frames of the stack itself
}

func (c *StackConfig) validate(n *Config) error {
	if c == nil {
		return nil
	}
	prefix, err := n.Addr.Prefix(c.Bits)
	switch {
	case err != nil:
		return fmt.Errorf("nic %s: %v/%d: %w", n.Name, n.Addr, c.Bits, err)
	case c.Gateway.IsValid() && !prefix.Contains(c.Gateway):
		return fmt.Errorf("nic %s: gateway %v is not on the link %v", n.Name, c.Gateway, prefix)
	case c.Gateway == n.Addr:
		return fmt.Errorf("nic %s: gateway %v is the NIC's own address", n.Name, c.Gateway)
	case c.Class > 7:
		return fmt.Errorf("nic %s: class %d of the stack is not within 0 and 7", n.Name, c.Class)
	case n.Virtual:
		return fmt.Errorf("nic %s: a stack needs real frames", n.Name)
	}
	return nil
}

// stack is the state for StackConfig. Frames of queue pairs do not touch it.
type stack struct {
	cfg         StackConfig
	prefix      netip.Prefix
	neighbors   []neighbor
	unsolicited int        // of them, that are not ours
	due         frame.Time // next timer of a neighbour
	inbox       [inboxLen]Datagram
	head, len   int
	ipID        uint16
	count       StackCounts
}

// StackCounts are the counters of the stack.
type StackCounts struct {
	ARPAnswered, NDAnswered, EchoAnswered uint64
	Asked                                 uint64 // requests for the MAC address of a neighbour
	UnsolicitedRefused                    uint64 // stations that sent requests and were not kept as neighbours, since there were too many
	DatagramsSent, DatagramsReceived      uint64
}

func newStack(c *Config) *stack {
	prefix, _ := c.Addr.Prefix(c.Stack.Bits) // checked by Validate
	return &stack{cfg: *c.Stack, prefix: prefix, due: frame.Never}
}

// Stack returns the counters of the stack, zero without one.
func (n *NIC) Stack() StackCounts {
	if n.stack == nil {
		return StackCounts{}
	}
	return n.stack.count
}

// NextHop returns the neighbour through which an address is reached: the address itself
// on the link, the gateway otherwise.
func (n *NIC) NextHop(to netip.Addr) (netip.Addr, error) {
	switch s := n.stack; {
	case s == nil:
		return netip.Addr{}, fmt.Errorf("nic %s: it has no stack", n.cfg.Name)
	case to.Is4() != n.cfg.Addr.Is4():
		return netip.Addr{}, fmt.Errorf("%v is not of the address family of %v", to, n.cfg.Addr)
	case to == n.cfg.Addr:
		return netip.Addr{}, fmt.Errorf("%v is the address of this host itself", to)
	case s.prefix.Contains(to):
		return to, nil
	case s.cfg.Gateway.IsValid():
		return s.cfg.Gateway, nil
	default:
		return netip.Addr{}, fmt.Errorf("%v is not on the link %v, and there is no gateway", to, s.prefix)
	}
}

// local processes a frame that is not RoCEv2.
func (n *NIC) local(now frame.Time, r frame.Ref, m *frame.Meta, b []byte) {
	if dst := wire.Ethernet(b).DstUint64(); dst != n.mac && m.Flags&frame.IsMulticast == 0 {
		n.drop(r, frame.ForeignMAC)
		return
	}
	const not = frame.HasTunnel | frame.IsFragment | frame.Chained | frame.Truncated | frame.HasRoCE
	switch {
	case m.Flags&not != 0:
		n.drop(r, frame.LocalUnhandled)
	case m.Flags&frame.IsARP != 0:
		n.arp(now, r, m, b)
	case m.Flags&frame.HasIPv4 != 0 && n.addr.v4:
		n.local4(now, r, m, b)
	case m.Flags&frame.HasIPv6 != 0 && !n.addr.v4:
		n.local6(now, r, m, b)
	default:
		n.drop(r, frame.LocalUnhandled)
	}
}

func (n *NIC) local4(now frame.Time, r frame.Ref, m *frame.Meta, b []byte) {
	ip := wire.IPv4(b[m.L3:])
	end := int(m.L3) + int(ip.TotalLen())
	if m.Flags&frame.IsMulticast != 0 || !n.addr.is(b[m.L3+16:]) || end > len(b) {
		n.drop(r, frame.LocalUnhandled)
		return
	}
	body := b[m.L4:end]
	switch m.Proto {
	case wire.ProtoICMP:
		n.echo4(now, r, b, ip, body)
	case wire.ProtoUDP:
		n.datagram(now, r, ip.SrcAddr(), wire.PseudoSum4(ip.Src(), ip.Dst(), wire.ProtoUDP, len(body)), body)
	default:
		n.drop(r, frame.LocalUnhandled)
	}
}

// echo4 answers an echo request.
func (n *NIC) echo4(now frame.Time, r frame.Ref, b []byte, ip wire.IPv4, msg []byte) {
	if !wire.AnswerEcho(ip, msg) {
		n.drop(r, frame.LocalUnhandled)
		return
	}
	n.stack.count.EchoAnswered++
	n.turn(now, r, b)
}

func (n *NIC) local6(now frame.Time, r frame.Ref, m *frame.Meta, b []byte) {
	ip := wire.IPv6(b[m.L3:])
	end := int(m.L3) + wire.IPv6Len + int(ip.PayloadLen())
	if end > len(b) {
		n.drop(r, frame.LocalUnhandled)
		return
	}
	body := b[m.L4:end]
	switch ours := n.addr.is(b[m.L3+24:]); {
	case m.Proto == wire.ProtoICMPv6:
		n.icmp6(now, r, b, ip, body, ours)
	case m.Proto == wire.ProtoUDP && ours:
		n.datagram(now, r, ip.SrcAddr(), wire.PseudoSum6(ip.Src(), ip.Dst(), wire.ProtoUDP, len(body)), body)
	default:
		n.drop(r, frame.LocalUnhandled)
	}
}

func (n *NIC) icmp6(now frame.Time, r frame.Ref, b []byte, ip wire.IPv6, msg []byte, ours bool) {
	src, dst := ip.Src(), ip.Dst()
	if wire.SegmentChecksum(wire.PseudoSum6(src, dst, wire.ProtoICMPv6, len(msg)), msg) != 0 {
		n.drop(r, frame.LocalUnhandled)
		return
	}
	switch {
	case msg[0] == wire.ICMPv6Echo && ours:
		wire.AnswerEcho6(ip, msg, dst)
		n.stack.count.EchoAnswered++
		n.turn(now, r, b)
	case msg[0] == wire.ICMPv6NeighborSolicitation || msg[0] == wire.ICMPv6NeighborAdvertisement:
		n.discovery(now, r, b, ip, msg)
	default:
		n.drop(r, frame.LocalUnhandled)
	}
}

// turn sends a frame back to the station that it came from.
func (n *NIC) turn(now frame.Time, r frame.Ref, b []byte) {
	copy(b[0:6], b[6:12])
	copy(b[6:12], n.cfg.MAC[:])
	n.queueLocal(now, r)
}

// queueLocal queues a frame of the stack, with the replies of queue pairs.
func (n *NIC) queueLocal(now frame.Time, r frame.Ref) {
	m := n.arena.Meta(r)
	m.Wire, m.Class = uint32(m.Len), n.stack.cfg.Class
	n.queueReply(now, r, m.Class)
}

// Inject sends a copy of a complete frame of an application, from its Ethernet header on,
// in a class, padded to the minimum of a real link. It reports whether there was memory
// for it.
func (n *NIC) Inject(now frame.Time, b []byte, class uint8) bool {
	r := n.Alloc()
	if r == frame.Nil {
		return false
	}
	m := n.arena.Meta(r)
	m.Len = uint16(max(len(b), wire.MinFrame))
	to := n.arena.Bytes(r)
	clear(to[copy(to, b):])
	m.Wire, m.Class = uint32(m.Len), class
	n.queueReply(now, r, class)
	return true
}

// sendLocal sends a copy of a frame of the stack.
func (n *NIC) sendLocal(now frame.Time, b []byte) bool {
	return n.Inject(now, b, n.stack.cfg.Class)
}
