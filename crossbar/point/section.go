package point

import (
	"fmt"

	"gswitch/frame"
	"gswitch/units"
	"gswitch/vswitch"
)

// Section is crossbar in documents.
type Section struct {
	Ingress     units.Size     `yaml:"ingress" range:"0,4294967295" default:"128KiB" doc:"Queue of each ingress port. What does not fit is dropped."`
	Egress      units.Size     `yaml:"egress" range:"0,4294967295" default:"128KiB" doc:"Queue of each egress port. What does not fit waits at its ingress port."`
	Reserve     units.Size     `yaml:"reserve" range:"0,4294967295" default:"128KiB" doc:"With cap: class, how much the bytes of all classes may exceed egress."`
	Cap         string         `yaml:"cap" enum:"class,total" default:"class" doc:"What counts against egress. class: bytes of the frame's class and of those above. total: all bytes, so that a paused class locks out the others."`
	SkipBlocked *bool          `yaml:"skip_blocked" default:"true" doc:"true: while the egress queue is full that the highest class at an ingress port goes to, the next class may cross."`
	Speedup     int            `yaml:"speedup" range:"1,64" default:"4" doc:"Rate of the crossbar in rates of the fastest port; ports without a rate count as 10Gbps."`
	Pause       units.Size     `yaml:"pause" range:"0,4294967295" doc:"Lossless classes: a port pauses its neighbour from so many bytes in its ingress queue, of the class and of those above. Computed from links and classes if left out."`
	Unpause     units.Size     `yaml:"unpause" range:"0,4294967295" doc:"Lossless classes: the pause ends when they have fallen to this. Computed if pause is left out."`
	Latency     units.Duration `yaml:"latency" doc:"Time from the arrival of a frame until it can cross, besides what forwarding takes anyway."`
	Batch       units.Size     `yaml:"batch" range:"0,4294967295" doc:"Most that a port may send at once when the worker was late: what is handed to the device is in no queue any more. Two full frames if left out."`
}

// config returns what the section says, without a look at the switch.
func (s *Section) config() Config {
	return Config{Ingress: uint32(s.Ingress), Egress: uint32(s.Egress), Reserve: uint32(s.Reserve), TotalCap: s.Cap == "total",
		SkipBlocked: s.SkipBlocked == nil || *s.SkipBlocked, Speedup: s.Speedup, Pause: uint32(s.Pause), Unpause: uint32(s.Unpause), Latency: frame.Time(s.Latency), Batch: uint32(s.Batch)}
}

// leastQueue holds a full frame of the usual MTU.
const leastQueue = 2 << 10

// Options returns the Config of a switch. Of one whose ports are not known the
// thresholds are not judged.
func (s *Section) Options(cfg *vswitch.Config) (any, error) {
	for _, v := range []struct {
		key         string
		size, least units.Size
	}{{"ingress", s.Ingress, leastQueue}, {"egress", s.Egress, leastQueue}, {"reserve", s.Reserve, 1}, {"pause", s.Pause, 0}, {"unpause", s.Unpause, 0}, {"batch", s.Batch, 0}} {
		if v.size < v.least || v.size > MaxQueue {
			return nil, wrong(v.key, "%v is not from %v to %v", v.size, v.least, units.Size(MaxQueue))
		}
	}
	switch {
	case s.Pause == 0 && s.Unpause != 0:
		return nil, wrong("unpause", "stands without pause; give both, or none to have them computed")
	case s.Pause != 0 && s.Unpause >= s.Pause:
		return nil, wrong("unpause", "a pause that begins at %v cannot end at %v: less than pause", s.Pause, s.Unpause)
	case s.Latency < 0 || frame.Time(s.Latency) > frame.Second:
		return nil, wrong("latency", "%v is negative, or more than a second", s.Latency)
	}
	c := s.config()
	if len(cfg.Ports) == 0 {
		return c, nil
	}
	if n := len(cfg.Ports); n > MaxPorts {
		return nil, fmt.Errorf("joins at most %d ports, and the switch has %d", MaxPorts, n)
	}
	if _, err := c.made(cfg); err != nil {
		key, hint := "ingress", ""
		if s.Pause != 0 {
			key, hint = "pause", ", and of the buffer allow_loss: true accepts the loss"
		}
		return nil, wrong(key, "%w; gfabric headroom --queues input shows how%s", err, hint)
	}
	return c, nil
}

func wrong(key, format string, args ...any) error {
	return &vswitch.KeyError{Key: key, Err: fmt.Errorf(format, args...)}
}
