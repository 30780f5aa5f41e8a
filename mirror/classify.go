package mirror

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"

	"gswitch/frame"
	"gswitch/wire"
)

// Classifier finds all rules that match a packet by a few table look-ups: for each
// field a table from its value to the rules that it satisfies, as a word of bits;
// the rules that match are those in all of the words (Lakshman, Stiliadis,
// SIGCOMM 1998). Fields of which few values are asked for are compared with each.
type Classifier struct {
	view [2]uint64 // rules that look at the outer, and at the inner headers
	tcp  uint64    // rules that want TCP's flags
	roce uint64    // that want an opcode or a NAK
	port uint64    // that want a port
	rest uint64    // that networks or GRE's protocol decide

	dscp    [64]uint64
	proto   [256]uint64
	outer   [256]uint64 // of proto those that look at the outer headers
	flags   [256]uint64 // of TCP
	samples []sample
	ports   []port
	wanted  uint64 // the low six bits of the ports that rules want, a bit for each value

	never      uint64
	nak        uint64
	macControl uint64      // rules for these, and none else
	opcode     [256]uint64 // of RoCEv2
	nets       []nets
	rules      []Rule
}

// sample is a sample of the identifications, and the rules that take it.
type sample struct {
	mask, value uint16
	others      uint64 // all rules but these
}

// port is a rule for ports; 0 is any.
type port struct {
	src, dst uint16
	bit      uint64
}

// nets are what a rule says of addresses and of GRE.
type nets struct {
	bit                        uint64
	src, srcMask, dst, dstMask uint32
	gre                        uint16
}

// NewClassifier compiles rules.
func NewClassifier(rules []Rule) (*Classifier, error) {
	if len(rules) > MaxRules {
		return nil, fmt.Errorf("%d rules: at most %d are possible", len(rules), MaxRules)
	}
	c := &Classifier{rules: rules}
	names := map[string]bool{}
	for i := range rules {
		r := &rules[i]
		if err := r.validate(); err != nil {
			return nil, err
		}
		if names[r.Name] {
			return nil, fmt.Errorf("two rules are named %s", r.Name)
		}
		names[r.Name] = true
		c.add(r, 1<<i)
	}
	return c, nil
}

func (c *Classifier) add(r *Rule, bit uint64) {
	set := func(word *uint64, on bool) {
		if on {
			*word |= bit
		}
	}
	set(&c.never, r.Never)
	if r.MACControl {
		c.macControl |= bit
		return
	}
	set(&c.view[0], r.View&Outer != 0)
	set(&c.view[1], r.View&Inner != 0)
	set(&c.tcp, r.TCPFlags != 0)
	set(&c.roce, r.HasOpcode || r.NAK)
	set(&c.nak, r.NAK)
	for v := range 256 {
		set(&c.proto[v], r.suits(uint8(v)))
		set(&c.outer[v], r.suits(uint8(v)) && r.View&Outer != 0)
		set(&c.flags[v], r.TCPFlags == 0 || v&int(r.TCPFlags) != 0)
		set(&c.opcode[v], !r.HasOpcode && !r.NAK || r.HasOpcode && int(r.Opcode) == v || r.NAK && v == int(wire.RCAcknowledge))
	}
	for v := range c.dscp {
		set(&c.dscp[v], r.DSCP == 0 || v&int(r.DSCP) != 0)
	}
	if r.SampleBits > 0 {
		c.samples = append(c.samples, sample{1<<r.SampleBits - 1, r.SampleValue, ^bit})
	}
	if r.SrcPort != 0 || r.DstPort != 0 {
		c.port |= bit
		c.ports = append(c.ports, port{r.SrcPort, r.DstPort, bit})
		for _, p := range []uint16{r.SrcPort, r.DstPort} {
			if p != 0 {
				c.wanted |= 1 << (p & 63)
			}
		}
	}
	if r.GREProto != 0 || r.Src.IsValid() || r.Dst.IsValid() {
		n := nets{bit: bit, gre: r.GREProto}
		n.src, n.srcMask = network(r.Src)
		n.dst, n.dstMask = network(r.Dst)
		c.rest |= bit
		c.nets = append(c.nets, n)
	}
}

