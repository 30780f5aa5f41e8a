package capture

// Filter is a compiled capture expression. It may be shared by several taps.
//
// The language is that of pcap-filter(7), as far as it goes here:
//
//	[src|dst] host ADDRESS           IPv4, IPv6 or ARP address; "host" may be left out after src and dst
//	[src|dst] net PREFIX             such as 10.1.0.0/16 or 2001:db8::/32
//	[tcp|udp] [src|dst] port N       TCP or UDP port; later fragments have none
//	[tcp|udp] [src|dst] portrange N-M
//	ether [src|dst|host] MAC         host: either
//	ether proto N                    EtherType after all VLAN tags
//	ether broadcast, ether multicast destination address; "ether" may be left out
//	proto N                          IPv4 protocol or last IPv6 next header
//	vlan [ID]                        any tag, or one with this VLAN
//	ip, ip6, arp, tcp, udp, icmp, icmp6, roce, pfc
//	less N, greater N                length on the link is at most, at least N
//	not E, E and E, E or E, (E)      also !, &&, ||
//
// As there, "and" and "or" have equal precedence and group from left to
// right. Unlike there, VLAN tags need not be asked for: everything looks
// behind them, and "vlan" moves nothing. In a tunnel only the outer headers
// count. A number is decimal, or hexadecimal with 0x.
type Filter struct {
	text  string
	terms []term // operands before their operators; the last one is the root
}

// String returns the expression.
func (f *Filter) String() string { return f.text }

// Match reports whether the frame with the bytes b, wire bytes long on the
// link, is selected. A header that is cut off matches nothing.
func (f *Filter) Match(b []byte, wire int) bool {
	var h headers
	h.dissect(b, wire)
	return f.eval(len(f.terms)-1, &h)
}

// Kinds of term.
const (
	opAnd = iota
	opOr
	opNot
	opHost // addresses, and whole or partial prefixes
	opPort
	opMAC
	opEtherType
	opProto
	opVLAN
	opPFC
	opRoCE
	opLess
	opGreater
	opBroadcast
	opMulticast
)

// Sides of an address or port.
const (
	srcSide = 1 << iota
	dstSide
)

// term is an operator or a primitive.
type term struct {
	op          uint8
	sides       uint8
	proto       uint8  // opPort: 0 is any
	left, right int    // operands of an operator
	lo, hi      uint64 // range of a number
	addr, mask  address
	v6          bool
}

// address is an IPv6 address, or an IPv4 or MAC address in the low bits.
type address struct{ hi, lo uint64 }

func (t *term) covers(a address) bool {
	return a.hi&t.mask.hi == t.addr.hi && a.lo&t.mask.lo == t.addr.lo
}

func (t *term) within(v uint64) bool { return t.lo <= v && v <= t.hi }

func (f *Filter) eval(i int, h *headers) bool {
	t := &f.terms[i]
	switch t.op {
	case opAnd:
		return f.eval(t.left, h) && f.eval(t.right, h)
	case opOr:
		return f.eval(t.left, h) || f.eval(t.right, h)
	case opNot:
		return !f.eval(t.left, h)
	case opHost:
		return h.hosts && h.v6 == t.v6 && (t.sides&srcSide != 0 && t.covers(h.src) || t.sides&dstSide != 0 && t.covers(h.dst))
	case opPort:
		return h.ports && (t.proto == 0 || t.proto == h.proto) &&
			(t.sides&srcSide != 0 && t.within(uint64(h.srcPort)) || t.sides&dstSide != 0 && t.within(uint64(h.dstPort)))
	case opMAC:
		return h.ether && (t.sides&srcSide != 0 && t.covers(h.srcMAC) || t.sides&dstSide != 0 && t.covers(h.dstMAC))
	case opEtherType:
		return h.ether && t.within(uint64(h.etherType))
	case opProto:
		return h.ip && t.within(uint64(h.proto))
	case opVLAN:
		return h.vlans > 0 && t.within(uint64(h.vid[0])) || h.vlans > 1 && t.within(uint64(h.vid[1]))
	case opPFC:
		return h.pfc
	case opRoCE:
		return h.roce
	case opLess, opGreater:
		return t.within(uint64(h.wire))
	case opBroadcast:
		return h.ether && h.dstMAC.lo == 1<<48-1
	case opMulticast:
		return h.ether && h.dstMAC.lo>>40&1 == 1
	}
	return false
}
