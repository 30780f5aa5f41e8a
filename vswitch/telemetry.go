package vswitch

import (
	"fmt"

	"gswitch/frame"
	inband "gswitch/int"
)

// TelemetryConfig describes the in-band telemetry of a switch: what it writes
// into data frames that ask for it. The zero value passes them on untouched.
type TelemetryConfig struct {
	Enabled bool
	Profile *inband.Profile // units and rate codes of the network; nil = those of the HPCC paper
	Signal  inband.Signal   // which bytes the byte counter counts
	// WholePort stamps the bytes that wait in all queues of the port in place
	// of those in the frame's own.
	WholePort bool
}

// telemetryProgram is the telemetry of a Program. A program without has none
// if there never was any, else that of the last one with, turned off: frames
// that were prepared by it may still be queued.
type telemetryProgram struct {
	on        bool
	stamper   inband.Stamper
	signal    inband.Signal
	wholePort bool
	codes     [MaxPorts]uint8  // rate code by port
	overhead  [MaxPorts]uint32 // bytes that the link adds to a frame, by port

	profile *inband.Profile
	codecs  [4]inband.Codec // by format: what a sink reads with
	sources [MaxPorts]*source
	sink    [MaxPorts]bool
}

func (p *Program) compileTelemetry(cfg *Config) error {
	c := &cfg.Telemetry
	if !c.Enabled {
		for i := range cfg.Ports {
			if e := &cfg.Ports[i].Telemetry; e.Sink || e.Source != inband.None {
				return fmt.Errorf("switch %s port %s: it is a telemetry source or sink, but the switch's telemetry is off", cfg.Name, cfg.Ports[i].Name)
			}
		}
		return nil
	}
	s, err := inband.NewStamper(uint32(cfg.ID), c.Profile)
	if err != nil {
		return fmt.Errorf("switch %s: %w", cfg.Name, err)
	}
	t := &telemetryProgram{on: true, stamper: s, signal: c.Signal, wholePort: c.WholePort, profile: c.Profile}
	for mode := range t.codecs {
		t.codecs[mode] = inband.NewCodec(inband.Mode(mode), c.Profile)
	}
	for i := range cfg.Ports {
		if cfg.Ports[i].Name == "" {
			continue
		}
		t.codes[i], t.overhead[i] = s.Code(cfg.Ports[i].rate()), cfg.Ports[i].Scheduler.Overhead
		if err := t.compileEdge(i, &cfg.Ports[i]); err != nil {
			return fmt.Errorf("switch %s %w", cfg.Name, err)
		}
		p.ports[i].source = t.sources[i]
	}
	p.telemetry = t
	return nil
}

// keepTelemetry lets frames that wait under the old program be finished.
func (p *Program) keepTelemetry(old *Program) {
	if p.telemetry != nil || old == nil || old.telemetry == nil {
		return
	}
	t := *old.telemetry
	t.on, t.sink = false, [MaxPorts]bool{}
	p.telemetry = &t
}

// instrument makes room for this switch's record in a frame with telemetry
// that is about to be queued.
func (n *Node) instrument(r frame.Ref, pp *portProgram) {
	if t := n.prog.telemetry; t != nil && t.on {
		n.count.Telemetry[t.stamper.Prepare(n.arena, r, pp.maxFrame)]++
	}
}

// telemetryOut finishes a frame with telemetry that leaves.
func (n *Node) telemetryOut(ps *portState, r frame.Ref, m *frame.Meta, later []frame.Ref) {
	if m.Flags&frame.Stamped != 0 {
		n.stamp(ps, r, m, later)
	}
	if t := n.prog.telemetry; t != nil && t.sink[m.OutPort&(MaxPorts-1)] {
		n.takeTelemetry(t, r, m)
	}
}

// stamp writes the record into a frame that leaves. later are the frames that
// leave after it in the same vector: they were still behind it.
func (n *Node) stamp(ps *portState, r frame.Ref, m *frame.Meta, later []frame.Ref) {
	t := n.prog.telemetry
	d := inband.Departure{Port: m.OutPort, Code: t.codes[m.OutPort&(MaxPorts-1)], TS: uint64(m.Depart), Tx: m.TxBytes, Q: uint64(m.QBytes)}
	if t.wholePort || t.signal == inband.RxBytes {
		frames, behind := ps.sched.Backlog()
		for _, l := range later {
			behind += uint64(n.arena.Meta(l).Wire)
		}
		if t.wholePort {
			d.Q = behind
		}
		if t.signal == inband.RxBytes { // TxBytes counts what the link adds, too
			d.Tx += behind + uint64(frames+len(later))*uint64(t.overhead[m.OutPort&(MaxPorts-1)])
		}
	}
	t.stamper.Stamp(m, n.arena.Bytes(r), &d)
}
