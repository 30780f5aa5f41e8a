package point

import (
	"fmt"

	"gswitch/buffer"
	"gswitch/escape"
	"gswitch/frame"
	"gswitch/pfc"
	"gswitch/scheduler"
	"gswitch/vswitch"
	"gswitch/wire"
)

// Name is the key of a Config in vswitch.Config.Options, and of a Neighbor in
// those of ports.
const Name = "escape"

// Config lets frames of lossless classes out of paused queues, on tokens of
// neighbours whose way on is open.
type Config struct {
	// Queue of every port is theirs: strict, of no class, above the queues of
	// the lossless classes. A frame that has a place in it does not count
	// against the threshold at which the port it came by asks for pause.
	Queue         uint8
	escape.Config // its zero value: escape.Default
	// Period is the time from one round of tokens to the next; 0 = 2 us. The
	// paper takes twice the delay of a link, so that about one frame per round
	// comes back.
	Period frame.Time
}

// Neighbor says of a port that its neighbour understands tokens: a switch that
// lets frames escape, too.
type Neighbor struct{}

// Of returns the options of a switch, and whether it has any.
func Of(cfg *vswitch.Config) (Config, bool) {
	o, on := cfg.Options[Name].(Config)
	return o, on
}

// takesPart reports whether the neighbour at a port does.
func takesPart(c *vswitch.PortConfig) bool {
	_, on := c.Options[Name].(Neighbor)
	return on
}

const defaultPeriod = 2 * frame.Microsecond

func (c *Config) params() escape.Config {
	if c.Config == (escape.Config{Printed: c.Printed}) {
		d := escape.Default()
		d.Printed = c.Printed
		return d
	}
	return c.Config
}

func (c *Config) period() frame.Time {
	if c.Period == 0 {
		return defaultPeriod
	}
	return c.Period
}

func init() {
	vswitch.Register(vswitch.Feature{Name: Name, Check: check, Divide: divide, New: newPorts, Counters: counters,
		Whole:   func() vswitch.WholeSection { return new(Section) },
		Virtual: func() vswitch.WholeSection { return new(Virtual) },
		Doc:     "Frames of lossless classes get out of paused queues on tokens of the neighbour (Escape)."})
}

// check reports what prevents frames from escaping.
func check(cfg *vswitch.Config) error {
	c, on := Of(cfg)
	if !on {
		return nil
	}
	params := c.params()
	switch {
	case cfg.PFC.Mode != pfc.PFC || cfg.PFC.Classes == 0:
		return fmt.Errorf("escape: there is nothing to escape from without priority flow control and a lossless class")
	case c.Queue >= scheduler.NumQueues:
		return fmt.Errorf("escape: there is no queue %d", c.Queue)
	case c.Period < 0:
		return fmt.Errorf("escape: the period %v is negative", c.Period.Duration())
	}
	for class, q := range cfg.Class.Queue {
		if q == c.Queue {
			return fmt.Errorf("escape: queue %d is that of class %d; give that class another one", q, class)
		}
		if q > c.Queue && cfg.Lossless(class) {
			return fmt.Errorf("escape: queue %d of lossless class %d is above queue %d, in which frames escape", q, class, c.Queue)
		}
	}
	for i := range cfg.Ports {
		if p := &cfg.Ports[i]; p.Name != "" && p.Scheduler.Queues[c.Queue].Weight != 0 {
			return fmt.Errorf("escape: queue %d of port %s is not strict", c.Queue, p.Name)
		}
	}
	return params.Validate()
}

// divide sets aside what frames that have a place at a port may take, parked or
// not.
func divide(cfg *vswitch.Config, p *vswitch.PortConfig, b *buffer.PortConfig) {
	if c, on := Of(cfg); on {
		tagged := uint64(b.Link.MaxFrame) + 2*wire.VLANLen - 4 // without the FCS
		b.Queues[c.Queue&7].Reserve = 2 * uint64(c.params().Slots) * tagged
	}
}
