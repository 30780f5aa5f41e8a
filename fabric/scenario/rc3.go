package scenario

import (
	"slices"

	"gswitch/transport"
)

// RC3 is the second control loop of RC3.
type RC3 struct {
	Enabled bool   `yaml:"enabled" doc:"true: beside the ordinary loop a second one sends each frame once, from the tail of the message, in classes below that of the data (RC3). What arrives by it the ordinary loop skips. Needs a mode that keeps what is out of order. Both ends of a flow have what its entry says."`
	Quotas  []int  `yaml:"quotas" range:"1,1000000000" doc:"Frames of each level, counted from the tail, the best level first. 40, 400 and 4000 if left out (RC3, section 2.2)."`
	Classes []int  `yaml:"classes" range:"0,7" doc:"Traffic class of each level, each below the one before. Those next below that of the hosts if left out. None may be lossless."`
	Stop    bool   `yaml:"stop" doc:"true: farther from the tail than all quotas the loop ends; otherwise the last level has no bound."`
	Burst   int    `yaml:"burst" range:"1,1000" default:"1" doc:"Frames that leave in ascending order before the loop goes on with those ahead of them, as with segmentation offload; all in the level of the worst of them."`
	Cross   string `yaml:"cross" enum:"meet,push,flush" default:"meet" doc:"When the loop ends. meet: where it meets the ordinary one. push: at the head, as if all were queued at once (the authors' simulator, Linux). flush: as push, but what is acknowledged is not sent any more."`
}

// crossings maps the values of key cross.
var crossings = map[string]transport.Crossing{"meet": transport.Meet, "push": transport.Push, "flush": transport.Flush}

// Loop returns the configuration of senders and receivers, nil if RC3 is off.
func (x *RC3) Loop() *transport.Recursive {
	if !x.Enabled {
		return nil
	}
	r := &transport.Recursive{Levels: transport.DesignLevels, Stop: x.Stop, Cross: crossings[x.Cross], Burst: uint32(x.Burst)}
	if len(x.Quotas) > 0 {
		r.Levels = nil
		bound := uint64(0)
		for _, q := range x.Quotas {
			bound += uint64(q)
			r.Levels = append(r.Levels, bound)
		}
	}
	return r
}

// LowClasses returns the class of each level of the second loop, for data of a class.
func (t *Transport) LowClasses(class int) (v []uint8) {
	x := &t.RC3
	loop := x.Loop()
	if loop == nil {
		return nil
	}
	for i := range loop.Levels {
		c := class - 1 - i
		if len(x.Classes) > 0 {
			c = x.Classes[i]
		}
		v = append(v, uint8(c))
	}
	return v
}

// rc3 checks the second loop of a transport for data of a class.
func (v *validator) rc3(key string, t *Transport, class int) {
	loop := t.RC3.Loop()
	if loop == nil {
		return
	}
	key += ".rc3"
	if n := len(t.RC3.Classes); n != 0 && n != len(loop.Levels) {
		v.sec.Fail(key+".classes", "are %d for %d levels; write one for each", n, len(loop.Levels))
		return
	}
	if len(t.RC3.Classes) == 0 && class < len(loop.Levels) {
		v.sec.Fail(key, "%d levels do not fit below class %d of the data; raise hosts.class, or write fewer quotas", len(loop.Levels), class)
		return
	}
	above := class
	for i, low := range t.LowClasses(class) {
		c := int(low)
		switch {
		case c >= above:
			v.sec.Fail(key+".classes", "class %d of level %d is not below %d, the one before", c, i+1, above)
		case v.doc.PFC.Enabled && (slices.Contains(v.doc.PFC.Classes, c) || len(v.doc.PFC.Classes) == 0 && c == v.doc.Hosts.Class):
			v.sec.Fail(key, "class %d of level %d is lossless: pauses would come of packets that must not harm others; leave it out of pfc.classes", c, i+1)
		case c < len(v.doc.Hosts.Weights) && v.doc.Hosts.Weights[c] != 0:
			v.sec.Fail(key, "class %d of level %d has a weight at the hosts: its share would be taken from others; make it strict", c, i+1)
		}
		above = c
	}
	if c, err := t.Recovery(); err == nil {
		if err := c.Validate(); err != nil {
			v.sec.Fail(key, "%v", err)
		}
	}
}
