package hostnic

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"gswitch/frame"
	"gswitch/wire"
)

var be = binary.BigEndian

// address is an IP address as it stands in a header: what frames are compared
// with.
type address struct {
	hi, lo uint64
	v4     bool
}

func addressOf(a netip.Addr) address {
	if a.Is4() {
		b := a.As4()
		return address{lo: uint64(be.Uint32(b[:])), v4: true}
	}
	b := a.As16()
	return address{hi: be.Uint64(b[:8]), lo: be.Uint64(b[8:])}
}

// is reports whether the address at the front of b is a.
func (a *address) is(b []byte) bool {
	if a.v4 {
		return uint64(be.Uint32(b)) == a.lo
	}
	return be.Uint64(b) == a.hi && be.Uint64(b[8:]) == a.lo
}

// templateLen is the longest header of ours, up to the base transport header:
// Ethernet, IPv6, UDP, telemetry in which no switch has inserted anything, BTH.
const templateLen = wire.EthernetLen + wire.IPv6Len + wire.UDPLen + wire.LongestTelemetry + wire.BTHLen

// template is the header of a kind of frame, which each copies and patches.
type template struct {
	b    [templateLen]byte
	n    uint8 // bytes
	bth  uint8 // offset of the base transport header
	ipv4 bool
	sum  uint32 // of the words of the IPv4 header, without total length and identification
}

// makeTemplates writes the headers of a queue pair's data and reply frames.
func (n *NIC) makeTemplates(q *queuePair, cfg *QPConfig) {
	dst := cfg.RemoteMAC
	if dst.IsZero() {
		dst = n.cfg.Gateway
	}
	src := cfg.SrcPort
	if src == 0 { // the dynamic ports (RFC 6335), as RoCEv2 stacks use them for entropy
		src = 0xc000 | uint16(q.qpn*0x9e37>>2)&0x3fff
		if n.cfg.RandomNumbers { // what others must quote to be accepted
			src = 0xc000 | uint16(n.ports.Of(uint64(q.qpn)))&0x3fff
		}
	}
	from, mac, pkey := n.cfg.Addr, n.cfg.MAC, defaultPKey
	if f := cfg.Frames; f != nil {
		if f.Addr.IsValid() {
			from = f.Addr
			q.local = addressOf(from)
		}
		if !f.MAC.IsZero() {
			mac = f.MAC
		}
		if f.PKey != 0 {
			pkey = f.PKey
		}
	}
	eth := wire.EthernetFields{Dst: dst, Src: mac}
	tos := n.cfg.DSCP[q.lanes[inTurn].class]<<2 | wire.ECT0
	if q.noECN = cfg.NoECN; q.noECN {
		tos = n.cfg.DSCP[q.lanes[inTurn].class] << 2
	}
	data := headers(&q.data, eth, from, cfg.RemoteAddr, src, q.codec.Mode().Port(), tos)
	q.codec.Init(q.data.b[data:])
	q.data.setBTH(data+q.intLen, pkey)
	// Acknowledgements are not ECN-capable: their marks are not read.
	q.reply.setBTH(headers(&q.reply, eth, from, cfg.RemoteAddr, src, wire.RoCEv2Port, n.cfg.DSCP[q.ackClass]<<2), pkey)
}

// headers writes Ethernet, IP and UDP and returns their length. Lengths and
// identification are 0.
func headers(t *template, eth wire.EthernetFields, from, to netip.Addr, src, dport uint16, tos uint8) int {
	clear(t.b[:])
	eth.EtherType = wire.EtherTypeIPv4
	l3 := t.b[wire.EthernetLen:]
	var off int
	if t.ipv4 = to.Is4(); t.ipv4 {
		ip := wire.IPv4Fields{TOS: tos, TTL: 64, Proto: wire.ProtoUDP, FlagsOffset: wire.IPv4DontFragment, Src: from.As4(), Dst: to.As4()}
		off = wire.EthernetLen + ip.Encode(l3)
		t.sum = 0
		for i := 0; i < wire.IPv4Len; i += 2 {
			t.sum += uint32(be.Uint16(l3[i:]))
		}
	} else {
		eth.EtherType = wire.EtherTypeIPv6
		ip := wire.IPv6Fields{TrafficClass: tos, FlowLabel: uint32(src), NextHeader: wire.ProtoUDP, HopLimit: 64, Src: from.As16(), Dst: to.As16()}
		off = wire.EthernetLen + ip.Encode(l3)
	}
	eth.Encode(t.b[:])
	// No UDP checksum: the ICRC covers more (IBTA annex A17.3.1.2).
	udp := wire.UDPFields{SrcPort: src, DstPort: dport}
	return off + udp.Encode(t.b[off:])
}

