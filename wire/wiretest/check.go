package wiretest

import (
	"fmt"
	"net/netip"

	"gswitch/frame"
	"gswitch/wire"
)

// TB is the part of testing.TB that Check needs.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
}

// Checker looks at one thing of a parsed frame and returns what is wrong with
// it, or "".
type Checker func(m *frame.Meta, b []byte) string

// Check parses b and reports a parse failure and what the checkers find.
func Check(t TB, b []byte, checks ...Checker) {
	t.Helper()
	m, why := Parse(b)
	if why != frame.Keep {
		t.Errorf("frame is not good: %v: % x", why, b)
		return
	}
	for _, c := range checks {
		if s := c(&m, b); s != "" {
			t.Errorf("%s: % x", s, b)
		}
	}
}

// Parse returns what the parser makes of b.
func Parse(b []byte) (frame.Meta, frame.Reason) {
	chunk := 256
	for chunk < len(b) {
		chunk *= 2
	}
	a := frame.MustArena(1, chunk, 0)
	a.SetBytes(0, b)
	wire.NewParser(wire.NewHasher(0, false)).Parse(a, []frame.Ref{0})
	return *a.Meta(0), a.Meta(0).Reason
}

func want[T comparable](what string, got, want T) string {
	if got == want {
		return ""
	}
	return fmt.Sprintf("%s is %v, want %v", what, got, want)
}

// MACs checks the Ethernet addresses.
func MACs(dst, src wire.MAC) Checker {
	return func(_ *frame.Meta, b []byte) string {
		e := wire.Ethernet(b)
		if s := want("destination MAC", e.Dst(), dst); s != "" {
			return s
		}
		return want("source MAC", e.Src(), src)
	}
}

// Tagged checks VLAN and priority of the outer tag.
func Tagged(vid uint16, pcp uint8) Checker {
	return func(m *frame.Meta, _ []byte) string {
		if m.Flags&frame.HasVLAN == 0 {
			return "no VLAN tag"
		}
		if s := want("VID", wire.TCIVID(m.TCI), vid); s != "" {
			return s
		}
		return want("PCP", wire.TCIPCP(m.TCI), pcp)
	}
}

// Untagged checks that there is no VLAN tag.
func Untagged() Checker {
	return func(m *frame.Meta, _ []byte) string { return want("tagged", m.Flags&frame.HasVLAN != 0, false) }
}

// Addrs checks the addresses of the outer IP header.
func Addrs(src, dst string) Checker {
	return func(m *frame.Meta, b []byte) string {
		var s, d netip.Addr
		switch {
		case m.Flags&frame.HasIPv4 != 0:
			s, d = wire.IPv4(b[m.L3:]).SrcAddr(), wire.IPv4(b[m.L3:]).DstAddr()
		case m.Flags&frame.HasIPv6 != 0:
			s, d = wire.IPv6(b[m.L3:]).SrcAddr(), wire.IPv6(b[m.L3:]).DstAddr()
		}
		if e := want("source address", s, netip.MustParseAddr(src)); e != "" {
			return e
		}
		return want("destination address", d, netip.MustParseAddr(dst))
	}
}

// HasTTL checks TTL or hop limit.
func HasTTL(v uint8) Checker {
	return func(m *frame.Meta, _ []byte) string { return want("TTL", m.TTL, v) }
}

// DSCP checks the DSCP of the outer IP header.
func DSCP(v uint8) Checker {
	return func(m *frame.Meta, _ []byte) string { return want("DSCP", m.DSCP, v) }
}

// ECN checks the ECN codepoint of the outer IP header.
func ECN(v uint8) Checker {
	return func(m *frame.Meta, b []byte) string {
		if m.Flags&frame.HasIPv6 != 0 {
			return want("ECN", wire.IPv6(b[m.L3:]).ECN(), v)
		}
		return want("ECN", wire.IPv4(b[m.L3:]).ECN(), v)
	}
}

// Ports checks the innermost transport ports.
func Ports(src, dst uint16) Checker {
	return func(m *frame.Meta, _ []byte) string {
		if s := want("source port", m.SrcPort, src); s != "" {
			return s
		}
		return want("destination port", m.DstPort, dst)
	}
}

// ICMPType checks type and code of an ICMP or ICMPv6 message.
func ICMPType(typ, code uint8) Checker {
	return func(m *frame.Meta, b []byte) string {
		if m.Flags&frame.HasICMP == 0 {
			return "not ICMP"
		}
		h := wire.ICMP(b[m.L4Inner:])
		return want("ICMP type, code", [2]uint8{h.Type(), h.Code()}, [2]uint8{typ, code})
	}
}

// Checksums checks the checksum of the innermost transport segment (that of
// the outer IPv4 header is part of parsing). The frame must be whole.
func Checksums() Checker {
	return func(m *frame.Meta, b []byte) string {
		if m.L4Inner == 0 {
			return ""
		}
		var pseudo uint64
		var seg []byte
		if m.Flags&frame.InnerIPv6 != 0 {
			h := wire.IPv6(b[m.L3Inner:])
			seg = b[m.L4Inner : int(m.L3Inner)+wire.IPv6Len+int(h.PayloadLen())]
			pseudo = wire.PseudoSum6(h.Src(), h.Dst(), m.ProtoIn, len(seg))
		} else {
			h := wire.IPv4(b[m.L3Inner:])
			seg = b[m.L4Inner : m.L3Inner+h.TotalLen()]
			if m.ProtoIn == wire.ProtoUDP && wire.UDP(seg).Checksum() == 0 {
				return ""
			}
			if m.ProtoIn != wire.ProtoICMP {
				pseudo = wire.PseudoSum4(h.Src(), h.Dst(), m.ProtoIn, len(seg))
			}
		}
		if m.Flags&(frame.HasTCP|frame.HasUDP|frame.HasICMP) == 0 {
			return ""
		}
		return want("checksum remainder", wire.SegmentChecksum(pseudo, seg), 0)
	}
}
