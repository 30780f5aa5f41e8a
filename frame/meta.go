package frame

// Ref names a frame: the index of its first chunk in an Arena.
type Ref uint32

// Nil names no frame.
const Nil Ref = 1<<32 - 1

// NoPort is the value of Meta.InPort and Meta.OutPort where there is no port.
const NoPort uint16 = 1<<16 - 1

// Bits of Meta.Flags, set by the parser from the bytes of the frame unless
// said otherwise.
const (
	HasVLAN      uint32 = 1 << iota // an 802.1Q or 802.1ad tag is present; Meta.TCI is the outer one
	HasIPv4                         // the outer network header is IPv4
	HasIPv6                         // the outer network header is IPv6
	HasTCP                          // innermost transport is TCP
	HasUDP                          // innermost transport is UDP
	HasICMP                         // innermost transport is ICMP or ICMPv6
	HasRoCE                         // innermost UDP carries RoCEv2 (destination port 4791)
	HasTunnel                       // an inner IP header was found; L3Inner is its offset
	InnerIPv6                       // the innermost IP header is IPv6 (else IPv4)
	IsFragment                      // IP fragment, first or later: no ports are used
	IsARP                           // EtherType 0x0806
	IsMACControl                    // EtherType 0x8808: PFC, pause
	IsMulticast                     // destination MAC has the group bit
	IsBroadcast                     // destination MAC is ff:ff:ff:ff:ff:ff
	IsECT                           // outer IP ECN field is ECT(0) or ECT(1)
	IsCE                            // outer IP ECN field is CE
	HasOptions                      // IPv4 options or IPv6 extension headers are present
	Truncated                       // fewer bytes are materialised than the headers say (Wire counts them)
	HasINT                          // an in-band telemetry header is present; Meta.INT is its offset

	// Set by later stages, never by the parser.
	MarkCE   // the scheduler chose this frame for an ECN mark; the egress stage writes it
	IsClone  // a copy made for a mirror or a flood: never mirrored again
	ToLocal  // for the slow path: addressed to the switch itself, or its neighbour has no MAC yet
	Lossless // is charged to a lossless group, and no copy
	Routed   // was forwarded by network address: MACs and TTL are rewritten, with ToLocal not yet
	Chained  // more chunks follow in Meta.Next
	Claimed  // a feature of the switch asked, when it arrived, to be asked again before it is queued
	Own      // made by this switch: InPort is the port that it is charged to
	Flooded  // goes to several ports, of which this one is given up first (see vswitch.BufferConfig.FloodShare)
)

// Meta is what is known of one frame. Offsets count from the first byte of
// the frame (not of the chunk). Fields are written once, by the stage named.
//
// It is two cache lines: the first is touched by every stage on the way in,
// the second by queueing and on the way out.
type Meta struct {
	// Geometry. Owned by the holder of the frame.
	Head uint16 // offset of the first byte in the chunk
	Len  uint16 // materialised bytes in this chunk
	Wire uint32 // bytes of the whole frame as on a link, without preamble, FCS and gap; >= materialised bytes
	Next Ref    // next chunk of a frame that is larger than a chunk, or Nil

	// Parser.
	Flags     uint32
	EtherType uint16 // after all VLAN tags
	TCI       uint16 // outer VLAN tag: PCP 3 bits, DEI 1, VID 12
	L3        uint16 // offset of the outer network header
	L4        uint16 // offset of the outer header after IP, 0 if none
	L3Inner   uint16 // offset of the innermost IP header (= L3 without tunnel)
	L4Inner   uint16 // offset of the innermost transport header, 0 if none
	Proto     uint8  // outer IP protocol / next header after extension headers
	ProtoIn   uint8  // innermost IP protocol
	DSCP      uint8  // outer, 6 bits
	TTL       uint8  // outer TTL or hop limit
	SrcPort   uint16 // innermost transport ports (TCP, UDP), 0 otherwise
	DstPort   uint16
	Hash      uint32 // seeded hash over the innermost five-tuple

	// Forwarding.
	InPort  uint16
	OutPort uint16
	VID     uint16 // VLAN the frame belongs to inside the switch
	INT     uint16 // offset of the in-band telemetry header, 0 if none (parser)
	Class   uint8  // traffic class 0..7
	Queue   uint8  // egress queue 0..7
	Reason  Reason // why it must be dropped; 0 = keep
	Marks   uint8  // bits that features of the node reserve for themselves (see vswitch.NewMark)
	About   uint16 // of a notice that the node makes: 1 + the congested port; else 0
	_       [2]byte
	// Stamp is the instant at which its last bit came, as the device or the emulated link
	// says; 0: not known. Like Arrival it is the engine's, which cannot know what features
	// a node has: drivers, emulated links and records write it, and any feature of a switch
	// or a host that asks for it (Feature.Stamps) reads it.
	Stamp Time

	// Second line: queueing, egress.
	QNext   Ref    // successor in a FIFO
	QPrev   Ref    // predecessor, for disciplines that extract from the middle
	Cost    uint32 // bytes charged to the shared buffer on admission
	Arrival Time   // instant of arrival of the frame at the node
	Depart  Time   // scheduled start of transmission on the emulated link; while queued, when it was queued
	Rank    int64  // order in ranked disciplines
	QBytes  uint32 // bytes left in its queue when it departed
	QFrames uint32 // frames left in its queue when it departed
	TxBytes uint64 // bytes that its port had sent before it
	Span    uint32 // nanoseconds that it occupies the emulated link, 0 without a rate
	Pool    uint16 // which accounts of the buffer the frame is charged to (see buffer.PoolNone)
	_       [2]byte
}

// Forget clears what the sending node knew of the frame and the receiving one must find
// out by itself. Engines that pass the chunk itself from node to node call it. Geometry
// stays, and so does what every receiver writes before it reads it.
func (m *Meta) Forget() {
	m.Flags, m.INT, m.Class, m.Queue, m.Reason, m.Marks, m.About = 0, 0, 0, 0, Keep, 0, 0
	m.InPort, m.OutPort = NoPort, NoPort
	m.Cost, m.Pool, m.Rank = 0, 0, 0
}

// clear makes m the metadata of an empty frame. It zeroes in place and then
// writes field by field: assigning a literal would build it on the stack from
// small stores and read it back in wide loads, which the processor cannot
// forward (40 ns a frame).
func (m *Meta) clear() {
	*m = Meta{}
	m.Next, m.QNext, m.QPrev = Nil, Nil, Nil
	m.InPort, m.OutPort = NoPort, NoPort
}
