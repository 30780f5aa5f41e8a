package main

import (
	"strconv"

	"gswitch/frame"
	"gswitch/units"
	"gswitch/vswitch"
)

// name is the key of the feature in a queue profile, in the switches of a
// scenario, and the verb of gswitch show that shows its counters.
const name = "sizes"

// section is what documents say of it.
type section struct {
	Large units.Size `yaml:"large" range:"64,65535" default:"1000B" doc:"Frames of more bytes are large."`
}

// options are those of a port.
type options struct {
	queues uint8 // a bitmap
	large  uint32
}

// Options implements vswitch.Section.
func (s *section) Options(queues uint8, _ uint64) (any, error) {
	return options{queues, uint32(s.Large)}, nil
}

func init() {
	vswitch.Register(vswitch.Feature{Name: name, New: newSizes,
		Section: func() vswitch.Section { return new(section) },
		Doc:     "Large and small frames that leave are counted.",
		Check:   func(*vswitch.Config) error { return nil },
		Counters: []vswitch.Counter{{Name: "sizes_frames_total", Help: "Frames that left, by their size.",
			Labels: []string{"queue", "size"}, Values: []string{"small", "large"}}}})
}

// sizes is what a worker counts at its ports.
type sizes struct {
	arena *frame.Arena
	ports []port // by number
}

type port struct {
	options
	frames [8][2]uint64
}

func newSizes(n *vswitch.Node) vswitch.Instance {
	s := &sizes{arena: n.Arena()}
	return vswitch.Instance{State: s, Port: s.adopt, Dismiss: s.dismiss, Departs: s.departs, Read: s.read}
}

func (s *sizes) adopt(_ frame.Time, at uint16, c *vswitch.PortConfig) vswitch.Stages {
	for len(s.ports) <= int(at) {
		s.ports = append(s.ports, port{})
	}
	o, on := c.Options[name].(options)
	if !on {
		s.dismiss(at)
		return 0
	}
	s.ports[at].options = o
	return vswitch.AtDeparts
}

// dismiss removes a port.
func (s *sizes) dismiss(at uint16) {
	if int(at) < len(s.ports) {
		s.ports[at] = port{}
	}
}

func (s *sizes) departs(at uint16, v []frame.Ref) {
	p := &s.ports[at]
	for _, r := range v {
		m := s.arena.Meta(r)
		large := 0
		if m.Wire > p.large {
			large = 1
		}
		p.frames[m.Queue&7][large]++
	}
}

func (s *sizes) read(emit func(counter int, port uint16, value float64, labels ...string)) {
	for at := range s.ports {
		p := &s.ports[at]
		for q := range p.frames {
			if p.queues>>q&1 != 0 {
				emit(0, uint16(at), float64(p.frames[q][0]), strconv.Itoa(q), "small")
				emit(0, uint16(at), float64(p.frames[q][1]), strconv.Itoa(q), "large")
			}
		}
	}
}
