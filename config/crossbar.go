package config

import (
	"gswitch/frame"
	"gswitch/section"
	"gswitch/units"
	"gswitch/vswitch"
)

// Crossbar gives a switch queues at its ingress ports, too.
type Crossbar struct {
	Ingress     units.Size     `yaml:"ingress" default:"128KiB" doc:"Queue of each ingress port. What does not fit is dropped."`
	Egress      units.Size     `yaml:"egress" default:"128KiB" doc:"Queue of each egress port. What does not fit waits at its ingress port."`
	Reserve     units.Size     `yaml:"reserve" default:"128KiB" doc:"With cap: class, how much the bytes of all classes may exceed egress."`
	Cap         string         `yaml:"cap" enum:"class,total" default:"class" doc:"What counts against egress. class: bytes of the frame's class and of those above. total: all bytes, so that a paused class locks out the others."`
	SkipBlocked *bool          `yaml:"skip_blocked" default:"true" doc:"true: while the egress queue is full that the highest class at an ingress port goes to, the next class may cross."`
	Speedup     int            `yaml:"speedup" range:"1,64" default:"4" doc:"Rate of the crossbar in rates of the fastest port; ports without a rate count as 10Gbps."`
	Pause       units.Size     `yaml:"pause" doc:"Lossless classes: a port pauses its neighbour from so many bytes in its ingress queue, of the class and of those above. Computed from links and classes if left out."`
	Unpause     units.Size     `yaml:"unpause" doc:"Lossless classes: the pause ends when they have fallen to this. Computed if pause is left out."`
	Latency     units.Duration `yaml:"latency" doc:"Time from the arrival of a frame until it can cross, besides what forwarding takes anyway."`
	Batch       units.Size     `yaml:"batch" doc:"Most that a port may send at once when the worker was late: what is handed to the device is in no queue any more. Two full frames if left out."`
}

// config returns what a resolved switch has.
func (c *Crossbar) config() vswitch.CrossbarConfig {
	return vswitch.CrossbarConfig{On: true, Ingress: uint32(c.Ingress), Egress: uint32(c.Egress), Reserve: uint32(c.Reserve), TotalCap: c.Cap == "total",
		SkipBlocked: *c.SkipBlocked, Speedup: c.Speedup, Pause: uint32(c.Pause), Unpause: uint32(c.Unpause), Latency: frame.Time(c.Latency), Batch: uint32(c.Batch)}
}

// validateCrossbar checks the queues of a switch with a crossbar. Whether its
// thresholds are safe depends on its links: see validateBuffers.
func (d decoder) validateCrossbar(s *Switch, path string) {
	if s.Crossbar == nil {
		return
	}
	path += ".crossbar"
	c := *s.Crossbar
	section.Fill(&c)
	for _, v := range []struct {
		key   string
		size  units.Size
		least units.Size
	}{{"ingress", c.Ingress, 2048}, {"egress", c.Egress, 2048}, {"reserve", c.Reserve, 1}, {"pause", c.Pause, 0}, {"unpause", c.Unpause, 0}, {"batch", c.Batch, 0}} {
		if v.size < v.least || v.size > vswitch.MaxCrossbarQueue {
			d.Fail(path+"."+v.key, "%v is not from %v to %v", v.size, v.least, units.Size(vswitch.MaxCrossbarQueue))
			return
		}
	}
	switch {
	case c.Pause == 0 && c.Unpause != 0:
		d.Fail(path+".unpause", "stands without pause; give both, or none to have them computed")
	case c.Pause != 0 && c.Unpause >= c.Pause:
		d.Fail(path+".unpause", "a pause that begins at %v cannot end at %v: less than pause", c.Pause, c.Unpause)
	case frame.Time(c.Latency) > frame.Second:
		d.Fail(path+".latency", "%v is more than a second", c.Latency)
	case d.excluded(s, path, "crossbar", true):
	case len(s.Ports) > vswitch.MaxCrossbarPorts:
		d.Fail(path, "joins at most %d ports, and the switch has %d", vswitch.MaxCrossbarPorts, len(s.Ports))
	}
}
