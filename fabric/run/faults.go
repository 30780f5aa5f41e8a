package run

import (
	"net/netip"

	"github.com/gswitch/gswitch/fabric/scenario"
	"github.com/gswitch/gswitch/fabric/vnet"
	"github.com/gswitch/gswitch/fault"
	"github.com/gswitch/gswitch/frame"
	"github.com/gswitch/gswitch/sim"
)

// direction is one direction of a link of the topology.
type direction struct {
	link int
	way  sim.Way
}

// injector keeps what is wrong with each direction, since several faults may
// be at work on one.
type injector struct {
	n   *vnet.Network
	now map[direction]fault.Config
	// chosen are the faults that lose frames of single flows.
	chosen map[direction][]*scenario.Fault
}

// inject asks the engine for the faults of a run.
func inject(n *vnet.Network, r *scenario.Run) error {
	in := &injector{n, map[direction]fault.Config{}, map[direction][]*scenario.Fault{}}
	for i := range r.Doc.Faults {
		f := &r.Doc.Faults[i]
		if f.Node != "" {
			in.node(r, f)
			continue
		}
		dirs, err := directions(r, f)
		if err != nil {
			return err
		}
		for _, d := range dirs {
			rate := float64(r.Topology.Links[d.link].Rate)
			if f.Kind == "down" {
				in.down(d.link, frame.Time(f.Start), frame.Time(f.Stop))
				continue
			}
			if f.Kind == "storm" {
				in.storm(d, f)
				continue
			}
			n.Engine.At(frame.Time(f.Start), func(frame.Time) { in.change(d, f, rate, true) })
			if f.Stop > 0 {
				n.Engine.At(frame.Time(f.Stop), func(frame.Time) { in.change(d, f, rate, false) })
			}
		}
	}
	return nil
}

func directions(r *scenario.Run, f *scenario.Fault) (v []direction, err error) {
	if f.Link == "all" {
		for i := range r.Topology.Links {
			v = append(v, direction{i, sim.Forth}, direction{i, sim.Back})
		}
		return v, nil
	}
	p, err := scenario.FindPort(r.Topology, f.Link)
	if err != nil {
		return nil, err
	}
	link := r.Topology.Nodes[p.Node].Links[p.Port]
	d := direction{link, sim.Back}
	if a := r.Topology.Links[link].A; a.Node == p.Node && a.Port == p.Port {
		d.way = sim.Forth
	}
	v = append(v, d)
	if f.Both {
		v = append(v, direction{link, sim.Forth + sim.Back - d.way})
	}
	return v, nil
}

func (in *injector) down(link int, start, stop frame.Time) {
	e, id := in.n.Engine, in.n.Link(link)
	// A link that exists can be set: the engine refuses only those that do not.
	e.At(start, func(frame.Time) { _ = e.SetLink(id, false) })
	if stop > 0 {
		e.At(stop, func(frame.Time) { _ = e.SetLink(id, true) })
	}
}

// until is the end of a fault.
func until(f *scenario.Fault) frame.Time {
	if f.Stop == 0 {
		return frame.Never
	}
	return frame.Time(f.Stop)
}

func (in *injector) storm(d direction, f *scenario.Fault) {
	classes := uint8(0)
	for _, c := range f.Classes {
		classes |= 1 << c
	}
	if classes == 0 {
		classes = 1
	}
	s := sim.Storm{Classes: classes, Quanta: 0xffff, Interval: frame.Time(f.Every), Until: until(f)}
	in.n.Engine.At(frame.Time(f.Start), func(frame.Time) { _ = in.n.Engine.Storm(in.n.Link(d.link), d.way, s) })
}

// node asks for what goes wrong with a host or a switch, which exists.
func (in *injector) node(r *scenario.Run, f *scenario.Fault) {
	i, _ := r.Topology.Lookup(f.Node)
	e, id := in.n.Engine, in.n.EngineNode(i)
	e.At(frame.Time(f.Start), func(now frame.Time) {
		switch f.Kind {
		case "pause":
			_ = e.Pause(id, until(f))
		case "slow-node":
			_ = e.Slow(id, frame.Time(f.Gap))
		case "reboot":
			_ = e.Reboot(id, frame.Time(f.Stop)-now)
		case "clock":
			_ = e.SetClock(id, int64(f.Drift), frame.Time(f.Step))
		}
	})
	if f.Stop == 0 {
		return
	}
	switch f.Kind {
	case "slow-node":
		e.At(frame.Time(f.Stop), func(frame.Time) { _ = e.Slow(id, 0) })
	case "clock":
		e.At(frame.Time(f.Stop), func(frame.Time) { _ = e.SetClock(id, 0, 0) })
	}
}

// change adds a fault to a direction or takes it away.
func (in *injector) change(d direction, f *scenario.Fault, rate float64, on bool) {
	c := in.now[d]
	share, delay := f.Share, frame.Time(f.Delay)
	slow := 1.0
	if f.ToRate > 0 {
		slow = max(1, rate/float64(f.ToRate))
	}
	if !on {
		share, delay, slow = 0, 0, 1
	}
	switch f.Kind {
	case "loss":
		if f.From != "" || f.To != "" {
			c.Drop = in.flows(d, f, on)
			break
		}
		c.Loss, c.Burst = share, fault.Burst{}
		if f.Burst > 1 && share > 0 && share < 1 {
			// A bad state that loses everything and lasts so many frames in the
			// mean, and as often as the share asks for.
			leave := 1 / float64(f.Burst)
			c.Loss, c.Burst = 0, fault.Burst{ToGood: leave, ToBad: min(1, share*leave/(1-share)), LossBad: 1}
		}
	case "corrupt":
		c.Corrupt = share
	case "duplicate":
		c.Duplicate = share
	case "reorder":
		c.Reorder, c.ReorderBy = share, delay
	case "jitter":
		c.Jitter = delay
	case "slow":
		c.Slow = slow
	}
	in.now[d] = c
	// The values were checked when the document was read.
	_ = in.n.Engine.Fault(in.n.Link(d.link), d.way, c)
}

// flows returns what a direction loses of single flows once f has begun or ended.
func (in *injector) flows(d direction, f *scenario.Fault, on bool) []fault.Drop {
	var begun []*scenario.Fault
	for _, g := range in.chosen[d] {
		if g != f {
			begun = append(begun, g)
		}
	}
	if on && f.Share > 0 {
		begun = append(begun, f)
	}
	in.chosen[d] = begun
	var v []fault.Drop
	for _, g := range begun {
		v = append(v, fault.Drop{Match: fault.FiveTuple{Src: in.addr(g.From), Dst: in.addr(g.To)}.Match(), Share: g.Share})
	}
	return v
}

// addr is the address of a host, or the zero one, which matches all, of none.
func (in *injector) addr(host string) (a netip.Addr) {
	if i, ok := in.n.Topology.Lookup(host); ok {
		a = in.n.Plan.Nodes[i].Address[0].Addr()
	}
	return a
}
