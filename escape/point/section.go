package point

import (
	"fmt"
	"slices"

	"gswitch/escape"
	"gswitch/frame"
	"gswitch/pfc"
	"gswitch/units"
	"gswitch/vswitch"
)

// Keys are what escape has in documents of switches and in scenarios alike.
type Keys struct {
	Slots   int            `yaml:"slots" range:"1,65536" default:"64" doc:"Frames that have a place in the escape queue of a port."`
	Flows   int            `yaml:"flows" range:"1,65536" default:"256" doc:"Flows of a port that are known, the last ones."`
	PerFlow int            `yaml:"per_flow" range:"1,65536" default:"64" doc:"Tokens of a flow that may be out at once."`
	Reclaim units.Duration `yaml:"reclaim" doc:"Time after which the place of a token that came to nothing is free again: longer than a token and its frame take through the network. 5ms, 100us in scenarios, if left out, or where that is longer twice the time that all places of the slowest port between switches take to leave."`
	Printed bool           `yaml:"printed" doc:"true: the algorithm as printed, but for its line 31 (docs/algorithms/escape.md): one token a round for each of as many flows as there are places, no requests for tokens, no waits. Flows may get out of order, and circles of flows that no switch with an open port knows stay closed."`

	leaves units.Duration // how long all places of the slowest of the ports take to leave
}

// Section is escape in documents of switches.
type Section struct {
	Ports []string `yaml:"ports" need:"yes" doc:"The ports whose neighbours are switches that do so too."`
	Queue int      `yaml:"queue" range:"0,6" default:"6" doc:"Queue in which frames escape: strict, of no class, above those of the lossless classes. Where classes.queue is left out, the class of its number goes to queue 7."`
	// Workers are late at times, so a round is longer than in a scenario.
	Period units.Duration `yaml:"period" default:"20us" doc:"Time from one round of tokens to the next: about twice the delay of a link, the loops of the workers included."`
	Keys
}

// Virtual is escape in scenarios: frames escape on every link between switches, so that
// it names no ports, and no worker is late.
type Virtual struct {
	Period units.Duration `yaml:"period" default:"2us" doc:"Time from one round of tokens to the next: about twice the delay of a link."`
	Keys
}

// config returns the places and tokens.
func (k *Keys) config() escape.Config {
	return escape.Config{Slots: k.Slots, Flows: k.Flows, PerFlow: k.PerFlow, Reclaim: frame.Time(k.Reclaim), Printed: k.Printed}
}

// resolve fills in Reclaim, least or longer, by the ports of which of is true.
func (k *Keys) resolve(least units.Duration, ports []vswitch.PortConfig, of func(name string) bool) {
	k.leaves = leaves(k.Slots, ports, of)
	if k.Reclaim == 0 {
		k.Reclaim = min(max(least, 2*k.leaves), units.Duration(escape.MaxReclaim))
	}
}

// warn reports a Reclaim after which most tokens count as lost while their frames are on
// the way.
func (k *Keys) warn(where string) error {
	if k.Reclaim == 0 || k.Reclaim >= k.leaves {
		return nil
	}
	return wrong("reclaim", "tokens count as lost after %s, and at %s the frames in all %d places take %s to leave: write %s or more, fewer slots, or leave it out", k.Reclaim, where, k.Slots, k.leaves, 2*k.leaves)
}

// lateReclaim is for workers that may be some milliseconds late.
const lateReclaim = 5 * units.Millisecond

// linkOverhead is preamble, checksum and gap of a frame, in bytes.
const linkOverhead = 24

// leaves is how long the frames in all places of the slowest of some ports take to
// leave, 0 where none has a rate.
func leaves(slots int, ports []vswitch.PortConfig, of func(name string) bool) units.Duration {
	slowest, bytes := uint64(0), 0
	for i := range ports {
		p := &ports[i]
		if r := p.Scheduler.Rate; r != 0 && of(p.Name) && (slowest == 0 || r < slowest) {
			slowest, bytes = r, p.MTU+14+linkOverhead
		}
	}
	return units.Duration(escape.Leaves(slots, bytes, slowest))
}

// Neighbors returns the ports whose neighbours let frames escape, too.
func (s *Section) Neighbors() []string { return s.Ports }

// Reserves returns the queue in which frames escape.
func (s *Section) Reserves() int { return s.Queue }

