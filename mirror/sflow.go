package mirror

import (
	"encoding/binary"

	"gswitch/wire"
)

// SFlowPort is the UDP port of collectors (IANA).
const SFlowPort = 6343

// MostSamples is how many samples a datagram has at most.
const MostSamples = 16

// sFlow version 5 (sflow.org, "sFlow Version 5", July 2004, section 5). Everything
// is a word of 32 bits.
const (
	sflowHeader = 28 // version, kind and address of the agent, sub-agent, sequence, uptime, number of samples
	// sflowSample is a flow sample before its packet: format, length, sequence,
	// source, rate, pool, drops, input, output, number of records; and of its record
	// format, length, protocol, length of the frame, stripped, length of the header.
	sflowSample = 40 + 24
	// sflowMost is the longest datagram, in bytes of UDP payload
	// (sFlowRcvrMaximumDatagramSize).
	sflowMost   = 1400
	sflowFormat = 1 // of a flow sample, and of a raw packet header
	ethernet    = 1 // header protocol
	fcsLen      = 4

	// sflowCounters is a counters sample: format, length, sequence, source, number of
	// records, and its two records with format and length each.
	sflowCounters     = 20 + 8 + genericCounters + 8 + ethernetCounters
	countersFormat    = 2 // of a counters sample, and of Ethernet's record in it
	genericFormat     = 1
	genericCounters   = 88
	ethernetCounters  = 52
	ethernetCSMACD    = 6 // ifType (RFC 2863)
	fullDuplex        = 1
	notKnown          = 1<<32 - 1
	statusAdmin, oper = 1, 2
)

// Sample is what a flow sample reports of its packet and of how it was taken.
type Sample struct {
	Port     uint16 // by which it came, from 0: the interface is one more
	Sequence uint32 // of the port's samples
	OneIn    uint32
	Pool     uint32 // packets of the port of which samples could have been taken so far
	Drops    uint32 // of the port: samples that were taken and lost in the switch
	Wire     uint32 // length of the frame, without FCS
}

// Samples gathers the samples of a session into datagrams. It keeps their bytes,
// and allocates nothing.
type Samples struct {
	subAgent uint32
	limit    int // bytes of UDP payload
	snap     int
	n, end   int
	b        [sflowMost]byte
	ports    [MostSamples]uint16
}

// NewSamples makes an empty datagram of the session. subAgent distinguishes datagrams of one
// switch apart that are numbered each by itself. mtu is the longest IP packet that
// may be sent, 576 at least.
func NewSamples(s *Session, subAgent uint32, mtu int) *Samples {
	g := &Samples{subAgent: subAgent, limit: min(sflowMost, mtu-wire.IPv4Len-wire.UDPLen), end: sflowHeader}
	if g.snap = (g.limit - sflowHeader - sflowSample) &^ 3; s.Snap > 0 {
		g.snap = min(g.snap, s.Snap)
	}
	return g
}

// Ports are those by which the packets came of which there are samples. The slice
// is good until the next Add, also when they have been written.
func (g *Samples) Ports() []uint16 { return g.ports[:g.n] }

// Fits reports whether there is room for a sample of a packet, given as its bytes
// in memory. An empty datagram has it.
func (g *Samples) Fits(packet []byte) bool {
	return g.n < MostSamples && g.end+sflowSample+padded(min(len(packet), g.snap)) <= g.limit
}

// Interface is what a counters sample reports of a port. Frames of all kinds count as
// unicast: switches do not distinguish groups.
type Interface struct {
	Port                    uint16
	Sequence                uint32 // of the port's counters samples
	Speed                   uint64 // bits/s, 0: not known
	Up                      bool
	InOctets, OutOctets     uint64
	InFrames, OutFrames     uint32
	InDiscards, OutDiscards uint32
	InErrors                uint32 // that the parser found wrong
	TooLong                 uint32
}

// FitsCounters reports whether there is room for a counters sample. An empty datagram
// has it.
func (g *Samples) FitsCounters() bool {
	return g.n < MostSamples && g.end+sflowCounters <= g.limit
}

