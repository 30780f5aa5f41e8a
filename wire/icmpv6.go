package wire

import "gswitch/frame"

// ICMPv6Len is the length of the header that all ICMPv6 messages share, in
// bytes (RFC 4443 section 2.1).
const ICMPv6Len = 4

// ICMPv6 types (RFC 4443, RFC 4861). The header's view and record are ICMP
// and ICMPFields.
const (
	ICMPv6DstUnreachable        uint8 = 1
	ICMPv6PacketTooBig          uint8 = 2
	ICMPv6TimeExceeded          uint8 = 3
	ICMPv6ParameterProblem      uint8 = 4
	ICMPv6Echo                  uint8 = 128
	ICMPv6EchoReply             uint8 = 129
	ICMPv6RouterSolicitation    uint8 = 133
	ICMPv6RouterAdvertisement   uint8 = 134
	ICMPv6NeighborSolicitation  uint8 = 135
	ICMPv6NeighborAdvertisement uint8 = 136
	ICMPv6Redirect              uint8 = 137
)

// Flags of a neighbour advertisement, in the word after the checksum (RFC 4861
// section 4.4).
const (
	NDRouter    uint32 = 1 << 31
	NDSolicited uint32 = 1 << 30
	NDOverride  uint32 = 1 << 29
)

// Lengths of the discovery messages without options, in bytes.
const (
	NDRouterSolicitationLen  = 8
	NDRouterAdvertisementLen = 16
	NDNeighborLen            = 24 // solicitation and advertisement
	NDRedirectLen            = 40
)

// NDFixedLen returns the length of the discovery message of the ICMPv6 type
// before its options, or 0 if the type is no discovery message.
func NDFixedLen(typ uint8) int {
	switch typ {
	case ICMPv6RouterSolicitation:
		return NDRouterSolicitationLen
	case ICMPv6RouterAdvertisement:
		return NDRouterAdvertisementLen
	case ICMPv6NeighborSolicitation, ICMPv6NeighborAdvertisement:
		return NDNeighborLen
	case ICMPv6Redirect:
		return NDRedirectLen
	}
	return 0
}

// NDNeighbor is a view of a neighbour solicitation or advertisement, from the
// ICMPv6 type on.
type NDNeighbor []byte

func (h NDNeighbor) Type() uint8           { return h[0] }
func (h NDNeighbor) Flags() uint32         { return be.Uint32(h[4:8]) }
func (h NDNeighbor) Target() [16]byte      { return [16]byte(h[8:24]) }
func (h NDNeighbor) Options() NDOptions    { return NDOptions(h[NDNeighborLen:]) }
func (h NDNeighbor) SetFlags(v uint32)     { be.PutUint32(h[4:8], v) }
func (h NDNeighbor) SetTarget(ip [16]byte) { copy(h[8:24], ip[:]) }

// NDFields is any discovery message (RFC 4861 section 4), the ICMPv6 header
// included. Which fields are on the wire depends on Type.
type NDFields struct {
	Type, Code     uint8
	Checksum       uint16
	Rest           uint32 // flags of a neighbour advertisement; hop limit, flags, lifetime of a router's; else reserved
	ReachableTime  uint32 // router advertisement, milliseconds
	RetransTimer   uint32 // router advertisement, milliseconds
	Target         [16]byte
	RedirectedDest [16]byte // redirect
	Options        NDOptions
}

func (f *NDFields) Encode(b []byte) int {
	fixed := NDFixedLen(f.Type)
	n := fixed + len(f.Options)
	if fixed == 0 || len(b) < n {
		return 0
	}
	head := ICMPFields{f.Type, f.Code, f.Checksum, f.Rest}
	head.Encode(b)
	switch f.Type {
	case ICMPv6RouterAdvertisement:
		be.PutUint32(b[8:12], f.ReachableTime)
		be.PutUint32(b[12:16], f.RetransTimer)
	case ICMPv6NeighborSolicitation, ICMPv6NeighborAdvertisement:
		copy(b[8:24], f.Target[:])
	case ICMPv6Redirect:
		copy(b[8:24], f.Target[:])
		copy(b[24:40], f.RedirectedDest[:])
	}
	copy(b[fixed:n], f.Options)
	return n
}

