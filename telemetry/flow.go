package telemetry

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"gswitch/frame"
)

// Flow is a five-tuple. Fragments carry no ports and have 0 in their place at
// every switch.
type Flow struct {
	Addrs uint64 // source, destination: IPv4 addresses, or 32-bit hashes of IPv6 addresses
	Rest  uint64 // HashedAddrs, source port << 24 | destination port << 8 | protocol
}

// HashedAddrs is set in Flow.Rest where Addrs are hashes of IPv6 addresses.
const HashedAddrs = 1 << 40

// FlowMask are the bits that Flow.Rest can have.
const FlowMask = 1<<41 - 1

// FlowOf returns the flow of a frame that was parsed; false for one that is not IP,
// or that the parser found wrong.
func FlowOf(b []byte, m *frame.Meta) (Flow, bool) {
	addrs, ok := Addresses(b, m)
	rest := uint64(m.SrcPort)<<24 | uint64(m.DstPort)<<8 | uint64(m.Proto)
	if m.Flags&frame.HasIPv6 != 0 {
		rest |= HashedAddrs
	}
	return Flow{addrs, rest}, ok
}

// Addresses returns 32 bits of each outer IP address of a frame that was parsed,
// that of the source first. An IPv6 address is hashed to them.
func Addresses(b []byte, m *frame.Meta) (uint64, bool) {
	be := binary.BigEndian
	switch {
	case m.Flags&frame.HasIPv4 != 0:
		return be.Uint64(b[m.L3+12:]), true
	case m.Flags&frame.HasIPv6 != 0:
		h := b[m.L3 : m.L3+40]
		return hash6(be.Uint64(h[8:]), be.Uint64(h[16:]))<<32 | hash6(be.Uint64(h[24:]), be.Uint64(h[32:])), true
	}
	return 0, false
}

// hash6 makes 32 bits of an IPv6 address.
func hash6(hi, lo uint64) uint64 {
	x := (hi ^ lo*0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9
	return x >> 32
}

// Src and Dst are the addresses; of IPv6 their hashes.
func (f Flow) Src() uint32 { return uint32(f.Addrs >> 32) }
func (f Flow) Dst() uint32 { return uint32(f.Addrs) }

// String is the flow as people write it. Of an IPv6 address its hash is all that is
// known.
func (f Flow) String() string {
	addr := func(v uint32) string {
		if f.Rest&HashedAddrs != 0 {
			return fmt.Sprintf("[ipv6 %08x]", v)
		}
		return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}).String()
	}
	return fmt.Sprintf("%s:%d > %s:%d protocol %d", addr(f.Src()), uint16(f.Rest>>24), addr(f.Dst()), uint16(f.Rest>>8), uint8(f.Rest))
}
