package config

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Rate is in bits per second. Zero is unlimited.
type Rate uint64

// Size is in bytes.
type Size uint64

// Duration is in nanoseconds.
type Duration int64

// Spans, for documents that a program writes.
const (
	Nanosecond  Duration = 1
	Microsecond          = 1000 * Nanosecond
	Millisecond          = 1000 * Microsecond
	Second               = 1000 * Millisecond
)

// Rates and sizes, for documents that a program writes.
const (
	Kbps Rate = 1_000
	Mbps      = 1_000 * Kbps
	Gbps      = 1_000 * Mbps

	KB  Size = 1_000
	MB       = 1_000 * KB
	KiB Size = 1 << 10
	MiB      = 1 << 20
)

type unit struct {
	name   string
	factor uint64
}

// The first unit of a factor is the one that is written.
var (
	rateUnits = []unit{
		{"Tbps", 1e12}, {"Gbps", 1e9}, {"Mbps", 1e6}, {"kbps", 1e3}, {"bps", 1},
		{"Tbit", 1e12}, {"Gbit", 1e9}, {"Mbit", 1e6}, {"kbit", 1e3}, {"bit", 1},
		{"Tbit/s", 1e12}, {"Gbit/s", 1e9}, {"Mbit/s", 1e6}, {"kbit/s", 1e3}, {"bit/s", 1},
		{"Tb/s", 1e12}, {"Gb/s", 1e9}, {"Mb/s", 1e6}, {"kb/s", 1e3}, {"b/s", 1},
		{"Kbps", 1e3}, {"Kbit", 1e3}, {"Kbit/s", 1e3}, {"Kb/s", 1e3},
	}
	sizeUnits = []unit{
		{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
		{"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1}, {"KB", 1e3},
	}
	durationUnits = []unit{
		{"h", 3600e9}, {"min", 60e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}, {"µs", 1e3},
	}
)

// parseQuantity reads a decimal number with one of units behind it and
// returns it in the base unit. The number may have a fraction as long as the
// result is whole.
func parseQuantity(text, what, examples string, units []unit, limit uint64) (uint64, error) {
	bad := func(why string) error {
		return fmt.Errorf("%q is not a %s: %s; write %s", text, what, why, examples)
	}
	i := 0
	for i < len(text) && (text[i] >= '0' && text[i] <= '9' || text[i] == '.') {
		i++
	}
	number, suffix := text[:i], strings.TrimLeft(text[i:], " ")
	if number == "" || len(number) > 24 || strings.Count(number, ".") > 1 || strings.HasPrefix(number, ".") || strings.HasSuffix(number, ".") {
		return 0, bad("it must begin with a number")
	}
	if suffix == "" {
		return 0, bad("the unit is missing")
	}
	for _, u := range units {
		if u.name != suffix {
			continue
		}
		r, _ := new(big.Rat).SetString(number)
		r.Mul(r, new(big.Rat).SetInt(new(big.Int).SetUint64(u.factor)))
		if !r.IsInt() {
			return 0, bad("it is finer than one " + units[smallest(units)].name)
		}
		if !r.Num().IsUint64() || r.Num().Uint64() > limit {
			return 0, bad("it is too large")
		}
		return r.Num().Uint64(), nil
	}
	names := make([]string, len(units))
	for i, u := range units {
		names[i] = u.name
	}
	why := fmt.Sprintf("unknown unit %q", suffix)
	if n := Nearest(suffix, names); n != "" {
		why += fmt.Sprintf(", did you mean %q?", n)
	}
	return 0, bad(why)
}

func smallest(units []unit) int {
	for i, u := range units {
		if u.factor == 1 {
			return i
		}
	}
	return 0
}

// formatQuantity writes v in the largest unit that gives a number without
// fraction.
func formatQuantity(v uint64, units []unit) string {
	for _, u := range units {
		if v != 0 && v%u.factor == 0 {
			return strconv.FormatUint(v/u.factor, 10) + u.name
		}
	}
	return "0" + units[smallest(units)].name
}

// maxRate is the fastest link that can be asked for.
const maxRate = 100e12

func (r *Rate) UnmarshalText(text []byte) error {
	if string(text) == "unlimited" {
		*r = 0
		return nil
	}
	v, err := parseQuantity(string(text), "rate", "10Gbps, 100Mbit or unlimited", rateUnits, maxRate)
	if err == nil && v == 0 {
		return fmt.Errorf("%q is not a rate: nothing would ever leave; write unlimited for a link without emulated speed", text)
	}
	*r = Rate(v)
	return err
}

func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

func (r Rate) String() string {
	if r == 0 {
		return "unlimited"
	}
	return formatQuantity(uint64(r), rateUnits)
}

func (s *Size) UnmarshalText(text []byte) error {
	v, err := parseQuantity(string(text), "size", "64KiB, 32MB or 1500B", sizeUnits, 1<<50)
	*s = Size(v)
	return err
}

func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
func (s Size) String() string               { return formatQuantity(uint64(s), sizeUnits) }

func (d *Duration) UnmarshalText(text []byte) error {
	v, err := parseQuantity(string(text), "duration", "1us, 200ms or 5s", durationUnits, math.MaxInt64/4)
	*d = Duration(v)
	return err
}

func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

func (d Duration) String() string {
	if d < 0 {
		return "-" + Duration(-d).String()
	}
	if d%Second == 0 && d != 0 {
		return strconv.FormatInt(int64(d/Second), 10) + "s"
	}
	return formatQuantity(uint64(d), durationUnits[2:])
}

// Headroom is auto (zero) or a size.
type Headroom Size

func (h *Headroom) UnmarshalText(text []byte) error {
	if string(text) == "auto" {
		*h = 0
		return nil
	}
	var s Size
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
	return Size(h).MarshalText()
}

// BaseRTT is AutoRTT or a duration.
type BaseRTT Duration

// AutoRTT says that the round trip is to be measured.
const AutoRTT BaseRTT = -1

func (b *BaseRTT) UnmarshalText(text []byte) error {
	if string(text) == "auto" {
		*b = AutoRTT
		return nil
	}
	var d Duration
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
	return Duration(b).String()
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