// Decode takes all of b; options that do not fill it exactly, or of length
// zero, make the message invalid (RFC 4861 section 4.6).
func (f *NDFields) Decode(b []byte) (int, frame.Reason) {
	var head ICMPFields
	if _, why := head.Decode(b); why != frame.Keep {
		return 0, why
	}
	fixed := NDFixedLen(head.Type)
	if fixed == 0 || len(b) < fixed || !NDOptions(b[fixed:]).Valid() {
		return 0, frame.ParseShortICMP
	}
	*f = NDFields{Type: head.Type, Code: head.Code, Checksum: head.Checksum, Rest: head.Rest, Options: NDOptions(b[fixed:])}
	switch f.Type {
	case ICMPv6RouterAdvertisement:
		f.ReachableTime, f.RetransTimer = be.Uint32(b[8:12]), be.Uint32(b[12:16])
	case ICMPv6NeighborSolicitation, ICMPv6NeighborAdvertisement:
		f.Target = [16]byte(b[8:24])
	case ICMPv6Redirect:
		f.Target, f.RedirectedDest = [16]byte(b[8:24]), [16]byte(b[24:40])
	}
	return len(b), frame.Keep
}

// Neighbour discovery option types (RFC 4861 section 4.6).
const (
	NDSourceLinkLayer  uint8 = 1
	NDTargetLinkLayer  uint8 = 2
	NDPrefixInfo       uint8 = 3
	NDRedirectedHeader uint8 = 4
	NDMTU              uint8 = 5
)

// NDOptions is the options part of a discovery message.
type NDOptions []byte

// Next takes the first option apart: its type and its body after the length
// byte. ok is false at the end and where an option is cut off.
func (o NDOptions) Next() (typ uint8, body []byte, rest NDOptions, ok bool) {
	if len(o) < 8 || o[1] == 0 || int(o[1])*8 > len(o) {
		return 0, nil, nil, false
	}
	n := int(o[1]) * 8
	return o[0], o[2:n:n], o[n:], true
}

// Valid reports whether the options follow each other to the last byte.
func (o NDOptions) Valid() bool {
	for len(o) > 0 {
		_, _, rest, ok := o.Next()
		if !ok {
			return false
		}
		o = rest
	}
	return true
}

// LinkLayer returns the Ethernet address in the first option of type typ
// (NDSourceLinkLayer or NDTargetLinkLayer).
func (o NDOptions) LinkLayer(typ uint8) (MAC, bool) {
	for {
		t, body, rest, ok := o.Next()
		if !ok {
			return MAC{}, false
		}
		if t == typ {
			return MAC(body[:6]), true
		}
		o = rest
	}
}

// NDLinkLayerLen is the length of a link-layer address option, in bytes.
const NDLinkLayerLen = 8

// PutNDLinkLayer writes a link-layer address option to b and returns its
// length, or 0 if b is too short.
func PutNDLinkLayer(b []byte, typ uint8, m MAC) int {
	if len(b) < NDLinkLayerLen {
		return 0
	}
	b[0], b[1] = typ, 1
	copy(b[2:8], m[:])
	return NDLinkLayerLen
}

// SolicitedNode returns the solicited-node multicast address of ip and the
// Ethernet address that it maps to (RFC 4291 section 2.7.1, RFC 2464
// section 7).
func SolicitedNode(ip [16]byte) ([16]byte, MAC) {
	g := [16]byte{0: 0xff, 1: 0x02, 11: 1, 12: 0xff, 13: ip[13], 14: ip[14], 15: ip[15]}
	return g, MAC{0x33, 0x33, 0xff, ip[13], ip[14], ip[15]}
}

// AnswerEcho6 makes the answer to an ICMPv6 echo request, whose message is msg and whose checksum is right, of the
// packet itself, from an address of the station that answers (RFC 4443 4.2).
func AnswerEcho6(ip IPv6, msg []byte, from [16]byte) {
	to := ip.Src()
	ip.SetSrc(from)
	ip.SetDst(to)
	ip.SetHopLimit(64)
	msg[0] = ICMPv6EchoReply
	UpdateICMPChecksum(PseudoSum6(from, to, ProtoICMPv6, len(msg)), msg)
}
