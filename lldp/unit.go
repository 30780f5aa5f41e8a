package lldp

import (
	"encoding/binary"

	"gswitch/wire"
)

// Group is the address of frames to the nearest bridge, which none forwards
// (IEEE 802.1AB table 7-1).
var Group = wire.MAC{0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e}

// Kinds of an ID that this package writes for people: of a chassis (IEEE
// 802.1AB table 8-2), of a port (table 8-3), and of a management address (IANA
// address family numbers). NoNumber is a Numbering.
const (
	ChassisMAC     = 4
	ChassisAddress = 5
	PortMAC        = 3
	PortAddress    = 4
	PortName       = 5 // of the interface
	FamilyIPv4     = 1
	FamilyIPv6     = 2
	FamilyMAC      = 6
	NoNumber       = 1 // table 8-5: not known
)

// Longest values, in bytes (IEEE 802.1AB clauses 8.5.2 to 8.5.9).
const (
	MaxText    = 255
	maxAddress = 31
)

// ID is a name of a chassis or a port, or a management address. Its kind says what
// the value is.
type ID struct {
	Kind  uint8
	Value []byte
}

// Capabilities are what a system can be (IEEE 802.1AB table 8-4).
type Capabilities uint16

const (
	Bridge Capabilities = 1 << 2
	Router Capabilities = 1 << 4
)

// Unit is what a frame reports of its sender.
type Unit struct {
	Src           wire.MAC
	Chassis, Port ID
	TTL           uint16 // seconds for which this holds; 0: shutdown

	PortDescription, Name, Description []byte // nil: not sent

	HasCapabilities       bool
	Capabilities, Enabled Capabilities

	Management ID     // Kind 0: not sent
	Numbering  uint8  // what Interface counts, such as NoNumber
	Interface  uint32 // of the management address
}

// Types of values (IEEE 802.1AB table 8-1).
const (
	end = iota
	chassisID
	portID
	ttl
	portDescription
	systemName
	systemDescription
	capabilities
	management
)

// Encode writes the frame, padded to the least length, and returns its length in
// bytes: 0 if b has no room for it, or if a value is longer than it may be. A unit
// with TTL 0 has nothing else than its two names.
func (u *Unit) Encode(b []byte) int {
	for _, id := range []ID{u.Chassis, u.Port} {
		if len(id.Value) == 0 || len(id.Value) > MaxText {
			return 0
		}
	}
	head := wire.EthernetFields{Dst: Group, Src: u.Src, EtherType: wire.EtherTypeLLDP}
	n := head.Encode(b)
	if n == 0 {
		return 0
	}
	out := b[:n:len(b)]
	out = u.Chassis.append(out, chassisID)
	out = u.Port.append(out, portID)
	out = binary.BigEndian.AppendUint16(begin(out, ttl, 2), u.TTL)
	if u.TTL != 0 {
		for i, v := range [][]byte{u.PortDescription, u.Name, u.Description} {
			if len(v) > MaxText {
				return 0
			}
			if v != nil {
				out = append(begin(out, portDescription+i, len(v)), v...)
			}
		}
		if u.HasCapabilities {
			out = binary.BigEndian.AppendUint16(begin(out, capabilities, 4), uint16(u.Capabilities))
			out = binary.BigEndian.AppendUint16(out, uint16(u.Enabled))
		}
		if m := u.Management; m.Kind != 0 {
			if len(m.Value) == 0 || len(m.Value) > maxAddress {
				return 0
			}
			out = append(begin(out, management, len(m.Value)+8), byte(len(m.Value)+1), m.Kind)
			out = append(append(out, m.Value...), u.Numbering)
			out = append(binary.BigEndian.AppendUint32(out, u.Interface), 0) // no object identifier
		}
	}
	out = begin(out, end, 0)
	for len(out) < wire.MinFrame {
		out = append(out, 0)
	}
	if len(out) > len(b) {
		return 0
	}
	return len(out)
}

// begin writes the type and the length of a value.
func begin(out []byte, kind, n int) []byte {
	return binary.BigEndian.AppendUint16(out, uint16(kind<<9|n))
}

func (id *ID) append(out []byte, kind int) []byte {
	return append(append(begin(out, kind, 1+len(id.Value)), id.Kind), id.Value...)
}

// Decode reads a frame and returns true if it is a whole one: the names of chassis
// and port and the TTL come first, and each once; every value ends within the frame
// and has a length that it may have. Of other values that are there twice the first
// counts; those of other types are passed over. The slices are those of b.
func (u *Unit) Decode(b []byte) bool {
	*u = Unit{}
	if len(b) < wire.EthernetLen || wire.Ethernet(b).EtherType() != wire.EtherTypeLLDP {
		return false
	}
	u.Src = wire.Ethernet(b).Src()
	b = b[wire.EthernetLen:]
	i := 0
	for ; len(b) >= 2; i++ {
		head := binary.BigEndian.Uint16(b)
		kind, n := int(head>>9), int(head&0x1ff)
		if b = b[2:]; n > len(b) {
			return false
		}
		switch first := kind >= chassisID && kind <= ttl; {
		case first != (i < ttl), first && kind != i+1:
			return false
		case kind == end:
			return n == 0
		case !u.value(kind, b[:n:n]):
			return false
		}
		b = b[n:]
	}
	return len(b) == 0 && i >= ttl
}

// value reads one value, and returns false if its length is wrong.
func (u *Unit) value(kind int, v []byte) bool {
	switch kind {
	case chassisID:
		return u.Chassis.read(v)
	case portID:
		return u.Port.read(v)
	case ttl:
		if len(v) < 2 {
			return false
		}
		u.TTL = binary.BigEndian.Uint16(v)
	case portDescription, systemName, systemDescription:
		if len(v) > MaxText {
			return false
		}
		if to := [...]*[]byte{&u.PortDescription, &u.Name, &u.Description}[kind-portDescription]; *to == nil {
			*to = v
		}
	case capabilities:
		if len(v) < 4 {
			return false
		}
		if !u.HasCapabilities {
			u.HasCapabilities = true
			u.Capabilities, u.Enabled = Capabilities(binary.BigEndian.Uint16(v)), Capabilities(binary.BigEndian.Uint16(v[2:]))
		}
	case management:
		return u.address(v)
	}
	return true
}

func (id *ID) read(v []byte) bool {
	if len(v) < 2 || len(v) > 1+MaxText {
		return false
	}
	id.Kind, id.Value = v[0], v[1:]
	return true
}

// address reads a management address: its length with its family, these, the kind
// and the number of the interface, an object identifier and its length before it.
func (u *Unit) address(v []byte) bool {
	if len(v) < 9 {
		return false
	}
	n := int(v[0])
	if n < 2 || n > 1+maxAddress || len(v) < n+7 || len(v) < n+7+int(v[n+6]) {
		return false
	}
	if u.Management.Kind == 0 {
		u.Management = ID{v[1], v[2 : 1+n : 1+n]}
		u.Numbering, u.Interface = v[1+n], binary.BigEndian.Uint32(v[2+n:])
	}
	return true
}
