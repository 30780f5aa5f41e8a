// Package ipfix encodes flows that lost packets as IPFIX messages (RFC 7011), for
// existing flow collectors.
package ipfix

import (
	"encoding/binary"
	"net/netip"
	"time"
)

// Flow holds the packets of a flow that did not reach their destination.
type Flow struct {
	Src, Dst         netip.Addr // both IPv4
	SrcPort, DstPort uint16
	Protocol         uint8
	Dropped          uint64 // packets
	First, Last      time.Time
	Status           uint8  // forwardingStatus (RFC 7270, section 4.12)
	Where            string // link or switch
}

// Values of forwardingStatus (RFC 7270, section 4.12): dropped, for one of these reasons.
const (
	Dropped    = 128 // unknown
	Unroutable = 131
	BadTTL     = 137
	Congestion = 139 // WRED, the only one that is about queues
)

// Information elements (IANA, IP Flow Information Export) of a record, in order.
var elements = [][2]uint16{
	{8, 4},       // sourceIPv4Address
	{12, 4},      // destinationIPv4Address
	{7, 2},       // sourceTransportPort
	{11, 2},      // destinationTransportPort
	{4, 1},       // protocolIdentifier
	{133, 8},     // droppedPacketDeltaCount
	{152, 8},     // flowStartMilliseconds
	{153, 8},     // flowEndMilliseconds
	{89, 1},      // forwardingStatus
	{82, 0xffff}, // interfaceName
}

const (
	version    = 10
	templateID = 256
	header     = 16
	setHeader  = 4
	fixed      = 4 + 4 + 2 + 2 + 1 + 8 + 8 + 8 + 1 // of a record
	mostName   = 200
)

// LeastMessage is the smallest allowed limit of a message in bytes.
const LeastMessage = 512

// Encoder makes messages of one observation domain.
type Encoder struct {
	Domain   uint32
	Most     int // bytes of a message, LeastMessage or more
	sequence uint32
}

// Message returns a message with as many of the flows as fit, and their number. With
// template it first describes the records, which a collector must know before it can read
// any.
func (e *Encoder) Message(now time.Time, template bool, v []Flow) (b []byte, n int) {
	be := binary.BigEndian
	b = be.AppendUint16(make([]byte, 0, e.Most), version)
	b = be.AppendUint16(b, 0) // length
	b = be.AppendUint32(b, uint32(now.Unix()))
	b = be.AppendUint32(b, e.sequence)
	b = be.AppendUint32(b, e.Domain)
	if template {
		b = be.AppendUint16(b, 2)
		b = be.AppendUint16(b, uint16(setHeader+4+4*len(elements)))
		b = be.AppendUint16(b, templateID)
		b = be.AppendUint16(b, uint16(len(elements)))
		for _, x := range elements {
			b = be.AppendUint16(be.AppendUint16(b, x[0]), x[1])
		}
	}
	if len(v) > 0 && len(b)+setHeader+fixed+1+mostName <= e.Most {
		set := len(b)
		b = be.AppendUint16(b, templateID)
		b = be.AppendUint16(b, 0)
		for n < len(v) && len(b)+fixed+1+mostName <= e.Most {
			b = record(b, &v[n])
			n++
		}
		be.PutUint16(b[set+2:], uint16(len(b)-set))
	}
	be.PutUint16(b[2:], uint16(len(b)))
	e.sequence += uint32(n)
	return b, n
}

// record appends a record.
func record(b []byte, f *Flow) []byte {
	be := binary.BigEndian
	src, dst := f.Src.As4(), f.Dst.As4()
	b = append(append(b, src[:]...), dst[:]...)
	b = be.AppendUint16(be.AppendUint16(b, f.SrcPort), f.DstPort)
	b = append(b, f.Protocol)
	b = be.AppendUint64(b, f.Dropped)
	b = be.AppendUint64(b, uint64(f.First.UnixMilli()))
	b = be.AppendUint64(b, uint64(f.Last.UnixMilli()))
	name := f.Where[:min(len(f.Where), mostName)]
	return append(append(b, f.Status, uint8(len(name))), name...)
}
