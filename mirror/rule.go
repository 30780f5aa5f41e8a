package mirror

import (
	"fmt"
	"math/bits"

	"gswitch/frame"
	"gswitch/wire"
)

// MaxRules is how many rules a classifier has at most: a bit of a word for each.
const MaxRules = 64

// View says on which headers a rule looks.
type View uint8

const (
	Outer View = 1 << iota // the first IP header and what follows it
	Inner                  // the innermost IP header of a tunnelled packet
	Both  = Outer | Inner
)

// Rule is what makes a packet matter. The zero value of a field matches anything.
// Rules do not exclude each other: a packet that several match is copied once, and
// all of them are counted.
type Rule struct {
	Name string
	View View
	// Never wins over all others: the packet is not copied. It is for copies
	// themselves, which would multiply on their way.
	Never bool

	MACControl bool   // EtherType 0x8808: pauses
	Proto      uint8  // IP protocol
	GREProto   uint16 // protocol field of GRE; needs Proto 47 or leaves it 0
	TCPFlags   uint8  // any of these is set
	DSCP       uint8  // any of these bits is set
	SrcPort    uint16
	DstPort    uint16
	Opcode     uint8 // of RoCEv2, with HasOpcode
	HasOpcode  bool
	NAK        bool // AETH syndrome says NAK (IBTA 9.7.5.2.1)
	// The identification's low bits, with SampleBits of them: one of 2^SampleBits
	// packets, the same at every switch.
	SampleBits  uint8
	SampleValue uint16
}

// validate reports what is wrong with a rule.
func (r *Rule) validate() error {
	switch {
	case r.Name == "":
		return fmt.Errorf("a rule without a name")
	case r.View == 0 || r.View > Both:
		return fmt.Errorf("rule %s looks at no headers: say outer, inner or both", r.Name)
	case r.SampleBits > 16 || r.SampleBits > 0 && r.SampleValue>>r.SampleBits != 0:
		return fmt.Errorf("rule %s: of %d bits of the identification the value %d is not possible", r.Name, r.SampleBits, r.SampleValue)
	case r.MACControl && *r != Rule{Name: r.Name, View: r.View, Never: r.Never, MACControl: true}:
		return fmt.Errorf("rule %s: MAC control frames have no IP header to look at", r.Name)
	}
	return nil
}

// DebugDSCP is the bit of the DSCP by which hosts and probes ask for a trace: the
// lowest one, of the pools for local use (RFC 2474 section 6).
const DebugDSCP = 1

// Default are Everflow's rules (its section 3.2 and table 1): a packet of every TCP
// connection, what hosts marked, one of 2^sample of all, BGP, RoCEv2's NAKs and
// congestion notifications, and pauses; each on outer and on inner headers, so that
// a packet is traced on both sides of a load balancer. gre is the protocol of
// copies.
func Default(sample uint8, gre uint16) []Rule {
	return []Rule{
		{Name: "copies", View: Both, Never: true, Proto: wire.ProtoGRE, GREProto: gre},
		{Name: "syn", View: Both, Proto: wire.ProtoTCP, TCPFlags: wire.TCPSyn},
		{Name: "fin", View: Both, Proto: wire.ProtoTCP, TCPFlags: wire.TCPFin},
		{Name: "rst", View: Both, Proto: wire.ProtoTCP, TCPFlags: wire.TCPRst},
		{Name: "debug", View: Both, DSCP: DebugDSCP},
		{Name: "sample", View: Both, SampleBits: sample},
		{Name: "bgp-from", View: Both, Proto: wire.ProtoTCP, SrcPort: 179},
		{Name: "bgp-to", View: Both, Proto: wire.ProtoTCP, DstPort: 179},
		{Name: "nak", View: Both, NAK: true},
		{Name: "cnp", View: Both, Opcode: wire.RoCECongestionNotify, HasOpcode: true},
		{Name: "pause", View: Outer, MACControl: true},
	}
}

