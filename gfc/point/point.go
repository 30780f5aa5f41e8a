// Package point slows the neighbours of a switch's ports in place of pausing
// them: Gentle Flow Control (Qian et al., "Gentle Flow Control: Avoiding Deadlock
// in Lossless Networks", SIGCOMM 2019, section 5). When a stage begins is
// arithmetic of package buffer, its frames are those of package pfc, the gaps
// that it leaves between frames those of package scheduler; this package joins
// them. Importing it registers the feature.
package point

import (
	"fmt"

	"gswitch/buffer"
	"gswitch/frame"
	"gswitch/pfc"
	"gswitch/scheduler"
	"gswitch/units"
	"gswitch/vswitch"
)

// Name is the key of a Config in vswitch.Config.Options.
const Name = "gfc"

// Config slows the neighbours of all ports of a switch. The threshold XOFF of
// lossless classes is the first of its thresholds, and must be a fixed one.
type Config struct {
	Stages uint8  // the last one
	Span   uint64 // bytes from the first threshold to the full buffer; 0: the least that is safe
}

// Section is gfc in documents.
type Section struct {
	Stages int        `yaml:"stages" range:"1,15" default:"15" doc:"The last stage, C/2^stages: the least rate, which never ends. Where all neighbours together bring more by it than leaves, frames are lost in the end."`
	Span   units.Size `yaml:"span" range:"0,4294967295" doc:"Bytes from xoff, the first threshold, to the full buffer. The least that is safe, 2C times the time that a stage takes to act, if left out."`
}

// Options returns the Config of a switch.
func (s *Section) Options(cfg *vswitch.Config) (any, error) {
	if cfg.PFC.Mode != pfc.PFC || cfg.PFC.Classes == 0 {
		return nil, fmt.Errorf("slows lossless classes, of which there are none: turn priority flow control on")
	}
	c := Config{Stages: uint8(s.Stages), Span: uint64(s.Span)}
	return c, c.fits(cfg)
}

func init() {
	vswitch.Register(vswitch.Feature{Name: Name, Check: check, Divide: divide, FlowControl: flowControl, New: newPorts,
		Whole: func() vswitch.WholeSection { return new(Section) },
		Doc:   "Gentle Flow Control (GFC): from the threshold xoff on a port slows its neighbour to half of the link's rate, and to half of what is left at each further threshold, in place of pausing it. The neighbours must do so, too."})
}

// of returns the options of a switch, and whether it has any.
func of(cfg *vswitch.Config) (Config, bool) {
	c, on := cfg.Options[Name].(Config)
	return c, on
}

// check reports what stands against slowing neighbours.
func check(cfg *vswitch.Config) error {
	if c, on := of(cfg); on {
		if err := c.fits(cfg); err != nil {
			return fmt.Errorf("gfc: %w", err)
		}
	}
	return nil
}

// fits reports what stands against the options in a switch.
func (c *Config) fits(cfg *vswitch.Config) error {
	switch {
	case c.Stages == 0:
		return fmt.Errorf("there is no stage; one to %d are possible", pfc.MaxStages)
	case cfg.Buffer.XOFF == 0:
		return fmt.Errorf("begins at a fixed threshold: set xoff of the buffer")
	}
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		if p.Name == "" {
			continue
		}
		flow := pfc.Config{Mode: cfg.PFC.Mode, Enable: cfg.PFC.Classes, Stages: c.Stages}
		if err := flow.Validate(); err != nil {
			return fmt.Errorf("port %s: %w", p.Name, err)
		}
		if p.Scheduler.Rate == 0 {
			return fmt.Errorf("port %s needs a rate, of which stages are parts", p.Name)
		}
	}
	return nil
}

// divide gives the lossless classes at a port stages in place of one threshold.
func divide(cfg *vswitch.Config, _ *vswitch.PortConfig, b *buffer.PortConfig) {
	c, on := of(cfg)
	if !on {
		return
	}
	for class := range b.Groups {
		if g := &b.Groups[class]; g.Lossless {
			g.Stages, g.Span = c.Stages, c.Span
			if g.Span != 0 { // which is of exact nodes, as what is computed is not
				g.Span += 2 * buffer.Headroom(buffer.Link{Rate: b.Link.Rate, Response: cfg.Buffer.Lateness}, 0).Response
			}
			if g.Limit.Bytes != 0 {
				g.Limit.Alpha = 0
			}
		}
	}
}

// flowControl has both ends of a link send stages.
func flowControl(cfg *vswitch.Config, f *pfc.Config) {
	if c, on := of(cfg); on {
		f.Stages = c.Stages
	}
}

// ports are those of a worker.
type ports struct {
	node   *vswitch.Node
	on     bool
	all    pfc.Stages // all lossless classes in the last stage
	queue  [8]uint8   // of each class
	slowed []bool     // ports with gaps between frames
}

func newPorts(n *vswitch.Node) vswitch.Instance {
	p := &ports{node: n}
	return vswitch.Instance{State: p, Adopt: p.adopt, Port: p.port, Dismiss: p.dismiss, Paused: p.paused, Requests: p.requests, Advance: p.advance}
}

// adopt brings the worker in line with the configuration. Neighbours are asked anew by
// the method advance, once the buffer has been divided anew.
func (p *ports) adopt(frame.Time) {
	cfg := p.node.Config()
	_, on := of(cfg)
	if on || p.on {
		p.node.Arm(0)
	}
	p.on, p.all, p.queue = on, 0, cfg.Class.Queue
	for class := range 8 {
		if cfg.Lossless(class) {
			p.all = p.all.With(class, pfc.MaxStages)
		}
	}
}

func (p *ports) port(_ frame.Time, port uint16, _ *vswitch.PortConfig) vswitch.Stages {
	for len(p.slowed) <= int(port) {
		p.slowed = append(p.slowed, false)
	}
	if p.slowed[port] {
		p.slow(port) // its classes may have other queues now, or pauses again
	}
	if p.on {
		return vswitch.AtPaused | vswitch.AtRequests
	}
	return 0
}

func (p *ports) dismiss(port uint16) {
	if int(port) < len(p.slowed) {
		p.slowed[port] = false
	}
}

func (p *ports) paused(_ frame.Time, port uint16) { p.slow(port) }

// slow brings the queues of a port in line with what its neighbour slows. One
// that serves several classes follows the slowest.
func (p *ports) slow(port uint16) {
	var stage [scheduler.NumQueues]uint8
	flow, queues := p.node.PFC(port), p.node.Scheduler(port)
	p.slowed[port] = false
	for c, q := range p.queue {
		stage[q&7] = max(stage[q&7], flow.Stage(c))
	}
	for q, s := range stage {
		queues.Slow(q, s)
		p.slowed[port] = p.slowed[port] || s != 0
	}
}

// requests asks the neighbour at a port for the stages that the buffer wants, and
// for the last ones where frames run out.
func (p *ports) requests(port uint16, f *pfc.Port) {
	if p.node.ShortOfFrames() {
		f.RequestStages(p.all)
		return
	}
	f.RequestStages(pfc.Stages(p.node.Stages(port)))
}

// advance asks all neighbours anew when the configuration has changed.
func (p *ports) advance(now frame.Time) frame.Time {
	for port := range p.slowed {
		if p.node.Owns(uint16(port)) {
			p.node.Request(now, uint16(port))
		}
	}
	return frame.Never
}
