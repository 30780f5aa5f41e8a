// Package link gives the links of a switch's ports phantom queues of HULL
// (package hull), which mark frames as they leave. Importing it registers the
// feature.
package link

import (
	"fmt"
	"strconv"

	"gswitch/feature"
	"gswitch/frame"
	"gswitch/hull"
	"gswitch/units"
	"gswitch/vswitch"
)

// Name is the key of a Config in vswitch.PortConfig.Options.
const Name = "hull"

// Config gives the link of a port a phantom queue.
type Config struct {
	// Queues is a bitmap of the egress queues whose frames count and are marked.
	Queues uint8
	Params hull.Params
}

// Section is hull in documents.
type Section struct {
	Drain     float64    `yaml:"drain" range:"0.01,1" default:"0.95" doc:"Share of the link's rate at which the phantom queue drains: what is left of it is the price."`
	Threshold units.Size `yaml:"threshold" range:"1,1073741824" default:"6KB" doc:"Length of the phantom queue above which frames are marked."`
}

// Options returns the Config of a port.
func (s *Section) Options(queues uint8, rate uint64) (any, error) {
	if rate == 0 {
		return nil, fmt.Errorf("the port has no rate, of which the phantom queue drains at a part; give it one")
	}
	c := Config{Queues: queues, Params: hull.Params{Drain: s.Drain, Threshold: uint32(s.Threshold)}}
	return c, c.Params.Validate()
}

func init() {
	vswitch.Register(vswitch.Feature{Name: Name, Check: check, New: newLinks, Counters: counters,
		Section: func() vswitch.Section { return new(Section) },
		Doc:     "Phantom queues (HULL): frames of these queues are marked by a counter at the link that drains at somewhat less than its rate, before a real queue forms.",
		Signals: feature.EchoedMarks})
}

func check(cfg *vswitch.Config) error {
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		o, on := p.Options[Name].(Config)
		if !on {
			continue
		}
		if err := o.Params.Validate(); err != nil {
			return fmt.Errorf("port %s: %w", p.Name, err)
		}
		if p.Scheduler.Rate == 0 {
			return fmt.Errorf("port %s: hull: the port has no rate, of which the phantom queue drains at a part", p.Name)
		}
	}
	return nil
}

// links are the phantom queues of a worker's ports.
type links struct {
	arena *frame.Arena
	ports []*link // nil where there is none
}

type link struct {
	*hull.Phantom
	queues   uint8
	overhead uint32 // bytes that the link adds to a frame
	marked   [8]uint64
}

func newLinks(n *vswitch.Node) vswitch.Instance {
	l := &links{arena: n.Arena()}
	return vswitch.Instance{State: l, Port: l.adopt, Dismiss: l.dismiss, Departs: l.departs, Read: l.read}
}

// adopt brings the phantom queue of a port in line with its options.
func (l *links) adopt(_ frame.Time, port uint16, c *vswitch.PortConfig) vswitch.Stages {
	o, on := c.Options[Name].(Config)
	if !on {
		l.dismiss(port)
		return 0
	}
	for len(l.ports) <= int(port) {
		l.ports = append(l.ports, nil)
	}
	if p := l.ports[port]; p == nil {
		l.ports[port] = &link{Phantom: hull.NewPhantom(&o.Params, c.Scheduler.Rate)}
	} else {
		p.Configure(&o.Params, c.Scheduler.Rate)
	}
	l.ports[port].queues, l.ports[port].overhead = o.Queues, c.Scheduler.Overhead
	return vswitch.AtDeparts
}

func (l *links) dismiss(port uint16) {
	if int(port) < len(l.ports) {
		l.ports[port] = nil
	}
}

// departs shows the phantom queue of a port what it sends.
func (l *links) departs(port uint16, v []frame.Ref) {
	p := l.ports[port]
	for _, r := range v {
		m := l.arena.Meta(r)
		if p.queues>>(m.Queue&7)&1 == 0 || m.Flags&frame.IsMACControl != 0 {
			continue
		}
		if p.Depart(m.Depart, m.Wire+p.overhead) && m.Flags&frame.IsECT != 0 {
			m.Flags |= frame.MarkCE
			p.marked[m.Queue&7]++
		}
	}
}

var counters = []vswitch.Counter{
	{Name: "hull_marked_packets_total", Help: "Frames that the phantom queue of the link chose for an ECN mark.", Labels: []string{"queue"}},
}

func (l *links) read(emit func(counter int, port uint16, value float64, labels ...string)) {
	for i, p := range l.ports {
		for q := 0; p != nil && q < len(p.marked); q++ {
			if p.queues>>q&1 != 0 {
				emit(0, uint16(i), float64(p.marked[q]), strconv.Itoa(q))
			}
		}
	}
}
