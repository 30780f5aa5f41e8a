package scenario

import (
	"gswitch/frame"
	"gswitch/scheduler"
	"gswitch/units"
	"gswitch/vswitch"
)

// PI is ECN marking by a PI controller of the queue length.
type PI struct {
	Ref    units.Size     `yaml:"ref" range:"0,4294967295" doc:"Depth that is held. No such marking if left out."`
	A      float64        `yaml:"a" range:"0,0.0001" doc:"Probability for each byte above ref."`
	B      float64        `yaml:"b" range:"0,0.0001" doc:"Probability that each byte above ref a period ago takes back; below a."`
	Max    float64        `yaml:"max" range:"0,1" default:"1" doc:"Largest probability, so that it is soon back after a burst."`
	Period units.Duration `yaml:"period" doc:"Time from one update to the next."`
}

// Law returns the configuration of switches.
func (p *PI) Law() scheduler.PI {
	return scheduler.PI{Ref: uint32(p.Ref), A: p.A, B: p.B, Max: p.Max, Period: frame.Time(p.Period)}
}

// pi checks switch.ecn.pi.
func (v *validator) pi() {
	e := &v.doc.Switch.ECN
	law := e.PI.Law()
	if law.Ref == 0 && e.PI.A == 0 && e.PI.Period == 0 {
		law = scheduler.PI{} // not configured
	}
	if err := law.Validate(); err != nil {
		v.sec.Fail("switch.ecn.pi", "%v", err)
	}
	if x := vswitch.Excluded(vswitch.OneQueue, "pi", func(k string) bool { return k == "pi" && e.PI.Ref > 0 || k == "ecn" && e.KMax > 0 }); x != nil {
		v.sec.Fail("switch.ecn.pi", "%s", x.Beside())
	}
}
