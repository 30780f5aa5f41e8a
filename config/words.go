package config

import (
	"encoding/hex"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"gswitch/units"
)

// Headroom is auto (zero) or a size.
type Headroom units.Size

func (h *Headroom) UnmarshalText(text []byte) error {
	if string(text) == "auto" {
		*h = 0
		return nil
	}
	var s units.Size
	if err := s.UnmarshalText(text); err != nil {
		return fmt.Errorf("%w, or auto", err)
	}
	*h = Headroom(s)
	return nil
}

func (h Headroom) MarshalText() ([]byte, error) {
	if h == 0 {
		return []byte("auto"), nil
	}
	return units.Size(h).MarshalText()
}

// BaseRTT is AutoRTT or a duration.
type BaseRTT units.Duration

// AutoRTT says that the round trip is to be measured.
const AutoRTT BaseRTT = -1

func (b *BaseRTT) UnmarshalText(text []byte) error {
	if string(text) == "auto" {
		*b = AutoRTT
		return nil
	}
	var d units.Duration
	if err := d.UnmarshalText(text); err != nil {
		return fmt.Errorf("%w, or auto", err)
	}
	*b = BaseRTT(d)
	return nil
}

func (b BaseRTT) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

func (b BaseRTT) String() string {
	if b == AutoRTT {
		return "auto"
	}
	return units.Duration(b).String()
}

// MAC is an Ethernet address.
type MAC [6]byte

// ParseMAC reads an address such as 02:00:00:00:00:01.
func ParseMAC(s string) (MAC, error) {
	var m MAC
	err := m.UnmarshalText([]byte(s))
	return m, err
}

func (m *MAC) UnmarshalText(text []byte) error {
	hw, err := net.ParseMAC(string(text))
	if err != nil || len(hw) != len(m) {
		return fmt.Errorf("%q is not a MAC address; write 02:00:00:00:00:01", text)
	}
	copy(m[:], hw)
	return nil
}

func (m MAC) MarshalText() ([]byte, error) { return []byte(m.String()), nil }
func (m MAC) String() string               { return net.HardwareAddr(m[:]).String() }

// Multicast reports whether m is a group address.
func (m MAC) Multicast() bool { return m[0]&1 != 0 }

// EtherType is a protocol number above Ethernet. Zero matches any.
type EtherType uint16

var etherTypes = map[string]EtherType{"ipv4": 0x0800, "arp": 0x0806, "ipv6": 0x86dd}

func (e *EtherType) UnmarshalText(text []byte) error {
	if v, ok := etherTypes[string(text)]; ok {
		*e = v
		return nil
	}
	v, err := strconv.ParseUint(string(text), 0, 16)
	if err != nil || v < 0x600 {
		return fmt.Errorf("%q is not an EtherType; write a number from 0x0600 to 0xffff, ipv4, ipv6 or arp", text)
	}
	*e = EtherType(v)
	return nil
}

func (e EtherType) MarshalText() ([]byte, error) {
	for name, v := range etherTypes {
		if v == e {
			return []byte(name), nil
		}
	}
	return []byte("0x" + hex.EncodeToString([]byte{byte(e >> 8), byte(e)})), nil
}

// Protocol is an IP protocol number. Zero matches any.
type Protocol uint8

var protocols = map[string]Protocol{"icmp": 1, "igmp": 2, "ipip": 4, "tcp": 6, "udp": 17, "gre": 47, "icmpv6": 58, "ospf": 89}

func (p *Protocol) UnmarshalText(text []byte) error {
	if v, ok := protocols[string(text)]; ok {
		*p = v
		return nil
	}
	v, err := strconv.ParseUint(string(text), 10, 8)
	if err != nil || v == 0 {
		return fmt.Errorf("%q is not an IP protocol; write a number from 1 to 255, tcp, udp, icmp, icmpv6, igmp, gre, ipip or ospf", text)
	}
	*p = Protocol(v)
	return nil
}

func (p Protocol) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

