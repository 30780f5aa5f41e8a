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

// Slack is a network service header that carries the slack of a frame
// (Mittal et al., "Universal Packet Scheduling", NSDI 2016): how long it may
// wait in queues on its way, in nanoseconds. The paper has no format. In the
// context stand the slack with which the frame entered the network and what is
// left of it, as two signed 64-bit numbers.
type Slack [NSHLen]byte

// Initial returns the slack with which the frame entered the network.
func (s *Slack) Initial() int64 { return int64(be.Uint64(s[8:16])) }

// Left returns what is left of it: less than zero is late.
func (s *Slack) Left() int64 { return int64(be.Uint64(s[16:24])) }

// SetLeft changes what is left.
func (s *Slack) SetLeft(ns int64) { be.PutUint64(s[16:24], uint64(ns)) }

// Set changes both.
func (s *Slack) Set(initial, left int64) {
	be.PutUint64(s[8:16], uint64(initial))
	s.SetLeft(left)
}

// The first eight bytes of a header of slack, without TTL and service index, by
// what follows it.
const (
	slackIPv4 = (slackBase|nshIPv4)<<32 | SlackPath<<8
	slackIPv6 = (slackBase|nshIPv6)<<32 | SlackPath<<8
)

// next returns the EtherType of what follows, 0 if this is no header of slack.
func (s *Slack) next() uint16 {
	switch be.Uint64(s[0:8]) &^ (nshTTLMask<<32 | 0xff) { // whatever TTL and service index are
	case slackIPv4:
		return EtherTypeIPv4
	case slackIPv6:
		return EtherTypeIPv6
	}
	return 0
}

// write makes a header of slack before what has an EtherType, IPv4 or IPv6.
func (s *Slack) write(et uint16, initial, left int64) {
	const fresh = slackTTL<<32 | 0xff // service index 255: no service is in between
	if head := s[0:8]; et == EtherTypeIPv6 {
		be.PutUint64(head, slackIPv6|fresh)
	} else {
		be.PutUint64(head, slackIPv4|fresh)
	}
	s.Set(initial, left)
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
	(*Slack)(b).write(f.EtherType, f.Initial, f.Left)
	return NSHLen
}

// BehindSlack returns the EtherType of what follows a header of slack at the
// front of b, 0 if that is none.
func BehindSlack(b []byte) uint16 {
	if len(b) < NSHLen {
		return 0
	}
	return (*Slack)(b).next()
}

// slackFrame is a frame without tags up to what its slack stands before.
type slackFrame [EthernetLen + NSHLen]byte

func (f *slackFrame) slack() *Slack { return (*Slack)(f[EthernetLen:]) }

// SlackAt returns the slack of a parsed frame, whose first bytes are b, or nil if
// it carries none.
func SlackAt(m *frame.Meta, b []byte) *Slack {
	at := int(m.L3) - NSHLen
	if at < EthernetLen || len(b) < int(m.L3) || be.Uint16(b[at-2:at]) != EtherTypeNSH {
		return nil
	}
	if h := (*Slack)(b[at:]); h.next() != 0 {
		return h
	}
	return nil
}

// simple reports whether a parsed frame has no tag before its network header, which
// is at l3, no tunnel behind it and no telemetry: as most.
func simple(m *frame.Meta, l3 uint16) bool {
	return m.L3 == l3 && m.L4 != 0 && m.L4Inner == m.L4 && m.Flags&frame.HasINT == 0
}

// PushSlack gives a parsed IP packet a slack, of which all is left, and returns
// it. It returns nil and changes nothing where the frame is no IP packet or the
// headroom is too small.
func PushSlack(a *frame.Arena, r frame.Ref, initial int64) *Slack {
	m := a.Meta(r)
	if m.Flags&(frame.HasIPv4|frame.HasIPv6) == 0 || m.L3 > m.Len || m.Head < NSHLen {
		return nil
	}
	m.Head -= NSHLen
	m.Len += NSHLen
	m.Wire += NSHLen
	if !simple(m, EthernetLen) {
		return pushSlack(m, a.Bytes(r), initial)
	}
	f := (*slackFrame)(a.First(r, m, EthernetLen+NSHLen))
	*(*[EthernetLen]byte)(f[:]) = *(*[EthernetLen]byte)(f[NSHLen:])
	be.PutUint16(f[EthernetLen-2:], EtherTypeNSH)
	f.slack().write(m.EtherType, initial, initial)
	m.L3, m.L3Inner = EthernetLen+NSHLen, EthernetLen+NSHLen
	m.L4 += NSHLen
	m.L4Inner = m.L4
	return f.slack()
}

// pushSlack is PushSlack for any frame, whose bytes b have the room before it.
func pushSlack(m *frame.Meta, b []byte, initial int64) *Slack {
	at := int(m.L3)
	copy(b[:at], b[NSHLen:NSHLen+at])
	be.PutUint16(b[at-2:at], EtherTypeNSH)
	h := (*Slack)(b[at:])
	h.write(m.EtherType, initial, initial)
	shiftOffsets(m, NSHLen)
	return h
}

// PopSlack takes the slack off a parsed frame and returns it. ok is false and
// nothing changes where there is none.
func PopSlack(a *frame.Arena, r frame.Ref) (initial, left int64, ok bool) {
	m := a.Meta(r)
	if !simple(m, EthernetLen+NSHLen) || m.Len < EthernetLen+NSHLen {
		return popSlack(a, r, m)
	}
	f := (*slackFrame)(a.First(r, m, EthernetLen+NSHLen))
	h := f.slack()
	et := h.next()
	if be.Uint16(f[EthernetLen-2:]) != EtherTypeNSH || et == 0 {
		return 0, 0, false
	}
	initial, left = h.Initial(), h.Left()
	*(*[EthernetLen]byte)(f[NSHLen:]) = *(*[EthernetLen]byte)(f[:])
	be.PutUint16(f[NSHLen+EthernetLen-2:], et)
	m.Head += NSHLen
	m.Len -= NSHLen
	m.Wire -= NSHLen
	m.L3, m.L3Inner = EthernetLen, EthernetLen
	m.L4 -= NSHLen
	m.L4Inner = m.L4
	return initial, left, true
}

// popSlack is PopSlack for any frame.
func popSlack(a *frame.Arena, r frame.Ref, m *frame.Meta) (initial, left int64, ok bool) {
	if m.L3 < EthernetLen+NSHLen {
		return 0, 0, false
	}
	b := a.Bytes(r)
	h := SlackAt(m, b)
	if h == nil {
		return 0, 0, false
	}
	initial, left = h.Initial(), h.Left()
	at, et := int(m.L3), h.next()
	copy(b[NSHLen:at], b[:at-NSHLen])
	be.PutUint16(b[at-2:at], et)
	m.Head += NSHLen
	m.Len -= NSHLen
	m.Wire -= NSHLen
	shiftOffsets(m, -NSHLen)
	return initial, left, true
}
