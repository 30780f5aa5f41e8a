package mirror

import (
	"fmt"
	"net/netip"

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

	Src, Dst netip.Prefix // networks of IPv4
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
	case r.Src.IsValid() && !r.Src.Addr().Is4() || r.Dst.IsValid() && !r.Dst.Addr().Is4():
		return fmt.Errorf("rule %s: networks %v and %v: only those of IPv4 are looked at", r.Name, r.Src, r.Dst)
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
