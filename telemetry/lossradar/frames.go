package lossradar

import (
	"encoding/binary"

	"gswitch/frame"
	"gswitch/telemetry"
	"gswitch/wire"
)

// OfFrame returns the signature of a frame that was parsed, without an instant, and
// whether it has one: frames that are not IP are not metered, nor are those that
// the parser found wrong. The time to live counts as the frame has it, so both ends
// of a link must ask while it is on that link: the upstream meter when everything
// is written, the downstream one before anything is.
func OfFrame(b []byte, m *frame.Meta) (s Signature, ok bool) {
	be := binary.BigEndian
	if m.Reason != frame.Keep {
		return s, false
	}
	if s.Addrs, ok = telemetry.Addresses(b, m); !ok {
		return s, false
	}
	if m.Flags&frame.HasIPv4 != 0 {
		s.Rest = uint64(be.Uint16(b[m.L3+4:])) << 16
	}
	s.Rest |= uint64(m.SrcPort)<<48 | uint64(m.DstPort)<<32 | uint64(m.Proto)<<8
	if m.TTL <= 1 {
		s.Rest |= flagExpires
	}
	switch at := int(m.L4Inner); {
	case at == 0:
		if m.Flags&frame.HasIPv4 != 0 { // fragments of a packet have one identification, and no ports
			s.Extra = uint32(be.Uint16(b[m.L3+6:])&wire.IPv4OffsetMask) << StampBits
		}
	case m.Flags&(frame.HasRoCE|frame.HasINT) == frame.HasRoCE && len(b) >= at+20:
		// The low half of the PSN (IBTA 9.2). Telemetry before the transport header
		// grows on the way.
		s.Extra = uint32(be.Uint16(b[at+18:])) << StampBits
	case m.Flags&frame.HasTCP != 0 && len(b) >= at+14:
		s.Extra = uint32(be.Uint16(b[at+6:])) << StampBits
		if b[at+13]&wire.TCPSyn != 0 {
			s.Rest |= flagSYN
		}
	}
	return s, true
}

// Onward returns the signature of a frame that a switch passes on, without an
// instant, from the one that it came with. The switch may have changed its time to
// live, but no other field of a signature.
func (s Signature) Onward(m *frame.Meta) Signature {
	s.Extra &^= stampMask
	s.Rest &^= flagExpires
	if m.TTL <= 1 {
		s.Rest |= flagExpires
	}
	return s
}

// At returns a signature with the instant of the upstream meter.
func (s Signature) At(stamp uint16) Signature {
	s.Extra = s.Extra&^stampMask | uint32(stamp)&stampMask
	return s
}
