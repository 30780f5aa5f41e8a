package vswitch

import (
	"fmt"
	"math/bits"

	"gswitch/frame"
	"gswitch/pfc"
)

// GentleConfig slows neighbours in place of pausing them: Gentle Flow Control
// (see pfc.Stages and buffer.Buffer.Stages). The threshold XOFF of lossless
// classes is the first of its thresholds, and must be a fixed one.
type GentleConfig struct {
	Stages uint8  // the last one; 0: pause
	Span   uint64 // bytes from the first threshold to the full buffer; 0: the least that is safe
}

// validateGentle reports what stands against slowing neighbours.
func (cfg *Config) validateGentle() error {
	if cfg.PFC.Gentle.Stages == 0 {
		return nil
	}
	worker := -1
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		if p.Name == "" {
			continue
		}
		if worker < 0 {
			worker = p.Worker
		}
		check := pfc.Config{Mode: cfg.PFC.Mode, Enable: cfg.PFC.Classes, Stages: cfg.PFC.Gentle.Stages, Dog: cfg.Dog(uint16(i))}
		if err := check.Validate(); err != nil {
			return fmt.Errorf("port %s: %w", p.Name, err)
		}
		switch {
		case p.Worker != worker:
			return fmt.Errorf("gentle flow control: port %s belongs to another worker than the ports before it; give all to one", p.Name)
		case p.Scheduler.Rate == 0:
			return fmt.Errorf("gentle flow control: port %s needs a rate, of which stages are parts", p.Name)
		}
	}
	return nil
}

// stages returns how much this worker's buffer wants the neighbour at a port
// slowed.
func (n *Node) stages(port uint16) (s pfc.Stages) {
	if !n.short {
		return pfc.Stages(n.buffer.Stages(port))
	}
	for m := n.losslessClasses; m != 0; m &= m - 1 {
		s = s.With(bits.TrailingZeros8(m), pfc.MaxStages)
	}
	return s
}

// slow brings the queues of a port in line with what its neighbour slows. One
// that serves several classes follows the slowest.
func (n *Node) slow(ps *portState) {
	var stage [8]uint8
	for c, q := range n.prog.class.Queue {
		stage[q&7] = max(stage[q&7], ps.pfc.Stage(c))
	}
	for q, s := range stage {
		ps.sched.Slow(q, s)
	}
}

// regrade tells the neighbours of own ports what they should be slowed to,
// where the configuration has changed.
func (n *Node) regrade(now frame.Time) {
	if n.gentle = n.prog.Config.PFC.Gentle.Stages != 0; !n.gentle {
		return
	}
	for i := range n.ports {
		if n.ports[i].pfc != nil {
			n.request(now, uint16(i))
		}
	}
}