// AddCounters adds a counters sample, for which there must be room: the generic
// record of interfaces and that of Ethernet, of which no switch knows more than
// frames that are too long.
func (g *Samples) AddCounters(v *Interface) {
	b, port, status := g.b[g.end:g.end+sflowCounters], uint32(v.Port)+1, uint32(statusAdmin)
	if v.Up {
		status |= oper
	}
	words(b,
		countersFormat, sflowCounters-8, v.Sequence, port, 2,
		genericFormat, genericCounters, port, ethernetCSMACD, uint32(v.Speed>>32), uint32(v.Speed), fullDuplex, status,
		uint32(v.InOctets>>32), uint32(v.InOctets), v.InFrames, notKnown, notKnown, v.InDiscards, v.InErrors, notKnown,
		uint32(v.OutOctets>>32), uint32(v.OutOctets), v.OutFrames, notKnown, notKnown, v.OutDiscards, notKnown, notKnown,
		countersFormat, ethernetCounters, notKnown, notKnown, notKnown, notKnown, notKnown, notKnown, notKnown, notKnown, notKnown, notKnown, v.TooLong, notKnown, notKnown)
	g.ports[g.n] = v.Port
	g.n, g.end = g.n+1, g.end+sflowCounters
}

func padded(n int) int { return (n + 3) &^ 3 }

// Add adds a sample of a packet, given as its bytes in memory, for which there must
// be room. Of the way out nothing is known when a packet comes: its interface is 0.
func (g *Samples) Add(v Sample, packet []byte) {
	keep := min(len(packet), g.snap)
	size := sflowSample + padded(keep)
	b, port := g.b[g.end:g.end+size], uint32(v.Port)+1
	words(b,
		sflowFormat, uint32(size-8), v.Sequence, port, v.OneIn, v.Pool, v.Drops, port, 0, 1,
		sflowFormat, uint32(size-40-8), ethernet, v.Wire+fcsLen, fcsLen, uint32(keep))
	clear(b[sflowSample+copy(b[sflowSample:], packet[:keep]):])
	g.ports[g.n] = v.Port
	g.n, g.end = g.n+1, g.end+size
}

func words(b []byte, v ...uint32) {
	for i, x := range v {
		binary.BigEndian.PutUint32(b[4*i:], x)
	}
}

// Clear removes the samples, and begins another datagram.
func (g *Samples) Clear() { g.n, g.end = 0, sflowHeader }

// Write writes the datagram to b as a frame to the collector, with the number that
// the session has come to, and begins another. uptime is in milliseconds. It
// returns the length of the frame, 0 if b has no room for it.
func (g *Samples) Write(b []byte, s *Session, uptime uint32) int {
	const head = wire.EthernetLen + wire.IPv4Len + wire.UDPLen
	n, samples, end := head+g.end, uint32(g.n), g.end
	g.Clear()
	if len(b) < n {
		return 0
	}
	clear(b[:head])
	s.outer(b, uint32(n))
	be, udp := binary.BigEndian, b[wire.EthernetLen+wire.IPv4Len:]
	be.PutUint16(udp, SFlowPort)
	be.PutUint16(udp[2:], SFlowPort)
	be.PutUint16(udp[4:], uint16(n-wire.EthernetLen-wire.IPv4Len)) // without a checksum (RFC 768)
	agent := s.Src.As4()
	words(b[head:], 5, 1, be.Uint32(agent[:]), g.subAgent, s.sequence, uptime, samples)
	s.sequence++
	copy(b[head+sflowHeader:], g.b[sflowHeader:end])
	return n
}

// isSFlow reports whether a UDP datagram, of which four bytes of payload are there,
// goes to a collector.
func isSFlow(b []byte) bool {
	return binary.BigEndian.Uint16(b[2:]) == SFlowPort && binary.BigEndian.Uint32(b[wire.UDPLen:]) == 5
}

// sflowSamples returns the samples of a UDP datagram, 0 if it is not one of sFlow.
func sflowSamples(b []byte) int {
	if len(b) < wire.UDPLen+sflowHeader || !isSFlow(b) {
		return 0
	}
	return int(min(MostSamples, binary.BigEndian.Uint32(b[wire.UDPLen+24:])))
}
