package wiretest

import (
	"fmt"
	"net/netip"
	"strings"

	"gswitch/frame"
	"gswitch/wire"
)

// Words says what a frame is, in a line that Read understands where it builds
// such frames:
//
//	h1 > h2, vlan 10 priority 3, 10.0.0.1 > 10.0.0.2 dscp 24, UDP 1000 > 2000, 1000 bytes
//
// hN is the station with the address MAC(N). What is as usual is left out: TTL
// 64, DSCP 0, no congestion. The bytes are those of the frame without FCS, of
// which b may hold only the first.
func Words(b []byte, bytes int) string {
	if len(b) < wire.EthernetLen {
		return fmt.Sprintf("cut off: % x", b)
	}
	e := wire.Ethernet(b)
	if e.EtherType() == wire.EtherTypeMACControl {
		return control(b)
	}
	s := []string{station(e.Dst(), e.Src())}
	if e.EtherType() == wire.EtherTypeTokenMark && len(b) >= wire.EthernetLen+wire.TokenMarkLen {
		s = append(s, fmt.Sprintf("escaped for %d hops, class %d", b[14], b[15]))
		b = append(append([]byte(nil), b[:12]...), b[16:]...)
	}
	m := ParseHead(b, bytes)
	if m.Reason != frame.Keep {
		return strings.Join(append(s, m.Reason.String()), ", ")
	}
	if m.Flags&frame.HasVLAN != 0 {
		s = append(s, fmt.Sprintf("vlan %d priority %d", wire.TCIVID(m.TCI), wire.TCIPCP(m.TCI)))
	}
	if h := wire.SlackAt(&m, b); h != nil {
		s = append(s, fmt.Sprintf("slack %d of %d ns", h.Left(), h.Initial()))
	}
	switch {
	case m.Flags&frame.IsARP != 0:
		return strings.Join(append(s, arpWords(wire.ARP(b[m.L3:]))), ", ")
	case m.Flags&(frame.HasIPv4|frame.HasIPv6) == 0:
		s = append(s, fmt.Sprintf("EtherType %#04x", m.EtherType))
	default:
		s = append(s, ipWords(&m, b))
		if m.L4Inner != 0 {
			s = append(s, segmentWords(&m, b)...)
		}
	}
	return strings.Join(append(s, fmt.Sprint(bytes, " bytes")), ", ")
}

// ParseHead is Parse for a frame of so many bytes, of which b may hold only the
// first.
func ParseHead(b []byte, bytes int) frame.Meta {
	a := frame.MustArena(1, 1<<16, 0)
	a.SetBytes(0, b)
	a.Meta(0).Wire = uint32(max(bytes, len(b)))
	wire.NewParser(wire.NewHasher(0, false)).Parse(a, []frame.Ref{0})
	return *a.Meta(0)
}

func station(dst, src wire.MAC) string { return name(src) + " > " + name(dst) }

func name(m wire.MAC) string {
	n := uint16(m[4])<<8 | uint16(m[5])
	switch {
	case m == wire.BroadcastMAC:
		return "all"
	case m == MAC(n):
		return fmt.Sprint("h", n)
	}
	return m.String()
}

// control says what a MAC control frame asks for.
func control(b []byte) string {
	c := wire.MACControl(b)
	if len(b) < wire.MinFrame {
		return "MAC control, cut off"
	}
	switch c.Opcode() {
	case wire.OpPFC:
		var s []string
		for k := range 8 {
			switch {
			case c.Enabled()>>k&1 == 0:
			case c.Quanta(k) == 0:
				s = append(s, fmt.Sprintf("class %d goes on", k))
			default:
				s = append(s, fmt.Sprintf("class %d waits %d quanta", k, c.Quanta(k)))
			}
		}
		return "PFC: " + strings.Join(s, ", ")
	case wire.OpPause:
		return fmt.Sprintf("pause: all wait %d quanta", c.PauseQuanta())
	case wire.OpToken:
		var t wire.TokenFields
		t.Decode(b)
		return fmt.Sprintf("token: %s, hops %d", flowWords(t.Flow), t.Hops)
	case wire.OpRequest:
		var r wire.RequestFields
		r.Decode(b)
		return fmt.Sprintf("request for tokens: %s, class %d, hops %d", flowWords(r.Flow), r.Class, r.Hops)
	}
	return fmt.Sprintf("MAC control, opcode %#04x", c.Opcode())
}

func flowWords(f wire.FlowID) string {
	src, dst := uint32(f.Addrs>>32), uint32(f.Addrs)
	kind := fmt.Sprint("protocol ", f.Proto)
	if f.Proto == wire.ProtoUDP {
		kind = "UDP"
	}
	return fmt.Sprintf("%v > %v, %s %d > %d", address(src), address(dst), kind, f.Ports>>16, f.Ports&0xffff)
}

