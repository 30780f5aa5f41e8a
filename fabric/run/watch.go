package run

import (
	"strings"

	"gswitch/fabric/observe"
	"gswitch/fabric/scenario"
	"gswitch/fabric/view"
	"gswitch/fabric/vnet"
	"gswitch/frame"
)

// watch lets viewers look at a run. The function that it returns must be called when the
// run has halted.
func (h *host) watch(n *vnet.Network, s *scenario.Scenario, r *scenario.Run, observers []*observe.Observer) (end func()) {
	o := h.o
	if o.Watch == nil {
		return func() {}
	}
	c := view.NetworkOptions{Title: s.Doc.Title, Run: label(r), Groups: r.Doc.Groups(), Control: ControlName, End: frame.Time(r.Doc.Duration), Pace: o.Pace}
	for _, of := range observers {
		if of.Losses != nil {
			c.Losses = of.Losses
		}
		if of.Ways != nil {
			c.Ways = of.Ways
		}
	}
	if !n.Engine.Virtual() {
		c.On, c.Scale, c.Bound = "netns", float64(h.dilation(r.Doc)), o.Live.Bound
		if c.Bound == 0 {
			c.Bound = n.Derived.BaseRTT / 4
		}
	}
	src := view.Network(n, c)
	o.Watch(src)
	return src.Close
}

// ControlName returns the name of a congestion control without the parameters that
// function algorithm adds.
func ControlName(name string) string {
	name, _, _ = strings.Cut(name, "map[")
	return name
}
