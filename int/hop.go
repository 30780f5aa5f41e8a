// Package inband is in-band network telemetry: what a switch writes into a
// data frame at its departure, and what the host at the far end reads from it.
//
//	Codec    a host's side: the empty header that a sender reserves, and what
//	         came back, as a Path in base units whatever the format
//	Stamper  a switch's side: room for the record when the frame is queued,
//	         the record when it leaves
//	Profile  the units and rate codes of HPCC's record, one for a network
//
// The header stands between UDP and what the datagram carries, under a UDP
// destination port of its own (package wire knows where). A receiver copies it
// verbatim into its acknowledgement, which goes to RoCEv2's port and is not
// stamped. Lengths and the UDP checksum are kept right on the way; RoCEv2's
// invariant CRC leaves the header out (wire.ICRC).
package inband

import "gswitch/frame"

// Hop is what one switch stamped, in base units whatever the format on the
// wire. Hops are listed in the order of the path, first switch first.
type Hop struct {
	Node uint32 // switch identifier, 0 where the format does not carry it
	Port uint16 // egress port, 0 where the format does not carry it
	Rate uint64 // bit/s of the egress link
	// TS and Tx count modulo the format's range: use Delta, never a plain
	// difference. Differences are meant between two records of one port.
	TS uint64 // ns of departure, the switch's own clock
	Tx uint64 // bytes that the egress port had sent before this frame
	Q  uint64 // bytes left in the queue when the frame departed
}

// Range says where the counters of a format wrap; both are powers of two.
type Range struct {
	TS uint64 // ns
	Tx uint64 // bytes
}

// Delta returns how far a record is ahead of the counters of an earlier one, in
// ns and bytes.
func (r Range) Delta(ts, tx uint64, h *Hop) (ns, bytes uint64) {
	return (h.TS - ts) & (r.TS - 1), (h.Tx - tx) & (r.Tx - 1)
}

// MaxHops is the longest path that any format here can record.
const MaxHops = 15

// Path is the telemetry of one frame.
type Path struct {
	ID   uint16 // 12 bits: exclusive or of the switches' identifiers; changes with the path
	N    int    // valid entries of Hops
	Hops [MaxHops]Hop
	// Age is when it was decoded; a record older than a quarter of the
	// format's range cannot be compared any more.
	Age frame.Time
}
