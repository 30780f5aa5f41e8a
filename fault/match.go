package fault

import (
	"encoding/binary"
	"net/netip"

	"gswitch/frame"
)

// FiveTuple names frames of IPv4 flows, with at most one VLAN tag, and a link tag
// (EtherType 0x88b6, eight bytes) before that. Fields that
// are zero match anything; ports are those of TCP and UDP.
type FiveTuple struct {
	Src, Dst         netip.Addr
	Proto            uint8
	SrcPort, DstPort uint16
}

// Match returns the function that Drop takes.
func (f FiveTuple) Match() func(b []byte, m *frame.Meta) bool {
	return func(b []byte, _ *frame.Meta) bool { return f.matches(b) }
}

func (f *FiveTuple) matches(b []byte) bool {
	be, l3 := binary.BigEndian, 14
	if len(b) >= 22 && be.Uint16(b[12:]) == 0x88b6 {
		b = b[8:]
	}
	if len(b) >= 18 && be.Uint16(b[12:]) == 0x8100 {
		l3 = 18
	}
	if len(b) < l3+20 || be.Uint16(b[l3-2:]) != 0x0800 {
		return false
	}
	ip := b[l3:]
	l4 := int(ip[0]&15) * 4
	port := func(at int, want uint16) bool {
		return want == 0 || (ip[9] == 6 || ip[9] == 17) && len(ip) >= l4+4 && be.Uint16(ip[l4+at:]) == want
	}
	addr := func(at int, want netip.Addr) bool {
		return !want.IsValid() || netip.AddrFrom4([4]byte(ip[at:at+4])) == want
	}
	return (f.Proto == 0 || ip[9] == f.Proto) && addr(12, f.Src) && addr(16, f.Dst) && port(0, f.SrcPort) && port(2, f.DstPort)
}
