package point

import (
	"slices"

	"gswitch/frame"
	inband "gswitch/int"
	"gswitch/vswitch"
	"gswitch/wire"
)

// The edge of a telemetry domain: ports to hosts without it. A
// source port puts an empty header into data frames that arrive, this switch
// and the ones behind it fill it, and a sink port takes it out again.

// SinkRecords is how many of the last records each worker keeps.
const SinkRecords = 64

// SinkRecord is what a sink took out of a frame.
type SinkRecord struct {
	Port uint16 // egress port
	// The frame, as the parser hashed it, and the host's ports.
	Hash             uint32
	SrcPort, DstPort uint16
	Path             inband.Path // Age is when the frame left
}

// sinkRing is the last records of a worker.
type sinkRing struct {
	rec  [SinkRecords]SinkRecord
	next uint64
}

// source is an Edge, ready for frames.
type source struct {
	codec inband.Codec
	ports []uint16
}

func newSource(e *Edge, profile *inband.Profile) *source {
	s := &source{inband.NewCodec(e.Source, profile), e.SourcePorts}
	if s.ports == nil {
		s.ports = []uint16{wire.RoCEv2Port}
	}
	return s
}

// admitted puts empty headers into the data frames of a vector that arrived at a
// source port.
func (p *ports) admitted(_ frame.Time, n uint16, v []frame.Ref) {
	at := &p.ports[n]
	s := at.source
	for _, r := range v {
		m := p.arena.Meta(r)
		if m.Reason != frame.Keep || m.Flags&(frame.HasUDP|frame.HasINT|frame.HasTunnel|frame.IsFragment) != frame.HasUDP || !slices.Contains(s.ports, m.DstPort) {
			continue
		}
		b := p.arena.Bytes(r)
		off := int(m.L4) + wire.UDPLen
		if m.Flags&frame.HasRoCE != 0 && !wire.IsRoCEData(b[off]) {
			continue
		}
		size := s.codec.HeaderLen()
		if vswitch.Untagged(m)+uint32(size) > at.maxFrame {
			at.count.skipped++
			continue
		}
		if b = wire.InsertUDP(p.arena, r, off, size); b == nil {
			at.count.skipped++
			continue
		}
		var head [wire.HPCCLen]byte // the longest empty header
		s.codec.InitPort(head[:size], m.DstPort)
		wire.PatchUDP(m, b, off, head[:size])
		wire.SetUDPDst(m, b, s.codec.Mode().Port())
		m.INT = uint16(off)
		m.Flags |= frame.HasINT
		at.count.sourced++
	}
}

// takeOut takes the header out of a frame that leaves by a sink port.
func (p *ports) takeOut(at *port, r frame.Ref, m *frame.Meta) {
	b := p.arena.Bytes(r)
	size, port, why := wire.TelemetryLen(b, int(m.INT), len(b), m.DstPort)
	if why != frame.Keep || size == 0 {
		return
	}
	if p.sunk == nil {
		p.sunk = new(sinkRing)
	}
	rec := &p.sunk.rec[p.sunk.next%SinkRecords]
	codec := &p.codecs[inband.ModeOf(m.DstPort)]
	if _, why := codec.Decode(b[m.INT:], &rec.Path); why == frame.Keep { // else it is of another domain: out with it, unread
		rec.Path.Age = m.Depart
		rec.Port, rec.Hash, rec.SrcPort, rec.DstPort = m.OutPort, m.Hash, m.SrcPort, port
		p.sunk.next++
	}
	b = wire.RemoveUDP(p.arena, r, int(m.INT), size)
	wire.SetUDPDst(m, b, port)
	m.INT = 0
	m.Flags &^= frame.HasINT
	at.count.sunk++
}

// ReadSink appends the last records that a worker's sink ports took out of frames,
// oldest first. Like every reader of a node's state it is called between two steps
// of it.
func ReadSink(n *vswitch.Node, to []SinkRecord) []SinkRecord {
	p, _ := n.Feature(Name).(*ports)
	if p == nil || p.sunk == nil {
		return to
	}
	first := p.sunk.next - min(p.sunk.next, SinkRecords)
	for i := first; i < p.sunk.next; i++ {
		to = append(to, p.sunk.rec[i%SinkRecords])
	}
	return to
}
