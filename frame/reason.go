package frame

import (
	"fmt"
	"strings"
)

// Reason says why a frame was dropped. Zero keeps the frame. Every drop in
// the switch and on its ports has exactly one reason and is counted under it.
type Reason uint8

const (
	Keep Reason = iota

	// Parser: the frame contradicts itself. One reason for each way to fail.
	ParseShortEthernet   // fewer than 14 bytes
	ParseShortVLAN       // tag cut off
	ParseTooManyTags     // more than two VLAN tags
	ParseShortARP        // ARP cut off or not Ethernet/IPv4
	ParseShortIPv4       // IPv4 header cut off
	ParseIPv4Version     // version field is not 4
	ParseIPv4HeaderLen   // IHL below 5 or past the frame
	ParseIPv4TotalLen    // total length below the header or past the frame
	ParseIPv4Checksum    // header checksum wrong
	ParseShortIPv6       // IPv6 header cut off
	ParseIPv6Version     // version field is not 6
	ParseIPv6PayloadLen  // payload length past the frame
	ParseIPv6ExtHeader   // extension header cut off, or more than eight
	ParseShortTCP        // TCP header cut off
	ParseTCPOffset       // data offset below 5 or past the packet
	ParseShortUDP        // UDP header cut off
	ParseUDPLen          // UDP length below 8 or past the packet
	ParseShortICMP       // ICMP or ICMPv6 header cut off
	ParseShortRoCE       // BTH or its extended header cut off
	ParseShortGRE        // GRE header or its options cut off
	ParseGREVersion      // GRE version is not 0
	ParseShortERSPAN     // ERSPAN header cut off
	ParseERSPANVersion   // ERSPAN version does not fit the GRE protocol
	ParseTunnelDepth     // more than four nested IP headers
	ParseShortMACControl // MAC control frame cut off
	ParseMACControlOp    // unknown MAC control opcode
	ParseShortINT        // in-band telemetry header cut off
	ParseINTVersion      // INT metadata header of another version than 2
	ParseINTHops         // hop count or hop length contradicts the length of the telemetry header

	// Ingress checks.
	ReservedMulticast // 01-80-C2-00-00-0X is never forwarded (IEEE 802.1Q 8.6.3)
	Oversize          // longer than the port's MTU allows
	Undersize         // shorter than a header, or a runt where the port checks for it
	SourceMulticast   // source MAC is a group address
	SourceZero        // source MAC is zero
	SourceSelf        // source MAC is the switch's own: a loop
	MartianSource     // routed, but the source IP is multicast, broadcast, loopback or link-local
	PortDown          // the port is administratively or physically down
	VLANIngress       // VLAN is not a member of the port, or a tag where none is allowed
	PauseConsumed     // a PFC or pause frame, used up by the port (not a loss)

	// Policy.
	ACLDrop
	Policed
	StormControl
	NoticeAtEdge    // a host behind the port sent a notice that only switches send
	TelemetryAtEdge // a host behind the port filled in telemetry that only switches fill in
	OwnShare        // the switch's own frames have had their share of the link, or are about the congestion of that very link

	// Forwarding.
	SamePort        // destination is on the port the frame came from
	Isolated        // both ports are isolated from each other
	NoVLANMember    // flooding found no other port in the VLAN
	NoRoute         // longest prefix found nothing
	Blackhole       // the route says drop
	Unreachable     // the route is unreachable, and the sender is notified
	Prohibited      // the route is prohibited, and the sender is notified
	TTLExpired      // TTL or hop limit would reach zero
	NeighborQueue   // too many frames wait for an unresolved neighbour
	NeighborFailed  // the neighbour did not answer
	MTUExceeded     // longer than the egress port's MTU
	ForeignMAC      // a routed port, or MAC control, got a unicast frame for another station
	MulticastRouted // IP multicast, broadcast, loopback and link-local are not routed
	LocalUnhandled  // addressed to the switch, which has no use for it
	LocalConsumed   // addressed to the switch and used up (not a loss)
	KernelLimit     // addressed to the switch, whose port's twin in the kernel has had as many as it may
	EgressPortDown  // the port it must leave by is down
	VLANEgress      // VLAN is not a member of the egress port
	WorkerRing      // the ring to the worker that owns the egress port is full

	// Buffer and queues.
	BufferFull     // the shared buffer is exhausted
	QueueTail      // dynamic threshold or limit of the egress queue
	QueueRefused   // the admission of the egress queue did not let it in
	QueueShed      // the admission of the egress queue dropped it when it would have left
	PushedOut      // a frame worth more needed its room in the egress queue or at the port
	IngressLimit   // dynamic threshold of the ingress port and class, lossy class
	HeadroomFull   // a lossless frame found no headroom: a configuration error
	PFCWatchdog    // the watchdog drains a queue that is stuck under pause
	QueueFlush     // the port went down or was removed with frames queued
	FloodShare     // copies of floods have had their share of the egress port, for which others wait
	IngressQueue   // the queue of the ingress port is full, in a switch that has such queues
	ArenaExhausted // no free chunk for a copy or for a frame of our own, or as many frames wait as a switch may hold

	// Ports.
	TxRing     // the port refused the frame
	TxOversize // no headroom left in the chunk for a tag

	// Host NIC.
	QPUnknown   // for a queue pair that never was
	QPStale     // for a queue pair that was closed: late (not a loss)
	QPPeer      // not from the other end of the queue pair, or not for our address
	QPOpcode    // an operation that the queue pair does not take
	QPSequence  // acknowledges what was not sent
	QPEarly     // an RDMA packet ahead of a gap that would be refused: it is judged when it is in order
	QPTelemetry // telemetry of another format than the queue pair's, or broken
	RoCELength  // length and padding contradict each other, or more payload than a frame may have
	BadICRC     // the invariant CRC is wrong

	ChannelPacket // what a channel brought is no packet between its two ends

	NumReasons
)

