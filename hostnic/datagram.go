package hostnic

import (
	"errors"
	"fmt"
	"net/netip"

	"gswitch/frame"
	"gswitch/wire"
)

const (
	// MaxDatagram bounds the payload of a datagram of the stack, in bytes.
	MaxDatagram = 256
	inboxLen    = 64
)

// Datagram is a datagram that arrived at StackConfig.Port.
type Datagram struct {
	From netip.Addr
	Port uint16 // source port
	Len  int
	Data [MaxDatagram]byte
}

// ErrUnresolved is returned while the MAC address of a datagram's next hop is being
// resolved: the datagram was not sent, and may be sent again soon.
var ErrUnresolved = errors.New("the next hop is not known yet")

// SendDatagram sends a UDP datagram to an address.
func (n *NIC) SendDatagram(now frame.Time, to netip.Addr, port uint16, payload []byte) error {
	if len(payload) > MaxDatagram {
		return fmt.Errorf("nic %s: a datagram of %d bytes is longer than %d", n.cfg.Name, len(payload), MaxDatagram)
	}
	mac, ok, err := n.Resolve(now, to)
	if err != nil {
		return err
	}
	if !ok {
		return ErrUnresolved
	}
	const l4 = wire.EthernetLen + wire.IPv6Len
	var b [l4 + wire.UDPLen + MaxDatagram]byte
	eth := wire.EthernetFields{Dst: mac, Src: n.cfg.MAC, EtherType: wire.EtherTypeIPv4}
	s := n.stack
	size := wire.UDPLen + len(payload)
	tos := n.cfg.DSCP[s.cfg.Class] << 2
	udp := wire.UDPFields{SrcPort: s.cfg.Port, DstPort: port, Length: uint16(size)}
	at, sum := wire.EthernetLen+wire.IPv4Len, uint64(0)
	if n.addr.v4 {
		s.ipID++
		ip := wire.IPv4Fields{TOS: tos, TotalLen: uint16(wire.IPv4Len + size), ID: s.ipID, TTL: 64, Proto: wire.ProtoUDP, Src: n.cfg.Addr.As4(), Dst: to.As4()}
		ip.Encode(b[wire.EthernetLen:])
		wire.IPv4(b[wire.EthernetLen:]).UpdateChecksum()
		sum = wire.PseudoSum4(ip.Src, ip.Dst, wire.ProtoUDP, size)
	} else {
		eth.EtherType, at = wire.EtherTypeIPv6, l4
		ip := wire.IPv6Fields{TrafficClass: tos, PayloadLen: uint16(size), NextHeader: wire.ProtoUDP, HopLimit: 64, Src: n.cfg.Addr.As16(), Dst: to.As16()}
		ip.Encode(b[wire.EthernetLen:])
		sum = wire.PseudoSum6(ip.Src, ip.Dst, wire.ProtoUDP, size)
	}
	eth.Encode(b[:])
	udp.Encode(b[at:])
	copy(b[at+wire.UDPLen:], payload)
	wire.UpdateUDPChecksum(sum, b[at:at+size])
	s.count.DatagramsSent++
	if !n.sendLocal(now, b[:at+size]) {
		return fmt.Errorf("nic %s: no chunk is free for a datagram", n.cfg.Name)
	}
	return nil
}

// datagram keeps a datagram for our port. body is the UDP datagram, sum that
// of its pseudo header.
func (n *NIC) datagram(now frame.Time, r frame.Ref, from netip.Addr, sum uint64, body []byte) {
	s, udp := n.stack, wire.UDP(body)
	size := int(udp.Length())
	switch {
	case udp.DstPort() != s.cfg.Port || size > len(body) || size < wire.UDPLen || size > wire.UDPLen+MaxDatagram:
		n.drop(r, frame.LocalUnhandled)
		return
	case udp.Checksum() != 0 && wire.SegmentChecksum(sum, body[:size]) != 0:
		n.drop(r, frame.LocalUnhandled)
		return
	case s.len == inboxLen:
		n.drop(r, frame.QueueTail)
		return
	}
	d := &s.inbox[(s.head+s.len)%inboxLen]
	s.len++
	d.From, d.Port = from, udp.SrcPort()
	d.Len = copy(d.Data[:], body[wire.UDPLen:size])
	s.count.DatagramsReceived++
	n.pool.Free(r)
}

// TakeDatagram moves the oldest datagram to d and reports whether there was
// one.
func (n *NIC) TakeDatagram(d *Datagram) bool {
	s := n.stack
	if s == nil || s.len == 0 {
		return false
	}
	*d = s.inbox[s.head]
	s.head = (s.head + 1) % inboxLen
	s.len--
	return true
}
