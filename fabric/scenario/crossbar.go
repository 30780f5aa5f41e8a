package scenario

import (
	"gswitch/frame"
	"gswitch/units"
	"gswitch/vswitch"
)

// Crossbar gives switches queues at their ingress ports, too.
type Crossbar struct {
	Enabled     bool           `yaml:"enabled" doc:"true: frames wait at the port they came by until a crossbar has carried them to their egress queue (combined input and output queues). Takes the place of the shared buffer."`
	Ingress     units.Size     `yaml:"ingress" range:"0,4294967295" default:"128KiB" doc:"Queue of each ingress port. What does not fit is lost."`
	Egress      units.Size     `yaml:"egress" range:"0,4294967295" default:"128KiB" doc:"Queue of each egress port. What does not fit waits at its ingress port."`
	Speedup     int            `yaml:"speedup" range:"1,64" default:"4" doc:"Rate of the crossbar in rates of the fastest port of the switch."`
	Cap         string         `yaml:"cap" enum:"class,total" default:"class" doc:"What counts against egress. class: bytes of the frame's class and of those above, so that a paused class does not lock out higher ones. total: all bytes."`
	Reserve     units.Size     `yaml:"reserve" range:"0,4294967295" default:"128KiB" doc:"With cap: class, how much the bytes of all classes may exceed egress."`
	SkipBlocked *bool          `yaml:"skip_blocked" default:"true" doc:"true: while the egress queue is full that the highest class at an ingress port goes to, the next class may cross."`
	Pause       units.Size     `yaml:"pause" range:"0,4294967295" default:"8KiB" doc:"Lossless classes: a port pauses its neighbour from so many bytes in its ingress queue, of the class and of those above."`
	Unpause     units.Size     `yaml:"unpause" range:"0,4294967295" default:"4557B" doc:"Lossless classes: the pause ends when they have fallen to this."`
	Latency     units.Duration `yaml:"latency" doc:"Time from the arrival of a frame until it can cross: what forwarding takes."`
}

// Config is what switches take.
func (c *Crossbar) Config() vswitch.CrossbarConfig {
	return vswitch.CrossbarConfig{On: c.Enabled, Ingress: uint32(c.Ingress), Egress: uint32(c.Egress), Reserve: uint32(c.Reserve), Speedup: c.Speedup,
		TotalCap: c.Cap == "total", SkipBlocked: c.SkipBlocked == nil || *c.SkipBlocked, Pause: uint32(c.Pause), Unpause: uint32(c.Unpause), Latency: frame.Time(c.Latency)}
}

// crossbar checks switch.crossbar.
func (v *validator) crossbar() {
	d := v.doc
	c := &d.Switch.Crossbar
	if !c.Enabled {
		return
	}
	for _, s := range []struct {
		key  string
		size units.Size
	}{{"ingress", c.Ingress}, {"egress", c.Egress}, {"reserve", c.Reserve}, {"pause", c.Pause}, {"unpause", c.Unpause}} {
		if s.size < 1 || s.size > vswitch.MaxCrossbarQueue {
			v.sec.Fail("switch.crossbar."+s.key, "%v is not from 1B to %v", s.size, units.Size(vswitch.MaxCrossbarQueue))
		}
	}
	if d.PFC.Enabled && c.Unpause >= c.Pause {
		v.sec.Fail("switch.crossbar.unpause", "a pause that begins at %v cannot end at %v: less than pause", c.Pause, c.Unpause)
	}
	if d.PFC.Enabled && c.Pause > c.Ingress {
		v.sec.Fail("switch.crossbar.pause", "%v is more than the ingress queue of %v", c.Pause, c.Ingress)
	}
	if c.Latency < 0 || frame.Time(c.Latency) > frame.Second {
		v.sec.Fail("switch.crossbar.latency", "is not from 0s to 1s")
	}
	for i := range v.t.Nodes {
		if n := &v.t.Nodes[i]; len(n.Links) > vswitch.MaxCrossbarPorts {
			v.sec.Fail("switch.crossbar", "%s has %d ports, and a crossbar joins at most %d", n.Name, len(n.Links), vswitch.MaxCrossbarPorts)
			break
		}
	}
}
