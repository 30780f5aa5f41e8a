package wire

import (
	"fmt"
	"net"

	"gswitch/frame"
)

// EthernetLen is the length of an Ethernet header without tags, in bytes.
const EthernetLen = 14

// MinFrame is the shortest Ethernet frame without its FCS (IEEE 802.3 4A.4.2:
// minFrameSize 64 bytes, of which 4 are the FCS).
const MinFrame = 60

// EtherTypes that the switch knows (IEEE 802 registry).
const (
	EtherTypeIPv4       uint16 = 0x0800
	EtherTypeARP        uint16 = 0x0806
	EtherTypeTEB        uint16 = 0x6558 // Ethernet inside GRE (RFC 1701)
	EtherTypeVLAN       uint16 = 0x8100 // 802.1Q C-tag
	EtherTypeIPv6       uint16 = 0x86dd
	EtherTypeMACControl uint16 = 0x8808
	EtherTypeQinQ       uint16 = 0x88a8 // 802.1ad S-tag
	EtherTypeERSPAN2    uint16 = 0x88be // GRE protocol of ERSPAN I and II
	EtherTypeERSPAN3    uint16 = 0x22eb // GRE protocol of ERSPAN III
	EtherTypeLLDP       uint16 = 0x88cc
)

// MAC is an Ethernet address.
type MAC [6]byte

// BroadcastMAC is ff:ff:ff:ff:ff:ff.
var BroadcastMAC = MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// MACFromUint64 returns the address in the low 48 bits of v.
func MACFromUint64(v uint64) MAC {
	return MAC{byte(v >> 40), byte(v >> 32), byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}
}

// Uint64 returns the address as the low 48 bits of a number: a table key.
func (m MAC) Uint64() uint64 {
	return uint64(m[0])<<40 | uint64(m[1])<<32 | uint64(m[2])<<24 | uint64(m[3])<<16 | uint64(m[4])<<8 | uint64(m[5])
}

// IsMulticast reports whether the group bit is set (broadcast included).
func (m MAC) IsMulticast() bool { return m[0]&1 != 0 }

// IsZero reports whether all bytes are zero.
func (m MAC) IsZero() bool { return m == MAC{} }

// String returns the address as 02:00:00:00:00:01.
func (m MAC) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

// ParseMAC reads an address in any notation that net.ParseMAC takes.
func ParseMAC(s string) (MAC, error) {
	hw, err := net.ParseMAC(s)
	if err != nil || len(hw) != 6 {
		return MAC{}, fmt.Errorf("%q is not a MAC address such as 02:00:00:00:00:01", s)
	}
	return MAC(hw), nil
}

// MarshalText and UnmarshalText let an address stand in JSON and YAML.
func (m MAC) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

func (m *MAC) UnmarshalText(b []byte) (err error) {
	*m, err = ParseMAC(string(b))
	return err
}

// ReservedMulticast reports whether dst (as from Ethernet.DstUint64) is one of
// 01-80-C2-00-00-00 to -0F, which no bridge forwards (IEEE 802.1Q 8.6.3).
func ReservedMulticast(dst uint64) bool { return dst&^0xf == 0x0180c2000000 }

// Ethernet is a view of an Ethernet header.
type Ethernet []byte

func (e Ethernet) Dst() MAC              { return MAC(e[0:6]) }
func (e Ethernet) Src() MAC              { return MAC(e[6:12]) }
func (e Ethernet) DstUint64() uint64     { return be.Uint64(e[0:8]) >> 16 }
func (e Ethernet) SrcUint64() uint64     { return be.Uint64(e[6:14]) >> 16 }
func (e Ethernet) EtherType() uint16     { return be.Uint16(e[12:14]) } // TPID if tagged
func (e Ethernet) SetDst(m MAC)          { copy(e[0:6], m[:]) }
func (e Ethernet) SetSrc(m MAC)          { copy(e[6:12], m[:]) }
func (e Ethernet) SetEtherType(t uint16) { be.PutUint16(e[12:14], t) }
func (e Ethernet) Payload() []byte       { return e[EthernetLen:] }

// EthernetFields is an Ethernet header. EtherType below 0x600 is a length.
type EthernetFields struct {
	Dst, Src  MAC
	EtherType uint16
}

func (f *EthernetFields) Encode(b []byte) int {
	if len(b) < EthernetLen {
		return 0
	}
	e := Ethernet(b)
	e.SetDst(f.Dst)
	e.SetSrc(f.Src)
	e.SetEtherType(f.EtherType)
	return EthernetLen
}

func (f *EthernetFields) Decode(b []byte) (int, frame.Reason) {
	if len(b) < EthernetLen {
		return 0, frame.ParseShortEthernet
	}
	e := Ethernet(b)
	*f = EthernetFields{e.Dst(), e.Src(), e.EtherType()}
	return EthernetLen, frame.Keep
}
