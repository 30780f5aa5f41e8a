package scenario

import (
	"fmt"

	"gswitch/escape"
	"gswitch/fabric"
	"gswitch/frame"
	"gswitch/pipeline"
	"gswitch/units"
)

// Escape lets frames out of paused queues.
type Escape struct {
	Enabled bool           `yaml:"enabled" doc:"true: switches let frames of lossless classes out of paused queues on each other's tokens (Escape)."`
	Slots   int            `yaml:"slots" range:"1,65536" default:"64" doc:"Frames that have a place in the escape queue of a port."`
	Flows   int            `yaml:"flows" range:"1,65536" default:"256" doc:"Flows of a port that are known, the last ones."`
	PerFlow int            `yaml:"per_flow" range:"1,65536" default:"64" doc:"Tokens of a flow that may be out at once."`
	Period  units.Duration `yaml:"period" default:"2us" doc:"Time from one round of tokens to the next: about twice the delay of a link."`
	Reclaim units.Duration `yaml:"reclaim" default:"100us" doc:"Time after which the place of a token that came to nothing is free again: longer than a token and its frame take through the network."`
	Printed bool           `yaml:"printed" doc:"true: the algorithm as printed, without requests for tokens and without waits of flows whose tokens come to nothing. Circles of flows that no switch with an open port knows then stay closed."`
}

// Params is what the switches take.
func (e *Escape) Params() escape.Config {
	return escape.Config{Slots: e.Slots, Flows: e.Flows, PerFlow: e.PerFlow, Reclaim: frame.Time(e.Reclaim), Printed: e.Printed}
}

// Detour is a route that is not a shortest one.
type Detour struct {
	At  string `yaml:"at" need:"yes" doc:"The switch that sends so."`
	To  string `yaml:"to" need:"yes" doc:"The switch of the hosts for which it does."`
	Via string `yaml:"via" need:"yes" doc:"The neighbour that it sends by."`

	From units.Duration `yaml:"from" doc:"From when on. From the beginning if left out."`
}

// escape checks switch.escape and switch.detours.
func (v *validator) escape() {
	d := v.doc
	if e := &d.Switch.Escape; e.Enabled {
		p := e.Params()
		if err := p.Validate(); err != nil {
			v.sec.Fail("switch.escape", "%v", err)
		}
		if e.Period <= 0 {
			v.sec.Fail("switch.escape.period", "is not a time")
		}
		if !d.PFC.Enabled {
			v.sec.Fail("switch.escape", "has nothing to escape from; set pfc.enabled: true")
		}
		if kind, err := pipeline.ParseChooser(d.Switch.Paths.Choose); err == nil && !kind.ByFlow() {
			v.sec.Fail("switch.paths.choose", "%s sends frames of a flow by several ports, and switch.escape keeps places for a flow at one; choose by flow (hash, weighted), or take switch.escape out", kind)
		}
		classes := d.PFC.Classes
		if len(classes) == 0 {
			classes = []int{d.Hosts.Class}
		}
		for _, c := range classes {
			if c > 5 {
				v.sec.Fail("switch.escape", "frames escape in queue 6, and lossless class %d is not below it; use a class from 0 to 5", c)
			}
		}
	}
	for i := range d.Switch.Detours {
		x := &d.Switch.Detours[i]
		for _, p := range [][2]string{{"at", x.At}, {"to", x.To}, {"via", x.Via}} {
			if n, ok := v.t.Lookup(p[1]); !ok || v.t.Nodes[n].Kind != fabric.Switch {
				v.sec.Fail(fmt.Sprintf("switch.detours[%d].%s", i, p[0]), "there is no switch %q", p[1])
			}
		}
	}
}