// Resolve fills in Reclaim by the ports of a switch.
func (s *Section) Resolve(cfg *vswitch.Config) {
	s.resolve(lateReclaim, cfg.Ports, func(name string) bool { return slices.Contains(s.Ports, name) })
}

// Warn reports a Reclaim that is too short.
func (s *Section) Warn() error {
	return s.warn("the slowest of the ports")
}

// Options returns the Config of a switch, and gives the ports a Neighbor.
func (s *Section) Options(cfg *vswitch.Config) (any, error) {
	switch {
	case len(s.Ports) == 0:
		return nil, wrong("ports", "names no port: frames escape by ports whose neighbours take part")
	case s.Period < units.Microsecond:
		return nil, wrong("period", "%s is less than a microsecond", s.Period)
	case s.Reclaim != 0 && s.Reclaim < units.Microsecond || frame.Time(s.Reclaim) > escape.MaxReclaim:
		return nil, wrong("reclaim", "%s is not between 1us and 1h", s.Reclaim)
	case cfg.PFC.Mode != pfc.PFC || cfg.PFC.Classes == 0:
		return nil, fmt.Errorf("has nothing to escape from: give the switch lossless classes (pfc.classes)")
	}
	if err := s.above(cfg); err != nil {
		return nil, err
	}
	for i := range cfg.Ports {
		if p := &cfg.Ports[i]; p.Name != "" && slices.Contains(s.Ports, p.Name) {
			p.Options = p.Options.With(Name, Neighbor{})
		}
	}
	return Config{Queue: uint8(s.Queue), Period: frame.Time(s.Period), Config: s.config()}, nil
}

// above checks that the queue is above what frames escape from, and no other class's.
func (s *Section) above(cfg *vswitch.Config) error {
	for class, q := range cfg.Class.Queue {
		switch {
		case int(q) == s.Queue:
			return wrong("queue", "%d is the queue of class %d; give that class another one in classes.queue", q, class)
		case int(q) > s.Queue && cfg.Lossless(class):
			return wrong("queue", "%d is below queue %d of lossless class %d, and what escapes must go first; put the class in a lower queue (classes.queue), or use a lossless class below %d", s.Queue, q, class, s.Queue)
		}
	}
	for i := range cfg.Ports {
		if p := &cfg.Ports[i]; p.Scheduler.Queues[s.Queue].Weight != 0 {
			return wrong("queue", "%d has a weight in the profile of port %s; frames escape in a strict queue", s.Queue, p.Name)
		}
	}
	return nil
}

// Resolve fills in Reclaim by all links between switches.
func (s *Virtual) Resolve(cfg *vswitch.Config) {
	s.resolve(units.Duration(escape.Default().Reclaim), cfg.Ports, func(string) bool { return true })
}

// Warn reports a Reclaim that is too short.
func (s *Virtual) Warn() error {
	return s.warn("the slowest link between switches")
}

// virtualQueue is where frames escape in scenarios. Its class waits in the queue
// above.
const virtualQueue = 6

// Options returns the Config of a switch of which all neighbours that are switches
// have it, too.
func (s *Virtual) Options(cfg *vswitch.Config) (any, error) {
	if s.Period <= 0 {
		return nil, wrong("period", "is not a time")
	}
	if cfg.PFC.Mode != pfc.PFC || cfg.PFC.Classes == 0 {
		return nil, fmt.Errorf("has nothing to escape from; set pfc.enabled: true")
	}
	for class := range cfg.Class.Queue {
		if class >= virtualQueue && cfg.Lossless(class) {
			return nil, fmt.Errorf("frames escape in queue %d, and lossless class %d is not below it; use a class from 0 to %d", virtualQueue, class, virtualQueue-1)
		}
	}
	c := s.config()
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return Among(cfg, Config{Config: c, Period: frame.Time(s.Period)}), nil
}

// Among returns the options of a switch of which all neighbours that are switches
// (not PortConfig.Edge) let frames escape, too, and gives its ports what they need
// for that.
func Among(cfg *vswitch.Config, c Config) Config {
	c.Queue = virtualQueue
	cfg.Class.Queue[virtualQueue] = virtualQueue + 1
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		if !p.Edge {
			p.Options = p.Options.With(Name, Neighbor{})
		}
		q := &p.Scheduler.Queues[virtualQueue]
		q.Weight, q.Order = 0, nil
	}
	return c
}

func wrong(key, format string, args ...any) error {
	return &vswitch.KeyError{Key: key, Err: fmt.Errorf(format, args...)}
}
