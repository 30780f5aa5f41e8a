package mirror

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"gswitch/wire"
)

// Probe is a series of packets that are sent into the network at a switch, and from
// there like any other (guided probes, section 4.3 of the paper): in tunnels of IP in
// IP, of which the switches that they are addressed to take the headers off, one
// each. Every header asks for a trace.
type Probe struct {
	ID   uint32       // of the series, not 0
	From netip.Addr   // who sends them: source of the tunnels
	Via  []netip.Addr // IPv4 addresses of the switches that they come by, at most MostVia
	// What the last of these switches finds: a packet that is to find what those of a
	// flow find has their five-tuple.
	Src, Dst         netip.Addr
	Proto            uint8 // wire.ProtoUDP or wire.ProtoTCP
	SrcPort, DstPort uint16
}

// MostVia is how many switches a probe can be sent by one after the other: with the
// innermost there are as many IP headers as are looked through.
const MostVia = mostHeaders - 1

// probeMagic begins the payload of a probe; its ID and its number follow.
const probeMagic = "gsprobe\x01"

// probePayload is the length of the payload of a probe.
const probePayload = len(probeMagic) + 8

// ProbeTTL is the time to live in all headers of a probe.
const ProbeTTL = 64

// Validate reports what is wrong with p.
func (p *Probe) Validate() error {
	for _, a := range append([]netip.Addr{p.From, p.Src, p.Dst}, p.Via...) {
		if !a.Is4() {
			return fmt.Errorf("%v is no IPv4 address", a)
		}
	}
	switch {
	case p.ID == 0:
		return errors.New("a probe needs a number other than 0")
	case len(p.Via) == 0 || len(p.Via) > MostVia:
		return fmt.Errorf("a probe by %d switches: one to %d are possible", len(p.Via), MostVia)
	case p.Proto != wire.ProtoUDP && p.Proto != wire.ProtoTCP:
		return fmt.Errorf("protocol %d: probes are of TCP or UDP", p.Proto)
	}
	return nil
}

// Append appends the IP packet of the probe with a number to b. Its identification
// is its own, so that each has a trace. The checksum of its transport is wrong: a
// server drops it.
func (p *Probe) Append(b []byte, number uint32) []byte {
	transport := wire.UDPLen
	if p.Proto == wire.ProtoTCP {
		transport = wire.TCPLen
	}
	size := transport + probePayload
	at := len(b)
	total := len(p.Via)*wire.IPv4Len + wire.IPv4Len + size
	b = append(b, make([]byte, total)...)
	id := uint16(p.ID*0x9e37 + number)
	header := func(src, dst netip.Addr, proto uint8) {
		ip := wire.IPv4Fields{TOS: DebugDSCP << 2, TotalLen: uint16(len(b) - at), ID: id, TTL: ProbeTTL, Proto: proto, Src: src.As4(), Dst: dst.As4()}
		ip.Encode(b[at:])
		wire.IPv4(b[at:]).UpdateChecksum()
		at += wire.IPv4Len
	}
	for _, v := range p.Via {
		header(p.From, v, wire.ProtoIPv4)
	}
	header(p.Src, p.Dst, p.Proto)
	l4 := b[at:]
	payload := l4[transport:]
	copy(payload, probeMagic)
	binary.BigEndian.PutUint32(payload[len(probeMagic):], p.ID)
	binary.BigEndian.PutUint32(payload[len(probeMagic)+4:], number)
	if p.Proto == wire.ProtoUDP {
		udp := wire.UDPFields{SrcPort: p.SrcPort, DstPort: p.DstPort, Length: uint16(size)}
		udp.Encode(l4)
	} else {
		tcp := wire.TCPFields{SrcPort: p.SrcPort, DstPort: p.DstPort, Seq: number, Flags: wire.TCPAck}
		tcp.Encode(l4)
	}
	// Neither 0, which of UDP is none, nor the right one in its other form.
	right := wire.SegmentChecksum(wire.PseudoSum4(p.Src.As4(), p.Dst.As4(), p.Proto, size), l4)
	wrong := right ^ 0x5555
	if wrong == 0 {
		wrong = 0x5a5a
	}
	binary.BigEndian.PutUint16(l4[checksumAt(p.Proto):], wrong)
	return b
}

func checksumAt(proto uint8) int {
	if proto == wire.ProtoTCP {
		return 16
	}
	return 6
}

// ProbeOf returns series and number of a probe, of which b is what follows the
// innermost IP header; false if it is none.
func ProbeOf(proto uint8, b []byte) (id, number uint32, ok bool) {
	n := wire.UDPLen
	switch {
	case proto == wire.ProtoTCP && len(b) >= wire.TCPLen:
		n = wire.TCP(b).HeaderLen()
	case proto != wire.ProtoUDP:
		return 0, 0, false
	}
	if len(b) < n+probePayload || string(b[n:n+len(probeMagic)]) != probeMagic {
		return 0, 0, false
	}
	b = b[n+len(probeMagic):]
	id = binary.BigEndian.Uint32(b)
	return id, binary.BigEndian.Uint32(b[4:]), id != 0
}
