package config

import (
	"gswitch/scheduler"
	"gswitch/units"
)

// PushOut bounds what waits at a port, and drops the least valuable.
type PushOut struct {
	Port  units.Size `yaml:"port" doc:"Most bytes in all queues of a port. What goes then is of the lowest strict queue that has a frame, or the longest of a level of weights. No limit if left out."`
	Queue units.Size `yaml:"queue" doc:"Most bytes in each queue. No limit if left out."`
}

// Config returns what ports take.
func (p *PushOut) Config() scheduler.PushOut {
	return scheduler.PushOut{Port: uint64(p.Port), Queue: uint64(p.Queue)}
}

// fullFrame is a frame of the usual MTU with a VLAN tag.
const fullFrame = 1518

// Check returns what is wrong with the limits, and with which of them.
func (p *PushOut) Check() (key, problem string) {
	const small = "holds no full frame; write at least 1518B, or leave it out for no limit"
	switch {
	case p.Port != 0 && p.Port < fullFrame:
		return "port", small
	case p.Queue != 0 && p.Queue < fullFrame:
		return "queue", small
	}
	return "", ""
}

// validatePushOut checks the limits of a profile.
func (d decoder) validatePushOut(s *Switch, profile, path string) {
	p := s.QoS[profile].PushOut
	key, problem := p.Check()
	switch {
	case problem != "":
		d.Fail(path+"."+key, "%s", problem)
	case p.Port == 0 && p.Queue == 0:
		d.Fail(path, "has no limit; write port or queue, or take it out")
	case s.Crossbar != nil:
		d.Fail(path, "cannot stand beside crossbar, whose queues hold back what does not fit; take one of the two out")
	case s.Escape != nil:
		d.Fail(path, "cannot stand beside escape, whose places are those of the shared buffer; take one of the two out")
	}
}
