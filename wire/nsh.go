package wire

import "gswitch/frame"

// EtherTypeNSH announces a network service header (RFC 8300).
const EtherTypeNSH uint16 = 0x894f

// NSHLen is the length of one with a fixed context, metadata type 1: base
// header 4 bytes, service path header 4, context 16 (RFC 8300 section 2.4).
const NSHLen = 24

// SlackPath is the service path whose context is slack: the ASCII letters SLK.
// A header of any other path is not looked behind.
const SlackPath = 0x534c4b

// slackBase is the base header: version 0, no OAM, length 6 words, metadata
// type 1. The TTL is not in it, and the next protocol is added to it.
const (
	slackBase  = 0x0006_0100
	slackTTL   = 63 << 22
	nshTTLMask = 63 << 22
)

// Next protocols (RFC 8300 section 2.2).
const (
	nshIPv4 = 1
	nshIPv6 = 2
)

// Slack is a view of a network service header that carries the slack of a frame
// (Mittal et al., "Universal Packet Scheduling", NSDI 2016): how long it may
// wait in queues on its way, in nanoseconds. The paper has no format. In the
// context stand the slack with which the frame entered the network and what is
// left of it, as two signed 64-bit numbers.
type Slack []byte

// Initial returns the slack with which the frame entered the network.
func (s Slack) Initial() int64 { return int64(be.Uint64(s[8:16])) }

// Left returns what is left of it: less than zero is late.
func (s Slack) Left() int64 { return int64(be.Uint64(s[16:24])) }

// SetLeft changes what is left.
func (s Slack) SetLeft(ns int64) { be.PutUint64(s[16:24], uint64(ns)) }

// Set changes both.
func (s Slack) Set(initial, left int64) {
	be.PutUint64(s[8:16], uint64(initial))
	s.SetLeft(left)
}

// SlackFields is a header of slack.
type SlackFields struct {
	Initial, Left int64  // nanoseconds
	EtherType     uint16 // of what follows: IPv4 or IPv6
}

// Encode writes the header.
func (f *SlackFields) Encode(b []byte) int {
	if len(b) < NSHLen {
		return 0
	}
	putSlack((*[NSHLen]byte)(b), f.EtherType, f.Initial, f.Left)
	return NSHLen
}

// BehindSlack returns the EtherType of what follows a header of slack at the
// front of b, 0 if that is none.
func BehindSlack(b []byte) uint16 {
	if len(b) < NSHLen || be.Uint32(b[4:8])>>8 != SlackPath {
		return 0
	}
	switch be.Uint32(b[0:4]) &^ nshTTLMask {
	case slackBase | nshIPv4:
		return EtherTypeIPv4
	case slackBase | nshIPv6:
		return EtherTypeIPv6
	}
	return 0
}

// SlackAt returns the slack of a parsed frame, whose first bytes are b, or nil if
// it carries none.
func SlackAt(m *frame.Meta, b []byte) Slack {
	at := int(m.L3) - NSHLen
	if at < EthernetLen || len(b) < int(m.L3) || be.Uint16(b[at-2:at]) != EtherTypeNSH || BehindSlack(b[at:]) == 0 {
		return nil
	}
	return Slack(b[at : at+NSHLen])
}

// PushSlack gives a parsed IP packet a slack, of which all is left, and returns
// its view. It returns nil and changes nothing where the frame is no IP packet
// or the headroom is too small.
func PushSlack(a *frame.Arena, r frame.Ref, initial int64) Slack {
	m := a.Meta(r)
	at := int(m.L3)
	if m.Flags&(frame.HasIPv4|frame.HasIPv6) == 0 || at > int(m.Len) {
		return nil
	}
	b := a.Push(r, NSHLen)
	if b == nil {
		return nil
	}
	if at == EthernetLen { // most frames have no tag
		*(*[EthernetLen]byte)(b) = *(*[EthernetLen]byte)(b[NSHLen:])
	} else {
		copy(b[:at], b[NSHLen:NSHLen+at])
	}
	be.PutUint16(b[at-2:at], EtherTypeNSH)
	h := (*[NSHLen]byte)(b[at:])
	putSlack(h, m.EtherType, initial, initial)
	shiftOffsets(m, NSHLen)
	return h[:]
}

// putSlack writes a header of slack before what has an EtherType, IPv4 or IPv6.
func putSlack(h *[NSHLen]byte, et uint16, initial, left int64) {
	next := uint32(nshIPv4)
	if et == EtherTypeIPv6 {
		next = nshIPv6
	}
	be.PutUint64(h[0:8], (slackBase|slackTTL|uint64(next))<<32|SlackPath<<8|0xff) // service index 255: no service is in between
	be.PutUint64(h[8:16], uint64(initial))
	be.PutUint64(h[16:24], uint64(left))
}

// PopSlack takes the slack off a parsed frame. It reports whether there was one.
func PopSlack(a *frame.Arena, r frame.Ref) bool {
	m, b := a.Meta(r), a.Bytes(r)
	h := SlackAt(m, b)
	if h == nil {
		return false
	}
	h.Pop(m, b)
	return true
}

// Pop takes the slack off its frame, which SlackAt found it in.
func (s Slack) Pop(m *frame.Meta, b []byte) {
	et, at := EtherTypeIPv4, int(m.L3)-NSHLen
	if s[3] == nshIPv6 {
		et = EtherTypeIPv6
	}
	if at == EthernetLen {
		*(*[EthernetLen]byte)(b[NSHLen:]) = *(*[EthernetLen]byte)(b)
	} else {
		copy(b[NSHLen:NSHLen+at], b[:at])
	}
	be.PutUint16(b[NSHLen+at-2:], et)
	m.Head += NSHLen // as Arena.Pull does, which would look whether there is as much
	m.Len -= NSHLen
	m.Wire -= NSHLen
	shiftOffsets(m, -NSHLen)
}