// defaultPKey is the default partition (IBTA 10.9.1.2).
const defaultPKey uint16 = 0xffff

func (t *template) setBTH(off int, pkey uint16) {
	t.bth, t.n = uint8(off), uint8(off+wire.BTHLen)
	bth := wire.BTHFields{PKey: pkey}
	bth.Encode(t.b[off:])
}

func (t *template) setQP(remote uint32) {
	be.PutUint32(t.b[t.bth+4:], remote)
}

// stamp copies the header to b for a frame of wire bytes.
func (t *template) stamp(b []byte, bytes uint32, id uint16) {
	copy(b, t.b[:t.n])
	if !t.ipv4 {
		n := uint16(bytes - wire.EthernetLen - wire.IPv6Len)
		be.PutUint16(b[18:20], n)
		be.PutUint16(b[58:60], n)
		return
	}
	n := uint16(bytes - wire.EthernetLen)
	be.PutUint16(b[16:18], n)
	be.PutUint16(b[18:20], id)
	s := t.sum + uint32(n) + uint32(id)
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	be.PutUint16(b[24:26], ^uint16(s))
	be.PutUint16(b[38:40], n-wire.IPv4Len)
}

// dataWire returns the bytes of a data frame with the given payload on the
// wire.
func (n *NIC) dataWire(q *queuePair, payload uint32) uint32 {
	if s := n.cfg.Sizes.Data; s != 0 {
		return max(uint32(s+q.intLen)+payload, uint32(q.data.n))
	}
	return uint32(q.data.n) + payload + wire.RoCEPad(payload) + wire.ICRCLen
}

// payload returns the payload of a data frame from the length of its UDP
// datagram: the inverse of dataWire. head is where the payload begins, ok is
// false where the frame contradicts itself.
func (n *NIC) payload(m *frame.Meta, b []byte, bth, head int) (uint32, bool) {
	udp := int(m.L4)
	size := udp + int(wire.UDP(b[udp:]).Length()) // end of the datagram
	if s := n.cfg.Sizes.Data; s != 0 {
		telemetry := bth - udp - wire.UDPLen
		size -= s + telemetry + int(b[bth+8]&0x7f)
		return uint32(size), size >= 0
	}
	size -= head + wire.ICRCLen + int(wire.BTH(b[bth:]).PadCount())
	return uint32(size), size >= 0
}

// fits reports whether the frames of a queue pair fit into the chunks.
func (n *NIC) fits(q *queuePair, cfg *QPConfig) error {
	need := max(int(q.data.n), int(q.reply.n)+cnpLen+wire.ICRCLen)
	if !n.cfg.Virtual {
		need = max(need, int(n.dataWire(q, uint32(n.cfg.Payload))))
	}
	if cfg.Writes {
		need += wire.RETHLen
	}
	if need > n.pool.Room() {
		return fmt.Errorf("nic %s: frames of %d bytes do not fit into chunks with room for %d%s", n.cfg.Name, need, n.pool.Room(), n.lower(need))
	}
	return nil
}

// lower says which payload makes frames that fit, where those of need bytes do not.
func (n *NIC) lower(need int) string {
	most := (n.cfg.Payload + int(wire.RoCEPad(uint32(n.cfg.Payload))) - (need - n.pool.Room())) &^ 3
	if n.cfg.Virtual || most <= 0 {
		return "" // the payload takes no room, or is not to blame
	}
	return fmt.Sprintf(": lower the payload from %d to %d", n.cfg.Payload, most)
}
