// Package point is the in-band telemetry of a switch (package inband): it writes
// the switch's record into data frames that ask for it, and at the edge of a
// telemetry domain puts headers into frames and takes them out. Importing it
// registers the feature.
package point

import (
	"gswitch/frame"
	inband "gswitch/int"
	"gswitch/vswitch"
)

// ready marks frames that have room for this switch's record.
var ready = vswitch.NewMark()

func init() {
	vswitch.Register(vswitch.Feature{Name: Name, Check: check, New: newPorts, Counters: counters, Aliases: []string{"telemetry"},
		Doc: "In-band telemetry: what became of the switch's records in data frames, and of headers at the edge of the domain."})
}

// ports is the telemetry of a worker's ports.
type ports struct {
	node  *vswitch.Node
	arena *frame.Arena

	// on says whether frames get records. What follows stays when it is turned
	// off: frames that were prepared may still be queued.
	on        bool
	stamper   inband.Stamper
	signal    inband.Signal
	wholePort bool
	ports     []port

	codecs [4]inband.Codec // by format: what a sink reads with
	sunk   *sinkRing       // what sinks took out; nil until the first
}

// port is that of one of the switch.
type port struct {
	code     uint8   // of its rate
	overhead uint32  // bytes that the link adds to a frame
	maxFrame uint32  // bytes with Ethernet header, without tags and FCS
	source   *source // nil: it is none
	sink     bool
	count    portCounts
}

func newPorts(n *vswitch.Node) vswitch.Instance {
	p := &ports{node: n, arena: n.Arena()}
	return vswitch.Instance{State: p, Adopt: p.adopt, Admits: p.admits, Admitted: p.admitted, Port: p.port, Forwards: p.prepare, Sends: p.sends, Read: p.read}
}

// adopt brings the worker in line with the configuration.
func (p *ports) adopt(frame.Time) {
	cfg := p.node.Config()
	c, on := cfg.Options[Name].(Config)
	for len(p.ports) < len(cfg.Ports) {
		p.ports = append(p.ports, port{})
	}
	p.on = on
	for i := range p.ports {
		p.ports[i].source, p.ports[i].sink = nil, false
	}
	if !on {
		return
	}
	p.stamper, _ = inband.NewStamper(uint32(cfg.ID), c.Profile) // checked
	p.signal, p.wholePort = c.Signal, c.WholePort
	for mode := range p.codecs {
		p.codecs[mode] = inband.NewCodec(inband.Mode(mode), c.Profile)
	}
	for i := range cfg.Ports {
		pc, at := &cfg.Ports[i], &p.ports[i]
		if pc.Name == "" {
			continue
		}
		link := pc.Link(&cfg.Buffer)
		at.code, at.overhead, at.maxFrame = p.stamper.Code(link.Rate), link.Overhead, link.MaxFrame-fcs
		e, _ := pc.Options[Name].(Edge)
		at.sink = e.Sink
		if e.Source != inband.None {
			at.source = newSource(&e, c.Profile)
		}
	}
}

// fcs is the length of the frame check sequence.
const fcs = 4

func (p *ports) admits(port uint16, _ *vswitch.PortConfig) bool { return p.ports[port].source != nil }

func (p *ports) port(frame.Time, uint16, *vswitch.PortConfig) vswitch.Stages { return vswitch.AtSends }

// prepare makes room for this switch's record in frames with telemetry that are
// about to be queued.
func (p *ports) prepare(_ frame.Time, v []frame.Ref) {
	if !p.on {
		return
	}
	for _, r := range v {
		if m := p.arena.Meta(r); m.Flags&(frame.HasINT|frame.ToLocal) == frame.HasINT {
			at := &p.ports[m.OutPort]
			out := p.stamper.Prepare(p.arena, r, at.maxFrame)
			if at.count.records[out]++; out == inband.Ready {
				m.Marks |= ready
			}
		}
	}
}

// sends finishes frames with telemetry that leave.
func (p *ports) sends(n uint16, v []frame.Ref) {
	at := &p.ports[n]
	for i, r := range v {
		m := p.arena.Meta(r)
		if m.Flags&frame.HasINT == 0 {
			continue
		}
		if m.Marks&ready != 0 {
			m.Marks &^= ready
			p.stamp(n, at, r, m, v[i+1:])
		}
		if at.sink {
			p.takeOut(at, r, m)
		}
	}
}

// stamp writes the record into a frame that leaves. later are the frames that
// leave after it in the same vector: they were still behind it.
func (p *ports) stamp(n uint16, at *port, r frame.Ref, m *frame.Meta, later []frame.Ref) {
	d := inband.Departure{Port: n, Code: at.code, TS: uint64(p.node.Synchronised(m.Depart)), Tx: m.TxBytes, Q: uint64(m.QBytes)}
	if p.wholePort || p.signal == inband.RxBytes {
		frames, behind := p.node.Scheduler(n).Backlog()
		for _, l := range later {
			behind += uint64(p.arena.Meta(l).Wire)
		}
		if p.wholePort {
			d.Q = behind
		}
		if p.signal == inband.RxBytes { // TxBytes counts what the link adds, too
			d.Tx += behind + uint64(frames+len(later))*uint64(at.overhead)
		}
	}
	p.stamper.Stamp(m, p.arena.Bytes(r), &d)
}
