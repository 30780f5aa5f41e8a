// Package clocks keeps the clocks of a run together and measures how far they are apart.
package clocks

import (
	"context"
	"slices"

	"gswitch/clocksync"
	"gswitch/clocksync/boundary"
	"gswitch/clocksync/ordinary"
	"gswitch/fabric"
	"gswitch/fabric/clock"
	"gswitch/fabric/measure"
	"gswitch/fabric/observe"
	"gswitch/fabric/results"
	"gswitch/fabric/scenario"
	"gswitch/fabric/vnet"
	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/vswitch"
)

func init() {
	observe.Register(&observe.System{
		Name:       "clocks",
		On:         func(d *scenario.Document) bool { return d.Clock.On() },
		Divided:    "clock: how wrong a clock is can be seen only where all of them are: run it with --processes one",
		OneWorker:  "clock: clocks are compared at one instant, by the worker that steps all nodes: run it with --workers 1",
		Unrecorded: true,
		Values:     values,
		Configure:  configure,
		New: func(_ context.Context, r *observe.Run) (*observe.Observer, error) {
			c, err := plan(r.Run, r.Real)
			if err != nil {
				return nil, err
			}
			return &observe.Observer{
				Network: func(v *vnet.Config) { v.Cores = 1 }, // what nodes share belongs to one thread
				Begin:   func(n *vnet.Network, rec *measure.Recorder) error { return c.begin(n, r.Run, rec) },
				Finish:  c.finish,
			}, nil
		},
	})
}

// clockSet is the clocks of a run.
type clockSet struct {
	spec    *clock.Spec
	options []clocksync.Options // by node of the topology
	keeper  *clock.Keeper
	seen    *readings
	down    []int  // faults that hold a link down, by link
	dead    []int  // faults that a node stands still or is away for, by node
	cut     []bool // nodes that have failed, or that what works does not connect with most others
}

// plan says which clock follows which. On real frames nodes get what arrives late: they use
// messages alone that the emulated link has stamped.
func plan(r *scenario.Run, real bool) (*clockSet, error) {
	s, err := r.ClockSpec()
	if err != nil {
		return nil, err
	}
	if real {
		s.Unstamped = clocksync.Forever
	}
	p, err := s.Plan(r.Topology, clock.Everything, -1)
	if err != nil {
		return nil, err
	}
	return &clockSet{spec: s, options: s.Options(r.Topology, clock.Everything, p, 1),
		down: make([]int, len(r.Topology.Links)), dead: make([]int, len(r.Topology.Nodes))}, nil
}

// configure gives each node its clock.
func configure(r *scenario.Run, real bool, v *vnet.Config) error {
	c, err := plan(r, real)
	if err != nil {
		return err
	}
	v.LinkLocal = clocksync.MaxPacket
	v.AdjustSwitch = func(name string, cfg *vswitch.Config) {
		if i, ok := r.Topology.Lookup(name); ok && c.options[i].Interval != 0 {
			cfg.Options = cfg.Options.With(boundary.Name, c.options[i])
		}
	}
	others := v.Host.Options
	v.Host.Options = func(cfg *hostnic.Config) (hostnic.Options, error) {
		o, err := others(cfg)
		if i, ok := r.Topology.Lookup(cfg.Name); ok && c.options[i].Interval != 0 {
			o = o.With(ordinary.Name, c.options[i])
		}
		return o, err
	}
	return nil
}

// Node and Link implement clock.Live.
func (c *clockSet) Node(i int) bool { return c.dead[i] == 0 }
func (c *clockSet) Link(i int) bool { return c.down[i] == 0 }