// Classifier finds all rules that match a packet by a few table look-ups: for each
// field a table from its value to the rules that it satisfies, as a word of bits;
// the rules that match are those in all of the words (Lakshman, Stiliadis,
// SIGCOMM 1998).
type Classifier struct {
	rules []Rule
	never uint64
	view  [2]uint64 // rules that look at the outer, and at the inner headers

	macControl uint64 // rules for these, and none else
	proto      [256]uint64
	flags      [256]uint64 // of TCP
	dscp       [64]uint64
	opcode     [256]uint64
	tcp        uint64 // rules that want TCP's flags
	roce       uint64 // that want an opcode or a NAK
	nak        uint64
	rest       uint64 // that ports, GRE's protocol or the identification decide
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
	set(&c.rest, r.SrcPort != 0 || r.DstPort != 0 || r.GREProto != 0 || r.SampleBits != 0)
	for v := range 256 {
		set(&c.proto[v], r.Proto == 0 || int(r.Proto) == v)
		set(&c.flags[v], r.TCPFlags == 0 || v&int(r.TCPFlags) != 0)
		set(&c.opcode[v], !r.HasOpcode && !r.NAK || r.HasOpcode && int(r.Opcode) == v || r.NAK && v == int(wire.RCAcknowledge))
	}
	for v := range c.dscp {
		set(&c.dscp[v], r.DSCP == 0 || v&int(r.DSCP) != 0)
	}
}

// Rules returns what the classifier was made of.
func (c *Classifier) Rules() []Rule { return c.rules }

// Match returns the rules that a parsed frame matches, a bit for each; 0 if the
// frame is one that is never copied. b is its first chunk.
func (c *Classifier) Match(m *frame.Meta, b []byte) uint64 {
	if m.Flags&frame.IsMACControl != 0 {
		return c.macControl
	}
	if m.Flags&(frame.HasIPv4|frame.HasIPv6) == 0 {
		return 0
	}
	var hit uint64
	if m.Flags&frame.HasIPv4 != 0 {
		hit = c.headers(c.view[0], m, b, int(m.L3), int(m.L4))
	}
	if m.Flags&(frame.HasTunnel|frame.InnerIPv6) == frame.HasTunnel {
		hit |= c.headers(c.view[1], m, b, int(m.L3Inner), int(m.L4Inner))
	}
	if hit&c.never != 0 {
		return 0
	}
	return hit
}

// headers are the rules among `view` that one IPv4 header and what follows match.
func (c *Classifier) headers(view uint64, m *frame.Meta, b []byte, l3, l4 int) uint64 {
	if len(b) < l3+wire.IPv4Len {
		return 0
	}
	ip := wire.IPv4(b[l3:])
	hit := view & c.proto[ip.Proto()] & c.dscp[ip.DSCP()]
	fragment := ip.FlagsOffset()&wire.IPv4OffsetMask != 0
	transport := l4 > 0 && !fragment && len(b) >= l4+8
	if hit&c.tcp != 0 {
		if transport && ip.Proto() == wire.ProtoTCP && len(b) >= l4+wire.TCPLen {
			hit &= c.flags[wire.TCP(b[l4:]).Flags()]
		} else {
			hit &^= c.tcp
		}
	}
	if hit&c.roce != 0 {
		hit &= ^c.roce | c.operation(ip, b, l4, transport)
	}
	for v := hit & c.rest; v != 0; v &= v - 1 {
		if r := &c.rules[bits.TrailingZeros64(v)]; !r.residual(ip, b, l4, transport) {
			hit &^= v & -v
		}
	}
	return hit
}

// operation are the rules for RoCEv2 that a packet matches.
func (c *Classifier) operation(ip wire.IPv4, b []byte, l4 int, transport bool) uint64 {
	bth := l4 + wire.UDPLen
	if !transport || ip.Proto() != wire.ProtoUDP || wire.UDP(b[l4:]).DstPort() != wire.RoCEv2Port || len(b) < bth+wire.BTHLen {
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

// residual tests what no table does.
func (r *Rule) residual(ip wire.IPv4, b []byte, l4 int, transport bool) bool {
	if r.SampleBits != 0 && ip.ID()&(1<<r.SampleBits-1) != r.SampleValue {
		return false
	}
	if r.GREProto != 0 && (!transport || ip.Proto() != wire.ProtoGRE || wire.GRE(b[l4:]).Protocol() != r.GREProto) {
		return false
	}
	if r.SrcPort != 0 || r.DstPort != 0 {
		if !transport || ip.Proto() != wire.ProtoTCP && ip.Proto() != wire.ProtoUDP {
			return false
		}
		t := wire.TCP(b[l4:]) // ports lie where UDP's do
		return (r.SrcPort == 0 || t.SrcPort() == r.SrcPort) && (r.DstPort == 0 || t.DstPort() == r.DstPort)
	}
	return true
}
