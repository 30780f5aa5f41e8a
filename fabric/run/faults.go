package run

import (
	"net/netip"

	"gswitch/fabric/scenario"
	"gswitch/fabric/vnet"
	"gswitch/fault"
	"gswitch/frame"
	"gswitch/sim"
)

// direction is one direction of a link of the topology.
type direction struct {
	link int
	way  sim.Way
}

// injector keeps the active faults of each direction, since there may be several.
type injector struct {
	n     *vnet.Network
	begun map[direction][]*scenario.Fault // active faults in the order in which they began
	down  map[int]int                     // number of faults that hold a link down
}

// inject schedules the faults of a run in the engine.
func inject(n *vnet.Network, r *scenario.Run) error {
	in := &injector{n, map[direction][]*scenario.Fault{}, map[int]int{}}
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
				in.cut(d.link, frame.Time(f.Start), frame.Time(f.Stop))
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

// cut takes a link down until all faults that hold it down are over.
func (in *injector) cut(link int, start, stop frame.Time) {
	e, id := in.n.Engine, in.n.Link(link)
	// This cannot fail: the engine refuses only links that do not exist.
	e.At(start, func(frame.Time) {
		in.down[link]++
		_ = e.SetLink(id, false)
	})
	if stop > 0 {
		e.At(stop, func(frame.Time) {
			if in.down[link]--; in.down[link] == 0 {
				_ = e.SetLink(id, true)
			}
		})
	}
}

// until returns the end of a fault.
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

// node schedules a fault of a host or switch, which exists.
func (in *injector) node(r *scenario.Run, f *scenario.Fault) {
	i, _ := r.Topology.Lookup(f.Node)
	e, id := in.n.Engine, in.n.EngineNode(i)
	own, _ := r.Oscillator(i) // its frequency offset without a fault
	e.At(frame.Time(f.Start), func(now frame.Time) {
		switch f.Kind {
		case "pause":
			_ = e.Pause(id, until(f))
		case "slow-node":
			_ = e.Slow(id, frame.Time(f.Gap))
		case "reboot":
			_ = e.Reboot(id, frame.Time(f.Stop)-now)
		case "clock":
			_ = e.SetClock(id, own+int64(f.Drift), frame.Time(f.Step))
		}
	})
	if f.Stop == 0 {
		return
	}
	switch f.Kind {
	case "slow-node":
		e.At(frame.Time(f.Stop), func(frame.Time) { _ = e.Slow(id, 0) })
	case "clock":
		e.At(frame.Time(f.Stop), func(frame.Time) { _ = e.SetClock(id, own, 0) })
	}
}

// change adds a fault to a direction or removes it. Simultaneous faults add up.
func (in *injector) change(d direction, f *scenario.Fault, rate float64, on bool) {
	var begun []*scenario.Fault
	for _, g := range in.begun[d] {
		if g != f {
			begun = append(begun, g)
		}
	}
	if on {
		begun = append(begun, f)
	}
	in.begun[d] = begun
	var c fault.Config
	for _, g := range begun {
		in.add(&c, g, rate)
	}
	// The values were checked when the document was read.
	_ = in.n.Engine.Fault(in.n.Link(d.link), d.way, c)
}

// add adds a fault to those in c. Package scenario rejects faults that exclude each
// other, so c has none of those yet.
func (in *injector) add(c *fault.Config, f *scenario.Fault, rate float64) {
	switch f.Kind {
	case "loss":
		switch {
		case f.From != "" || f.To != "":
			if f.Share > 0 {
				match := fault.FiveTuple{Src: in.addr(f.From), Dst: in.addr(f.To)}.Match()
				c.Drop = append(c.Drop, fault.Drop{Match: match, Share: f.Share})
			}
		case f.Bursty():
			c.Burst = fault.Bursts(f.Share, float64(f.Burst))
		default:
			c.Loss = either(c.Loss, f.Share)
		}
	case "corrupt":
		c.Corrupt = either(c.Corrupt, f.Share)
	case "duplicate":
		c.Duplicate = either(c.Duplicate, f.Share)
	case "reorder":
		c.Reorder, c.ReorderBy = either(c.Reorder, f.Share), frame.Time(f.Delay)
	case "jitter":
		c.Jitter = frame.Time(f.Delay)
	case "slow":
		c.Slow = max(c.Slow, 1, rate/float64(max(f.ToRate, 1)))
	}
}

// either is the probability that at least one of two independent events happens.
func either(a, b float64) float64 { return min(1, a+float64((1-a)*b)) }

// addr returns the address of a host, or the zero address, which matches all, if host is
// empty.
func (in *injector) addr(host string) (a netip.Addr) {
	if i, ok := in.n.Topology.Lookup(host); ok {
		a = in.n.Plan.Nodes[i].Address[0].Addr()
	}
	return a
}
