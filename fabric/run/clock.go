package run

import (
	"gswitch/clocksync"
	"gswitch/clocksync/boundary"
	"gswitch/clocksync/ordinary"
	"gswitch/fabric/clock"
	"gswitch/fabric/measure"
	"gswitch/fabric/results"
	"gswitch/fabric/scenario"
	"gswitch/fabric/vnet"
	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/vswitch"
)

// clockSet keeps the clocks of a run together, if its document says so.
type clockSet struct {
	spec    *clock.Spec
	options []clocksync.Options // by node of the topology
	keeper  *clock.Keeper
	down    []int // faults that hold a link down, by link
	dead    []int // faults that a node stands still or is away for, by node
}

// newClocks plans who follows whom; nil without clocks. On real frames nodes get what
// arrives late: they believe messages alone that the emulated link has stamped.
func newClocks(r *scenario.Run, real bool) (*clockSet, error) {
	if !r.Doc.Clock.On() {
		return nil, nil
	}
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
func (c *clockSet) configure(r *scenario.Run, v *vnet.Config) {
	if c == nil {
		return
	}
	v.LinkLocal = true
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
}

// Node and Link implement clock.Live.
func (c *clockSet) Node(i int) bool { return c.dead[i] == 0 }
func (c *clockSet) Link(i int) bool { return c.down[i] == 0 }

// begin gives nodes their oscillators, and has clocks looked at and the controller
// act.
func (c *clockSet) begin(n *vnet.Network, r *scenario.Run, rec *measure.Recorder) (err error) {
	if c == nil {
		return nil
	}
	if c.keeper, err = clock.NewKeeper(n, c.spec, c.options, c); err != nil {
		return err
	}
	d := &r.Doc.Clock
	for i := range n.Topology.Nodes {
		drift, step := oscillator(r, i)
		if err := n.Engine.SetClock(n.EngineNode(i), drift, step); err != nil {
			return err
		}
	}
	watched := -1
	if i, ok := n.Topology.Lookup(d.Watch); ok {
		watched = i
		rec.WatchClock(d.Watch)
	}
	readings := make([]measure.ClockReading, c.keeper.Len())
	turned := make([]bool, len(readings))
	every := frame.Time(d.Sample)
	n.Engine.Every(every, every, func(now frame.Time) {
		roots := 0
		for i := range readings {
			x := c.keeper.Look(now, i)
			readings[i] = measure.ClockReading{Known: x.Known, Eps: x.Eps, Error: x.Error, Depth: x.Depth, Cut: x.Cut, Watched: i == watched, Quiet: x.Quiet, Turned: x.Turned && !turned[i]}
			turned[i] = x.Turned
			if x.Root && !x.Cut {
				roots++
			}
		}
		rec.ClockSample(now, roots, readings)
	})
	c.keeper.Begin()
	c.follow(n, r)
	return nil
}

// oscillator is how a node's runs, by the seed: parts in 10^9 faster, and how far
// it is ahead when the run begins.
func oscillator(r *scenario.Run, node int) (drift int64, step frame.Time) {
	if r.Doc.Clock.Oscillator == 0 {
		return 0, 0
	}
	rnd := frame.NewRand(r.Seed*0x9e3779b97f4a7c15 + uint64(node))
	span := uint32(r.Doc.Clock.Oscillator) * 2000
	return int64(rnd.Uint32n(span+1)) - int64(span/2), frame.Time(rnd.Uint32n(1_000_000))
}

// follow notes what fails, and has the controller act behind each change.
func (c *clockSet) follow(n *vnet.Network, r *scenario.Run) {
	for i := range r.Doc.Faults {
		f := &r.Doc.Faults[i]
		var of *int
		switch f.Kind {
		case "down":
			dirs, err := directions(r, f)
			if err != nil || len(dirs) != 1 {
				continue
			}
			of = &c.down[dirs[0].link]
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
		if c.spec.Controller > 0 {
			n.Engine.At(now+c.spec.Controller, c.keeper.Plan)
		}
	})
}

// put writes what the controller did.
func (c *clockSet) put(out *results.Run) {
	if c == nil {
		return
	}
	k := c.keeper.Counts
	out.Values["clock_plans_total"] = float64(k.Plans)
	out.Values["clock_unplanned_total"] = float64(k.Unplanned)
	out.Values["clock_devices_total"] = float64(k.Devices)
	out.Values["clock_disagreed_total"] = float64(k.Disagreed)
}
