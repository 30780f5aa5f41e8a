package vswitch

import (
	"fmt"
	"slices"

	"gswitch/frame"
	inband "gswitch/int"
	"gswitch/wire"
)

// The edge of a telemetry domain: ports to hosts that know nothing of it. A
// source port puts an empty header into data frames that arrive, this switch
// and the ones behind it fill it, and a sink port takes it out again.

// PortTelemetry is the role of a port at the edge.
type PortTelemetry struct {
	// Source is the format that data frames which arrive get; None for none.
	// HPCC's are for RoCEv2 only; INTMD serves RoCEv2 and any other datagram.
	// A frame that the port's MTU would not take with the header goes without.
	Source inband.Mode
	// SourcePorts are the UDP destination ports whose datagrams are data; nil
	// is RoCEv2. Of RoCEv2, what only answers or asks (acknowledgements, read
	// requests, congestion notifications) is left out.
	SourcePorts []uint16
	// Sink takes telemetry out of frames that leave and keeps what it says.
	// The emulated link is charged for the header all the same: what the last
	// queue does to a frame is known only when it leaves.
	Sink bool
}

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

// source is a PortTelemetry, ready for frames.
type source struct {
	codec inband.Codec
	ports []uint16
}

// compileEdge prepares the roles of a port.
func (t *telemetryProgram) compileEdge(i int, c *PortConfig) error {
	e := &c.Telemetry
	switch {
	case e.Source == inband.None:
	case e.Source > inband.INTMDUDP:
		return fmt.Errorf("port %s: there is no telemetry format %d", c.Name, e.Source)
	case e.Source != inband.INTMD && e.Source != inband.INTMDUDP && slices.ContainsFunc(e.SourcePorts, func(p uint16) bool { return p != wire.RoCEv2Port }):
		return fmt.Errorf("port %s: %v is for RoCEv2 (UDP port %d) only; use %v", c.Name, e.Source, wire.RoCEv2Port, inband.INTMD)
	default:
		if ports := e.SourcePorts; ports == nil {
			t.sources[i] = &source{inband.NewCodec(e.Source, t.profile), []uint16{wire.RoCEv2Port}}
		} else {
			t.sources[i] = &source{inband.NewCodec(e.Source, t.profile), ports}
		}
	}
	t.sink[i] = e.Sink
	return nil
}

// addTelemetry puts empty headers into the data frames of a vector that
// arrived at a source port.
func (n *Node) addTelemetry(s *source, pp *portProgram, v []frame.Ref) {
	for _, r := range v {
		m := n.arena.Meta(r)
		if m.Reason != frame.Keep || m.Flags&(frame.HasUDP|frame.HasINT|frame.HasTunnel|frame.IsFragment) != frame.HasUDP || !slices.Contains(s.ports, m.DstPort) {
			continue
		}
		b := n.arena.Bytes(r)
		at := int(m.L4) + wire.UDPLen
		if m.Flags&frame.HasRoCE != 0 && !isRoCEData(b[at]) {
			continue
		}
		size := s.codec.HeaderLen()
		if untagged(m)+uint32(size) > pp.maxFrame {
			n.count.INTSkipped++
			continue
		}
		if b = wire.InsertUDP(n.arena, r, at, size); b == nil {
			n.count.INTSkipped++
			continue
		}
		var head [wire.HPCCLen]byte // the longest empty header
		s.codec.InitPort(head[:size], m.DstPort)
		wire.PatchUDP(m, b, at, head[:size])
		wire.SetUDPDst(m, b, s.codec.Mode().Port())
		m.INT = uint16(at)
		m.Flags |= frame.HasINT
		n.count.INTSourced++
	}
}

// isRoCEData reports whether an RC opcode carries payload of a message (IBTA
// volume 1, table 38).
func isRoCEData(op uint8) bool {
	switch {
	case op <= wire.RCWriteOnlyImmediate:
		return true
	case op >= wire.RCReadResponseFirst && op <= wire.RCReadResponseOnly:
		return true
	}
	return op == wire.RCSendLastInvalidate || op == wire.RCSendOnlyInvalidate
}

// takeTelemetry takes the header out of a frame that leaves by a sink port.
func (n *Node) takeTelemetry(t *telemetryProgram, r frame.Ref, m *frame.Meta) {
	b := n.arena.Bytes(r)
	size, port, why := wire.TelemetryLen(b, int(m.INT), len(b), m.DstPort)
	if why != frame.Keep || size == 0 {
		return
	}
	if n.sunk == nil {
		n.sunk = new(sinkRing)
	}
	rec := &n.sunk.rec[n.sunk.next%SinkRecords]
	codec := &t.codecs[inband.ModeOf(m.DstPort)]
	if _, why := codec.Decode(b[m.INT:], &rec.Path); why == frame.Keep { // else it is of another domain: out with it, unread
		rec.Path.Age = m.Depart
		rec.Port, rec.Hash, rec.SrcPort, rec.DstPort = m.OutPort, m.Hash, m.SrcPort, port
		n.sunk.next++
	}
	b = wire.RemoveUDP(n.arena, r, int(m.INT), size)
	wire.SetUDPDst(m, b, port)
	m.INT = 0
	m.Flags &^= frame.HasINT
	n.count.INTSunk++
}

// ReadSink appends the last records that this worker's sink ports took out of
// frames, oldest first.
func (n *Node) ReadSink(to []SinkRecord) []SinkRecord {
	if n.sunk == nil {
		return to
	}
	first := n.sunk.next - min(n.sunk.next, SinkRecords)
	for i := first; i < n.sunk.next; i++ {
		to = append(to, n.sunk.rec[i%SinkRecords])
	}
	return to
}
