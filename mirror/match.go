package mirror

import (
	"net/netip"

	"gswitch/wire"
)

// Match is a rule in documents.
type Match struct {
	Name     string       `yaml:"name" need:"yes" doc:"Name, unique in the session."`
	Headers  string       `yaml:"headers" enum:"both,outer,inner" default:"both" doc:"Which headers of a packet in a tunnel it is about."`
	Protocol string       `yaml:"protocol" enum:"any,tcp,udp,icmp" default:"any" doc:"IP protocol."`
	Flags    []string     `yaml:"tcp_flags" enum:"fin,syn,rst,psh,ack,urg" doc:"TCP flags of which one must be set."`
	Src      netip.Prefix `yaml:"src" doc:"Source network, IPv4."`
	Dst      netip.Prefix `yaml:"dst" doc:"Destination network, IPv4."`
	SrcPort  int          `yaml:"src_port" range:"1,65535" doc:"Source port."`
	DstPort  int          `yaml:"dst_port" range:"1,65535" doc:"Destination port."`
	DSCP     int          `yaml:"dscp_bits" range:"0,63" doc:"Bits of the DSCP of which one must be set."`
	Sample   int          `yaml:"sample" range:"0,16" doc:"One in 2^sample packets, by the identification. All if left out."`
	Opcode   *int         `yaml:"opcode" range:"0,255" doc:"Operation of RoCEv2."`
	NAK      bool         `yaml:"nak" doc:"true: NAK of RoCEv2."`
	Control  bool         `yaml:"mac_control" doc:"true: MAC control frames, such as pauses. It goes with nothing else."`
}

var (
	flags  = map[string]uint8{"fin": wire.TCPFin, "syn": wire.TCPSyn, "rst": wire.TCPRst, "psh": wire.TCPPsh, "ack": wire.TCPAck, "urg": wire.TCPUrg}
	protos = map[string]uint8{"tcp": wire.ProtoTCP, "udp": wire.ProtoUDP, "icmp": wire.ProtoICMP}
	views  = map[string]View{"both": Both, "outer": Outer, "inner": Inner}
)

// Rule returns what a classifier is made of.
func (m *Match) Rule() Rule {
	r := Rule{Name: m.Name, View: views[m.Headers], Proto: protos[m.Protocol], Src: m.Src, Dst: m.Dst, SrcPort: uint16(m.SrcPort), DstPort: uint16(m.DstPort),
		DSCP: uint8(m.DSCP), SampleBits: uint8(m.Sample), NAK: m.NAK, MACControl: m.Control}
	for _, f := range m.Flags {
		r.TCPFlags |= flags[f]
	}
	if m.Opcode != nil {
		r.HasOpcode, r.Opcode = true, uint8(*m.Opcode)
	}
	return r
}
