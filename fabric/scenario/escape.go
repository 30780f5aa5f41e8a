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
	Reclaim units.Duration `yaml:"reclaim" doc:"Time after which the place of a token that came to nothing is free again: longer than a token and its frame take through the network. 100us if left out, or where that is longer twice the time that all places of the slowest link between switches take to leave."`
	Printed bool           `yaml:"printed" doc:"true: the algorithm exactly as printed: one token a round for each of as many flows as there are places, no requests for tokens, no waits. Flows may get out of order, and circles of flows that no switch with an open port knows stay closed."`

	leaves units.Duration // how long all places of the slowest link between switches take to leave
}

// hasty tells of a time after which most tokens count as lost while their frames
// are on the way.
func (e *Escape) hasty() []string {
	if !e.Enabled || e.Reclaim >= e.leaves {
		return nil
	}
	return []string{fmt.Sprintf("switch.escape.reclaim: tokens count as lost after %s, and at the slowest link between switches the frames in all %d places take %s to leave; write %s or more, fewer slots, or leave it out", e.Reclaim, e.Slots, e.leaves, 2*e.leaves)}
}

// slowest is the rate of the slowest link between switches, 0 without one.
func (v *validator) slowest() (rate uint64) {
	for i := range v.t.Links {
		l := &v.t.Links[i]
		if v.t.Nodes[l.A.Node].Kind == fabric.Switch && v.t.Nodes[l.B.Node].Kind == fabric.Switch && (rate == 0 || l.Rate < rate) && l.Rate != 0 {
			rate = l.Rate
		}
	}
	return rate
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
		least := escape.Leaves(e.Slots, int(d.Hosts.Payload)+100, v.slowest())
		if e.Reclaim == 0 {
			e.Reclaim = units.Duration(min(max(100*frame.Microsecond, 2*least), escape.MaxReclaim))
		}
		e.leaves = units.Duration(least)
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