func (p Protocol) String() string {
	for name, v := range protocols {
		if v == p {
			return name
		}
	}
	return strconv.Itoa(int(p))
}

// PortRange is a range of transport ports. The zero value matches any.
type PortRange struct{ Lo, Hi uint16 }

func (r *PortRange) UnmarshalText(text []byte) error {
	lo, hi, two := strings.Cut(string(text), "-")
	if !two {
		hi = lo
	}
	l, err1 := strconv.ParseUint(lo, 10, 16)
	h, err2 := strconv.ParseUint(hi, 10, 16)
	if err1 != nil || err2 != nil || l > h || h == 0 {
		return fmt.Errorf("%q is not a range of ports; write 80 or 1024-65535", text)
	}
	*r = PortRange{uint16(l), uint16(h)}
	return nil
}

func (r PortRange) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

func (r PortRange) String() string {
	if r.Lo == r.Hi {
		return strconv.Itoa(int(r.Lo))
	}
	return fmt.Sprintf("%d-%d", r.Lo, r.Hi)
}

// VLANs is a range of VLAN IDs, 1 to 4094.
type VLANs struct{ Lo, Hi uint16 }

func (r *VLANs) UnmarshalText(text []byte) error {
	lo, hi, two := strings.Cut(string(text), "-")
	if !two {
		hi = lo
	}
	l, err1 := strconv.ParseUint(lo, 10, 16)
	h, err2 := strconv.ParseUint(hi, 10, 16)
	if err1 != nil || err2 != nil || l > h || l < 1 || h > 4094 {
		return fmt.Errorf("%q is not a VLAN of 1 to 4094, nor a range of them; write 10 or 10-20", text)
	}
	*r = VLANs{uint16(l), uint16(h)}
	return nil
}

func (r VLANs) MarshalText() ([]byte, error) { return []byte(PortRange(r).String()), nil }

// TCPFlags are flags of a TCP segment that must be set or unset. The zero
// value matches any.
type TCPFlags struct{ Value, Mask uint8 }

// In the order of their bits, from the lowest (RFC 9293 section 3.1).
var tcpFlagNames = []string{"fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"}

func (f *TCPFlags) UnmarshalText(text []byte) error {
	*f = TCPFlags{}
	for word := range strings.SplitSeq(string(text), ",") {
		name, unset := strings.CutPrefix(strings.TrimSpace(word), "!")
		bit := slices.Index(tcpFlagNames, name)
		if bit < 0 || f.Mask&(1<<bit) != 0 {
			return fmt.Errorf("%q is not a set of TCP flags; write syn,!ack, with %s", text, strings.Join(tcpFlagNames, ", "))
		}
		f.Mask |= 1 << bit
		if !unset {
			f.Value |= 1 << bit
		}
	}
	return nil
}

func (f TCPFlags) MarshalText() ([]byte, error) {
	var words []string
	for bit, name := range tcpFlagNames {
		switch {
		case f.Value&(1<<bit) != 0:
			words = append(words, name)
		case f.Mask&(1<<bit) != 0:
			words = append(words, "!"+name)
		}
	}
	return []byte(strings.Join(words, ",")), nil
}

// Schemas of the values, for editors.
func (Headroom) JSONSchema() map[string]any { return orAuto(units.Size(0).JSONSchema()) }
func (BaseRTT) JSONSchema() map[string]any  { return orAuto(units.Duration(0).JSONSchema()) }
func (MAC) JSONSchema() map[string]any {
	return pattern("string", `^([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$`)
}
func (PortRange) JSONSchema() map[string]any {
	return pattern([]string{"string", "integer"}, `^[0-9]+(-[0-9]+)?$`)
}

func pattern(kind any, expression string) map[string]any {
	return map[string]any{"type": kind, "pattern": expression}
}

// orAuto adds the word auto to what a pattern takes.
func orAuto(s map[string]any) map[string]any {
	s["pattern"] = "^(auto|" + strings.Trim(s["pattern"].(string), "^$") + ")$"
	return s
}