// begin gives nodes their oscillators, and has clocks looked at and the controller
// act.
func (c *clockSet) begin(n *vnet.Network, r *scenario.Run, rec *measure.Recorder) (err error) {
	if c.keeper, err = clock.NewKeeper(n, c.spec, c.options, c); err != nil {
		return err
	}
	d := &r.Doc.Clock
	for i := range n.Topology.Nodes {
		drift, step := r.Oscillator(i)
		if err := n.Engine.SetClock(n.EngineNode(i), drift, step); err != nil {
			return err
		}
	}
	c.ramp(n, r)
	watched := -1
	if i, ok := n.Topology.Lookup(d.Watch); ok {
		watched = i
	}
	c.seen = newReadings(rec, d.Watch)
	c.cut = cutOff(n.Topology, c)
	v := make([]reading, c.keeper.Len())
	turned := make([]bool, len(v))
	every := frame.Time(d.Sample)
	n.Engine.Every(every, every, func(now frame.Time) {
		roots := 0
		for i := range v {
			x := c.keeper.Look(now, i)
			v[i] = reading{Known: x.Known, Eps: x.Eps, Error: x.Error, Depth: x.Depth, Cut: c.cut[i], Watched: i == watched, SinceMessage: x.SinceMessage, Turned: x.Turned && !turned[i],
				Host: n.Topology.Nodes[i].Kind == fabric.Host, Valid: x.Valid, Gaps: x.Gaps, Impacted: x.Impacted}
			turned[i] = x.Turned
			if x.Root && !c.cut[i] {
				roots++
			}
		}
		c.seen.sample(now, roots, v)
	})
	c.keeper.Begin()
	c.follow(n, r)
	return nil
}

// ramp has oscillators go from one frequency to the next, in steps.
func (c *clockSet) ramp(n *vnet.Network, r *scenario.Run) {
	steps, each := r.Doc.Clock.RampSteps()
	if each == 0 {
		return
	}
	span := uint32(r.Doc.Clock.Oscillator) * 2000
	for i := range n.Topology.Nodes {
		rnd := frame.NewRand(r.Seed*0x9e3779b97f4a7c15 + uint64(i) + 1<<32)
		from, _ := r.Oscillator(i)
		to, k := from, steps
		n.Engine.Every(each, each, func(frame.Time) {
			if k == steps {
				from, to, k = to, int64(rnd.Uint32n(span+1))-int64(span/2), 0
			}
			k++
			if err := n.Engine.SetClock(n.EngineNode(i), from+(to-from)*int64(k)/int64(steps), 0); err != nil {
				n.Engine.Stop(err)
			}
		})
	}
}

// follow notes what fails, and has the controller act behind each change.
func (c *clockSet) follow(n *vnet.Network, r *scenario.Run) {
	for i := range r.Doc.Faults {
		f := &r.Doc.Faults[i]
		var of *int
		switch f.Kind {
		case "down":
			p, err := scenario.FindPort(r.Topology, f.Link)
			if err != nil || f.Both {
				continue
			}
			of = &c.down[r.Topology.Nodes[p.Node].Links[p.Port]]
		case "reboot", "pause":
			node, _ := r.Topology.Lookup(f.Node)
			of = &c.dead[node]
		default:
			continue
		}
		c.change(n, frame.Time(f.Start), of, 1)
		if f.Stop > 0 {
			c.change(n, frame.Time(f.Stop), of, -1)
		}
	}
}

func (c *clockSet) change(n *vnet.Network, at frame.Time, of *int, by int) {
	n.Engine.At(at, func(now frame.Time) {
		*of += by
		c.cut = cutOff(n.Topology, c)
		if c.spec.Controller > 0 {
			n.Engine.At(now+c.spec.Controller, c.keeper.Plan)
		}
	})
}

// cutOff are the nodes that do not work, and those that what works does not connect with
// most of the others: a host, for one, below a switch that has failed.
func cutOff(t *fabric.Topology, live clock.Live) []bool {
	part := make([]int, len(t.Nodes)) // by node, from 1 on; 0: none yet
	size := []int{0}
	for first := range part {
		if part[first] != 0 || !live.Node(first) {
			continue
		}
		p := len(size)
		part[first] = p
		queue := []int{first}
		for k := 0; k < len(queue); k++ {
			for _, l := range t.Nodes[queue[k]].Links {
				if m := t.Links[l].Other(queue[k]).Node; part[m] == 0 && live.Link(l) && live.Node(m) {
					part[m] = p
					queue = append(queue, m)
				}
			}
		}
		size = append(size, len(queue))
	}
	most := slices.Index(size, slices.Max(size))
	cut := make([]bool, len(part))
	for i, p := range part {
		cut[i] = p == 0 || p != most
	}
	return cut
}

// finish writes what was seen of the clocks, and what the controller did.
func (c *clockSet) finish(_ *vnet.Network, out *results.Run) error {
	c.seen.result(out)
	k := c.keeper.Counts
	out.Values["clock_plans_total"] = float64(k.Plans)
	out.Values["clock_unplanned_total"] = float64(k.Unplanned)
	out.Values["clock_devices_total"] = float64(k.Devices)
	out.Values["clock_disagreed_total"] = float64(k.Disagreed)
	return nil
}
