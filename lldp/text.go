package lldp

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"

	"gswitch/wire"
)

// maxShown is how many characters of a text are shown.
const maxShown = 100

// Text returns what a neighbour says as it may be shown anywhere: one line of valid
// UTF-8 without control characters, at most 100 of them. What is no text is a
// question mark.
func Text(b []byte) string {
	var s strings.Builder
	shown := 0
	for _, r := range string(bytes.TrimRight(b, "\x00")) {
		if shown++; shown > maxShown {
			break
		}
		switch {
		case unicode.IsSpace(r):
			r = ' '
		case r == utf8.RuneError || !unicode.IsPrint(r):
			r = '?'
		}
		s.WriteRune(r)
	}
	return strings.TrimSpace(s.String())
}

// ChassisText, PortText and AddressText write the name of a chassis, of a port, and
// a management address ("" if there is none) for people.
func ChassisText(id ID) string { return text(id, ChassisMAC, ChassisAddress) }

func PortText(id ID) string { return text(id, PortMAC, PortAddress) }

func AddressText(id ID) string {
	switch id.Kind {
	case 0:
		return ""
	case FamilyIPv4, FamilyIPv6:
		if a, ok := netip.AddrFromSlice(id.Value); ok && a.Is4() == (id.Kind == FamilyIPv4) {
			return a.String()
		}
	case FamilyMAC:
		if len(id.Value) == 6 {
			return wire.MAC(id.Value).String()
		}
	}
	return hex.EncodeToString(id.Value)
}

func text(id ID, mac, address uint8) string {
	switch {
	case id.Kind == mac && len(id.Value) == 6:
		return wire.MAC(id.Value).String()
	case id.Kind == address:
		return AddressText(ID{id.Value[0], id.Value[1:]})
	case id.Kind == mac:
		return hex.EncodeToString(id.Value)
	}
	return Text(id.Value)
}

// names of the bits of Capabilities (IEEE 802.1AB table 8-4).
var names = [...]string{"other", "repeater", "bridge", "wlan-ap", "router", "telephone", "docsis", "station", "c-vlan", "s-vlan", "tpmr"}

// String names them, with commas between them.
func (c Capabilities) String() string {
	var v []string
	for i, name := range names {
		if c>>i&1 != 0 {
			v = append(v, name)
		}
	}
	return strings.Join(v, ",")
}
