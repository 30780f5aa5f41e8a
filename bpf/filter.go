package bpf

import (
	"encoding/binary"
	"fmt"
	"net"
)

// Filter says which frames of a port go to its sockets. The zero value sends
// all of them. Otherwise a frame goes there if it matches any entry of any
// list, or, with Invert, if it matches none.
type Filter struct {
	EtherTypes []uint16           // after up to two VLAN tags
	MACs       []net.HardwareAddr // destination, 6 bytes
	Protocols  []uint8            // IPv4 protocol or IPv6 next header (extension headers are not walked)
	Ports      []uint16           // TCP or UDP destination port; later fragments have none
	Invert     bool               // everything but the selection
}

// maxMatches is the size of the program's match table.
const maxMatches = 1024

// Kinds of match, as in xdp.c.
const (
	byEtherType = iota
	byMAC
	byProtocol
	byPort
	kinds
)

// compile returns the program's filter word and the keys of its match table.
func (f Filter) compile() (word uint32, keys []uint64, err error) {
	add := func(kind int, value uint64) {
		word |= 1 << kind
		keys = append(keys, uint64(kind)<<56|value)
	}
	for _, v := range f.EtherTypes {
		add(byEtherType, uint64(v))
	}
	for _, mac := range f.MACs {
		if len(mac) != 6 {
			return 0, nil, fmt.Errorf("filter: MAC address %v has %d bytes, not 6", mac, len(mac))
		}
		add(byMAC, uint64(binary.BigEndian.Uint16(mac))<<32|uint64(binary.BigEndian.Uint32(mac[2:])))
	}
	for _, v := range f.Protocols {
		add(byProtocol, uint64(v))
	}
	for _, v := range f.Ports {
		add(byPort, uint64(v))
	}
	if len(keys) > maxMatches {
		return 0, nil, fmt.Errorf("filter: %d entries, at most %d are possible", len(keys), maxMatches)
	}
	if f.Invert {
		if len(keys) == 0 {
			return 0, nil, fmt.Errorf("filter: invert without any entry would select everything; leave the filter out instead")
		}
		word |= 1 << kinds
	}
	return word, keys, nil
}