// suits reports whether a packet of an IP protocol can match.
func (r *Rule) suits(proto uint8) bool {
	switch {
	case r.Proto != 0 && r.Proto != proto,
		r.TCPFlags != 0 && proto != wire.ProtoTCP,
		(r.HasOpcode || r.NAK) && proto != wire.ProtoUDP,
		r.GREProto != 0 && proto != wire.ProtoGRE,
		(r.SrcPort != 0 || r.DstPort != 0) && proto != wire.ProtoTCP && proto != wire.ProtoUDP:
		return false
	}
	return true
}

// network returns a prefix as an address and the bits of it that count.
func network(p netip.Prefix) (addr, mask uint32) {
	if !p.IsValid() {
		return 0, 0
	}
	a := p.Masked().Addr().As4()
	return binary.BigEndian.Uint32(a[:]), uint32(^uint64(0) << (32 - p.Bits()))
}

// Rules returns what the classifier was made of.
func (c *Classifier) Rules() []Rule { return c.rules }

// vector is how many frames MatchAll takes at most.
const vector = 64

// MatchAll is Match for a vector of at most 64 parsed frames: it writes what each of them
// matches to hits, and returns what any of them does. All frames go through one loop, so
// that the processor looks several up at once.
func (c *Classifier) MatchAll(a *frame.Arena, v []frame.Ref, hits *[vector]uint64) (any uint64) {
	const other = frame.HasTunnel | frame.IsMACControl | frame.IsFragment
	one := sample{others: ^uint64(0)}
	if len(c.samples) > 0 {
		one = c.samples[0]
	}
	seldom := c.roce | c.rest | c.never
	for i, r := range v[:min(len(v), vector)] {
		m, b := a.Meta(r), a.Bytes(r)
		if m.Flags&(frame.HasIPv4|other) != frame.HasIPv4 || m.Reason != frame.Keep {
			hit := c.Match(m, b)
			hits[i] = hit
			any |= hit
			continue
		}
		hit := c.outer[m.Proto] & c.dscp[m.DSCP&63]
		l3 := int(m.L3)
		if hit == 0 || len(b) < l3+wire.IPv4Len {
			hits[i] = 0
			continue
		}
		id := binary.BigEndian.Uint16(b[l3+4:])
		if id == 0 && len(c.samples) > 0 {
			id = identity(wire.IPv4(b[l3:]), b, int(m.L4))
		}
		if id&one.mask != one.value {
			hit &= one.others
		}
		if len(c.samples) > 1 {
			hit = c.sampled(hit, id)
		}
		if hit&c.port != 0 {
			// Most packets have no port that a rule wants, nor one that looks like it.
			if (c.wanted>>(m.SrcPort&63)|c.wanted>>(m.DstPort&63))&1 == 0 {
				hit &^= c.port
			} else {
				hit = c.byPort(hit, m.SrcPort, m.DstPort)
			}
		}
		if at := int(m.L4) + 13; hit&c.tcp != 0 {
			if at < len(b) {
				hit &= c.flags[b[at]]
			} else {
				hit = 0
			}
		}
		if hit&seldom != 0 {
			hit = c.kept(c.seldom(hit, wire.IPv4(b[l3:]), b, int(m.L4), m.L4 > 0))
		}
		hits[i] = hit
		any |= hit
	}
	return any
}

// sampled takes out the rules of samples that an identification is not of.
func (c *Classifier) sampled(hit uint64, id uint16) uint64 {
	for i := range c.samples {
		if s := &c.samples[i]; id&s.mask != s.value {
			hit &= s.others
		}
	}
	return hit
}

// byPort takes out the rules that want other ports.
func (c *Classifier) byPort(hit uint64, src, dst uint16) uint64 {
	for i := range c.ports {
		if p := &c.ports[i]; p.src != 0 && p.src != src || p.dst != 0 && p.dst != dst {
			hit &^= p.bit
		}
	}
	return hit
}

