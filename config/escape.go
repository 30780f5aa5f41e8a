package config

import (
	"fmt"
	"slices"

	"gswitch/section"
	"gswitch/units"

	"gswitch/escape"
	"gswitch/escape/point"
	"gswitch/frame"
)

// config returns what a resolved switch has.
func (e *Escape) config() point.Config {
	return point.Config{Queue: uint8(e.Queue), Period: frame.Time(e.Period),
		Config: escape.Config{Slots: e.Slots, Flows: e.Flows, PerFlow: e.PerFlow, Reclaim: frame.Time(e.Reclaim), Printed: e.Printed}}
}

// validateEscape checks what a switch lets frames escape by.
func (d decoder) validateEscape(c *Config, s *Switch, path string) {
	if s.Escape == nil {
		return
	}
	path += ".escape"
	e := *s.Escape
	section.Fill(&e)
	for i, name := range e.Ports {
		d.havePort(s, fmt.Sprintf("%s.ports[%d]", path, i), name)
	}
	if len(e.Ports) == 0 {
		d.Fail(path+".ports", "names no port: frames escape by ports whose neighbours take part")
	}
	if e.Period < units.Microsecond {
		d.Fail(path+".period", "%s is less than a microsecond", e.Period)
	}
	if e.Reclaim != 0 && e.Reclaim < units.Microsecond || frame.Time(e.Reclaim) > escape.MaxReclaim {
		d.Fail(path+".reclaim", "%s is not between 1us and 1h", e.Reclaim)
	}
	if len(s.PFC.Classes) == 0 && d.OK() { // else the key may be misspelt
		d.Fail(path, "has nothing to escape from: give the switch lossless classes (pfc.classes)")
	}
	d.validateEscapeQueue(s, &e, path+".queue")
	d.validateEscapeWorker(c, s, path)
}

// linkOverhead is preamble, checksum and gap of a frame, in bytes.
const linkOverhead = 24

// leaves is how long the frames in all places of the slowest port take to leave,
// 0 where no port has a rate.
func (e *Escape) leaves(s *Switch) units.Duration {
	slowest, bytes := units.Rate(0), 0
	for i := range s.Ports {
		p := &s.Ports[i]
		if r := p.Rate; r != 0 && slices.Contains(e.Ports, p.name()) && (slowest == 0 || r < slowest) {
			slowest, bytes = r, p.MTU+14+linkOverhead
		}
	}
	return units.Duration(escape.Leaves(e.Slots, bytes, uint64(slowest)))
}

// defaultReclaim is for workers that may be some milliseconds late.
const defaultReclaim = 5 * units.Millisecond

// resolve writes out what follows from the ports.
func (e *Escape) resolve(s *Switch) {
	if e.Reclaim == 0 {
		e.Reclaim = min(max(defaultReclaim, 2*e.leaves(s)), units.Duration(escape.MaxReclaim))
	}
}

// warn tells of a time after which most tokens count as lost while their frames
// are on the way.
func (e *Escape) warn(d decoder, s *Switch, path string) {
	if least := e.leaves(s); e.Reclaim != 0 && e.Reclaim < least {
		d.Fail(path+".reclaim", "tokens count as lost after %s, and at the slowest of the ports the frames in all %d places take %s to leave: write %s or more, fewer slots, or leave it out", e.Reclaim, e.Slots, least, 2*least)
	}
}

// validateEscapeQueue checks that the queue is above what frames escape from,
// and nobody else's.
func (d decoder) validateEscapeQueue(s *Switch, e *Escape, path string) {
	queues := s.Classes.Queue
	if len(queues) != 8 {
		queues = []int{0, 1, 2, 3, 4, 5, 6, 7}
		queues[e.Queue] = 7
	}
	for class, q := range queues {
		switch {
		case q == e.Queue:
			d.Fail(path, "%d is the queue of class %d; give that class another one in classes.queue", q, class)
			return
		case q > e.Queue && slices.Contains(s.PFC.Classes, class):
			d.Fail(path, "%d is below queue %d of lossless class %d, and what escapes must go first; put the class in a lower queue (classes.queue), or use a lossless class below %d", e.Queue, q, class, e.Queue)
			return
		}
	}
	for i := range s.Ports {
		profile := s.Ports[i].QoS
		for _, q := range s.QoS[profile].Queues {
			if q.Queue == e.Queue && q.Weight != 0 {
				d.Fail(path, "%d has a weight in qos.%s, which port %s has; frames escape in a strict queue", e.Queue, profile, s.Ports[i].name())
				return
			}
		}
	}
}

// validateEscapeWorker checks that one worker has all ports: who may leave by
// one is decided by what was asked at another.
func (d decoder) validateEscapeWorker(c *Config, s *Switch, path string) {
	first := -1
	for i := range s.Ports {
		w := s.Ports[i].worker(i, len(c.Workers))
		if first < 0 {
			first = w
		}
		if w != first {
			d.Fail(path, "port %s belongs to worker %d, port %s to worker %d; give all ports of the switch to one (ports[].workers)", s.Ports[0].name(), first, s.Ports[i].name(), w)
			return
		}
	}
}