var reasonNames = [NumReasons]string{
	Keep:                 "keep",
	ParseShortEthernet:   "parse-short-ethernet",
	ParseShortVLAN:       "parse-short-vlan",
	ParseTooManyTags:     "parse-too-many-tags",
	ParseShortARP:        "parse-short-arp",
	ParseShortIPv4:       "parse-short-ipv4",
	ParseIPv4Version:     "parse-ipv4-version",
	ParseIPv4HeaderLen:   "parse-ipv4-header-length",
	ParseIPv4TotalLen:    "parse-ipv4-total-length",
	ParseIPv4Checksum:    "parse-ipv4-checksum",
	ParseShortIPv6:       "parse-short-ipv6",
	ParseIPv6Version:     "parse-ipv6-version",
	ParseIPv6PayloadLen:  "parse-ipv6-payload-length",
	ParseIPv6ExtHeader:   "parse-ipv6-extension-header",
	ParseShortTCP:        "parse-short-tcp",
	ParseTCPOffset:       "parse-tcp-offset",
	ParseShortUDP:        "parse-short-udp",
	ParseUDPLen:          "parse-udp-length",
	ParseShortICMP:       "parse-short-icmp",
	ParseShortRoCE:       "parse-short-roce",
	ParseShortGRE:        "parse-short-gre",
	ParseGREVersion:      "parse-gre-version",
	ParseShortERSPAN:     "parse-short-erspan",
	ParseERSPANVersion:   "parse-erspan-version",
	ParseTunnelDepth:     "parse-tunnel-depth",
	ParseShortMACControl: "parse-short-mac-control",
	ParseMACControlOp:    "parse-mac-control-opcode",
	ParseShortINT:        "parse-short-int",
	ParseINTVersion:      "parse-int-version",
	ParseINTHops:         "parse-int-hops",
	ReservedMulticast:    "reserved-multicast",
	Oversize:             "oversize",
	Undersize:            "undersize",
	SourceMulticast:      "source-multicast",
	SourceZero:           "source-zero",
	SourceSelf:           "source-self",
	MartianSource:        "martian-source",
	PortDown:             "port-down",
	VLANIngress:          "vlan-ingress",
	PauseConsumed:        "pause-consumed",
	ACLDrop:              "acl",
	Policed:              "policed",
	StormControl:         "storm-control",
	NoticeAtEdge:         "notice-at-edge",
	TelemetryAtEdge:      "telemetry-at-edge",
	OwnShare:             "own-share",
	SamePort:             "same-port",
	Isolated:             "isolated",
	NoVLANMember:         "no-vlan-member",
	NoRoute:              "no-route",
	Blackhole:            "blackhole",
	Unreachable:          "unreachable",
	Prohibited:           "prohibited",
	TTLExpired:           "ttl-expired",
	NeighborQueue:        "neighbor-queue",
	NeighborFailed:       "neighbor-failed",
	MTUExceeded:          "mtu-exceeded",
	ForeignMAC:           "foreign-mac",
	MulticastRouted:      "multicast-routed",
	LocalUnhandled:       "local-unhandled",
	KernelLimit:          "kernel-limit",
	LocalConsumed:        "local-consumed",
	EgressPortDown:       "egress-port-down",
	VLANEgress:           "vlan-egress",
	WorkerRing:           "worker-ring",
	BufferFull:           "buffer-full",
	QueueTail:            "queue-tail",
	QueueRefused:         "queue-refused",
	QueueShed:            "queue-shed",
	PushedOut:            "pushed-out",
	IngressLimit:         "ingress-limit",
	HeadroomFull:         "headroom-full",
	FloodShare:           "flood-share",
	IngressQueue:         "ingress-queue",
	PFCWatchdog:          "pfc-watchdog",
	QueueFlush:           "queue-flush",
	ArenaExhausted:       "arena-exhausted",
	TxRing:               "tx-ring",
	TxOversize:           "tx-oversize",
	QPUnknown:            "qp-unknown",
	QPStale:              "qp-stale",
	QPPeer:               "qp-peer",
	QPOpcode:             "qp-opcode",
	QPSequence:           "qp-sequence",
	QPEarly:              "qp-early",
	QPTelemetry:          "qp-telemetry",
	RoCELength:           "roce-length",
	BadICRC:              "bad-icrc",
	ChannelPacket:        "channel-packet",
}

// String returns the stable name under which the reason is shown and exported.
func (r Reason) String() string {
	if r < NumReasons {
		return reasonNames[r]
	}
	return "unknown"
}

// ParseReason returns the reason of a name, as String has it.
func ParseReason(name string) (Reason, error) {
	for r := Keep + 1; r < NumReasons; r++ {
		if reasonNames[r] == name {
			return r, nil
		}
	}
	return Keep, fmt.Errorf("there is no reason %q for a drop; there are %s", name, strings.Join(reasonNames[Keep+1:], ", "))
}

// Loss reports whether a frame dropped for this reason was lost. Two kinds
// are not, and healthy networks are full of both: control frames that did
// their work, or came late for it, and frames without a receiver behind it, such as
// multicast chatter of hosts and what a neighbour's flooding brings.
func (r Reason) Loss() bool {
	switch r {
	case Keep, PauseConsumed, LocalConsumed, QPStale:
		return false
	case ReservedMulticast, SamePort, NoVLANMember, ForeignMAC, MulticastRouted, LocalUnhandled:
		return false
	}
	return true
}