func address(v uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
}

func arpWords(a wire.ARP) string {
	sender, target := netip.AddrFrom4(a.SenderIP()), netip.AddrFrom4(a.TargetIP())
	if a.Op() == wire.ARPRequest {
		return fmt.Sprintf("ARP: who has %v? tell %v", target, sender)
	}
	return fmt.Sprintf("ARP: %v is at %s", sender, name(a.SenderMAC()))
}

var ecn = [4]string{"", " ECT(1)", " ECT(0)", " CE"}

func ipWords(m *frame.Meta, b []byte) string {
	var s string
	var marks uint8
	if m.Flags&frame.HasIPv4 != 0 {
		h := wire.IPv4(b[m.L3:])
		s, marks = fmt.Sprintf("%v > %v", h.SrcAddr(), h.DstAddr()), h.ECN()
	} else {
		h := wire.IPv6(b[m.L3:])
		s, marks = fmt.Sprintf("%v > %v", h.SrcAddr(), h.DstAddr()), h.ECN()
	}
	if m.TTL != 64 {
		s += fmt.Sprint(" ttl ", m.TTL)
	}
	if m.DSCP != 0 {
		s += fmt.Sprint(" dscp ", m.DSCP)
	}
	return s + ecn[marks]
}

var roceNames = map[uint8]string{
	wire.RCSendFirst: "SEND first", wire.RCSendMiddle: "SEND middle", wire.RCSendLast: "SEND last", wire.RCSendOnly: "SEND only",
	wire.RCWriteFirst: "WRITE first", wire.RCWriteMiddle: "WRITE middle", wire.RCWriteLast: "WRITE last", wire.RCWriteOnly: "WRITE only",
	wire.RCReadRequest: "READ request", wire.RoCECongestionNotify: "CNP",
}

func segmentWords(m *frame.Meta, b []byte) []string {
	switch {
	case m.Flags&frame.HasRoCE != 0:
		s := fmt.Sprintf("UDP %d > RoCE", m.SrcPort)
		if m.Flags&frame.HasINT != 0 && (m.DstPort == wire.HPCCPort || m.DstPort == wire.HPCCGrowPort) {
			s += fmt.Sprintf(", %d telemetry records", b[m.INT]>>4)
		}
		w := transportWords(wire.BTH(b[wire.BTHOffset(m, b):]))
		if at := int(wire.BTHOffset(m, b)) + wire.BTHLen + wire.AETHLen; strings.HasPrefix(w, "NAK") && int(wire.UDP(b[m.L4Inner:]).Length()) >= at-int(m.L4Inner)+4+wire.ICRCLen && len(b) >= at+4 {
			w += fmt.Sprintf(", has psn %d", uint32(b[at])<<24|uint32(b[at+1])<<16|uint32(b[at+2])<<8|uint32(b[at+3])) // IRN
		}
		return []string{s, w}
	case m.Flags&frame.HasUDP != 0:
		return []string{fmt.Sprintf("UDP %d > %d", m.SrcPort, m.DstPort)}
	case m.Flags&frame.HasTCP != 0:
		return []string{fmt.Sprintf("TCP %d > %d", m.SrcPort, m.DstPort)}
	case m.Flags&frame.HasICMP != 0:
		return []string{icmpWords(wire.ICMP(b[m.L4Inner:]))}
	}
	return []string{fmt.Sprint("protocol ", m.ProtoIn)}
}

func transportWords(h wire.BTH) string {
	op := h.Opcode()
	if op != wire.RCAcknowledge {
		s, known := roceNames[op]
		if !known {
			s = fmt.Sprintf("opcode %#02x", op)
		}
		if op == wire.RoCECongestionNotify {
			return s + fmt.Sprint(" qp ", h.DestQP())
		}
		return s + fmt.Sprintf(" qp %d psn %d", h.DestQP(), h.PSN())
	}
	s := "ACK"
	if wire.AETH(h[wire.BTHLen:]).Syndrome()&wire.AETHNak == wire.AETHNak {
		s = "NAK"
	}
	if s += fmt.Sprintf(" qp %d psn %d", h.DestQP(), h.PSN()); h.BECN() {
		s += " echoes congestion"
	}
	return s
}

func icmpWords(h wire.ICMP) string {
	switch h.Type() {
	case wire.ICMPEcho:
		return fmt.Sprint("echo request ", h.EchoSeq())
	case wire.ICMPEchoReply:
		return fmt.Sprint("echo reply ", h.EchoSeq())
	case wire.ICMPTimeExceeded:
		return "time exceeded"
	case wire.ICMPDstUnreachable:
		return fmt.Sprint("unreachable, code ", h.Code())
	}
	return fmt.Sprintf("ICMP type %d code %d", h.Type(), h.Code())
}
