// Package notice is what congestion points that notify senders have in common:
// how the sender of a frame is found, and the ICMP types by which it is notified.
// What a notice says is the matter of each, which registers its kind.
package notice

// ICMP types of notices: one for experiments (RFC 4727 section 3) and, for
// IPv6, one for private experimentation (RFC 4443 section 2.1).
const (
	Type4 = 253
	Type6 = 200
)

// MaxLen is the length of the longest notice without what it quotes, from the
// ICMP header on.
const MaxLen = 8 + 56

// QuoteMax is how much of a packet a notice quotes: an IPv6 header, ports and
// a base transport header of InfiniBand.
const QuoteMax = 40 + 8 + 12

// Sender is the sender of a packet.
type Sender struct {
	// Back is what a notice needs to find the sender: the packet from its
	// network header on, as much as is kept of it, and by which port and VLAN
	// and from which station it came. Without a station the way back is a route.
	Back  [QuoteMax]byte
	Len   uint8
	IPv6  bool
	Port  uint16
	VID   uint16
	MAC   uint64
	About uint16 // the congested port, by which the way back must not go
}