// kept is nothing where a rule says never.
func (c *Classifier) kept(hit uint64) uint64 {
	if hit&c.never != 0 {
		return 0
	}
	return hit
}

// Match returns the rules that a parsed frame matches, a bit for each; 0 if the
// frame is one that is never copied, or one that contradicts itself. b is its first
// chunk.
func (c *Classifier) Match(m *frame.Meta, b []byte) uint64 {
	switch {
	case m.Reason != frame.Keep:
		return 0
	case m.Flags&frame.IsMACControl != 0:
		return c.kept(c.macControl)
	}
	var hit uint64
	if m.Flags&frame.HasIPv4 != 0 {
		hit = c.headers(c.view[0], b, int(m.L3), int(m.L4))
	}
	if m.Flags&(frame.HasTunnel|frame.InnerIPv6) == frame.HasTunnel {
		hit |= c.headers(c.view[1], b, int(m.L3Inner), int(m.L4Inner))
	}
	return c.kept(hit)
}

// headers are the rules among `view` that one IPv4 header and what follows match.
func (c *Classifier) headers(view uint64, b []byte, l3, l4 int) uint64 {
	if len(b) < l3+wire.IPv4Len {
		return 0
	}
	ip := wire.IPv4(b[l3:])
	transport := l4 > 0 && ip.FlagsOffset()&wire.IPv4OffsetMask == 0
	id := ip.ID()
	if id == 0 && transport && len(c.samples) > 0 {
		id = identity(ip, b, l4)
	}
	hit := c.sampled(view&c.proto[ip.Proto()]&c.dscp[ip.DSCP()], id)
	switch {
	case !transport || len(b) < l4+wire.UDPLen:
		hit &^= c.port
	case hit&c.port != 0:
		hit = c.byPort(hit, wire.UDP(b[l4:]).SrcPort(), wire.UDP(b[l4:]).DstPort())
	}
	if hit&c.tcp != 0 {
		if transport && len(b) >= l4+wire.TCPLen {
			hit &= c.flags[wire.TCP(b[l4:]).Flags()]
		} else {
			hit &^= c.tcp
		}
	}
	return c.seldom(hit, ip, b, l4, transport)
}

// seldom judges what few rules ask for: RoCEv2's operations, networks, GRE.
func (c *Classifier) seldom(hit uint64, ip wire.IPv4, b []byte, l4 int, transport bool) uint64 {
	if hit&c.roce != 0 {
		hit &= ^c.roce | c.operation(ip, b, l4, transport)
	}
	if hit&c.rest == 0 {
		return hit
	}
	addrs := binary.BigEndian.Uint64(ip[12:])
	for i := range c.nets {
		n := &c.nets[i]
		switch {
		case uint32(addrs>>32)&n.srcMask != n.src, uint32(addrs)&n.dstMask != n.dst,
			n.gre != 0 && (!transport || len(b) < l4+wire.GRELen || wire.GRE(b[l4:]).Protocol() != n.gre):
			hit &^= n.bit
		}
	}
	return hit
}

// operation are the rules for RoCEv2 that a packet matches.
func (c *Classifier) operation(ip wire.IPv4, b []byte, l4 int, transport bool) uint64 {
	bth := l4 + wire.UDPLen
	if !transport || ip.Proto() != wire.ProtoUDP || len(b) < bth+wire.BTHLen || wire.UDP(b[l4:]).DstPort() != wire.RoCEv2Port {
		return 0
	}
	hit := c.opcode[b[bth]]
	// AETH: the two bits above the low five say what kind of answer it is, and
	// both are set in a NAK.
	if len(b) < bth+wire.BTHLen+1 || b[bth+wire.BTHLen]&0x60 != 0x60 {
		hit &^= c.nak
	}
	return hit & c.roce
}

// Names are the names of the rules in a word of bits.
func (c *Classifier) Names(hit uint64) (v []string) {
	for ; hit != 0; hit &= hit - 1 {
		v = append(v, c.rules[bits.TrailingZeros64(hit)].Name)
	}
	return v
}
