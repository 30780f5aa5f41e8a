package clocks

import (
	"errors"
	"fmt"
	"slices"

	"gswitch/clocksync"
	"gswitch/control/api"
	"gswitch/fabric"
	"gswitch/fabric/clock"
)

var errNotControlled = errors.New("its document leaves nothing to a controller: write clock: {controlled: true}")

// part is the role of a node in a plan.
type part struct {
	node int
	plan *api.ClockPlan
}

// wanted is a plan over what works.
type wanted struct {
	levels [][]part // by hops from the root, starting with the root
	root   int
	deputy int // -1: none
	// bare says why no clock has a second parent; nil: all that can have one do.
	bare error
}

// plan avoids links over which sync messages did not arrive, unless a switch would lose
// its parent or its second parent.
func (l *live) plan(s *clock.Spec) (*wanted, error) {
	w, err := l.planOn(s)
	if len(l.timedOut) == 0 {
		return w, err
	}
	l.trusting = true
	defer func() { l.trusting = false }()
	if v, e := l.planOn(s); err != nil || e == nil && (v.size() > w.size() || v.bare == nil && w.bare != nil) {
		return v, e
	}
	return w, err
}

// planOn plans from the root or, without one, from the requested root. If there is no
// plan with a second parent for all that can have one, as in a chain, there are none at
// all.
func (l *live) planOn(s *clock.Spec) (*wanted, error) {
	root := l.root()
	if root < 0 {
		if root = l.candidate(s.Root); root < 0 {
			return nil, errors.New("no switch answers")
		}
	}
	w := &wanted{root: root, deputy: -1}
	p, err := s.Plan(l.t, l, root)
	if err != nil {
		bare := *s
		if bare.Scheme, w.bare = clock.Bare, err; !errors.Is(err, clock.ErrNoPlan) {
			return nil, err
		}
		if p, err = bare.Plan(l.t, l, root); err != nil {
			return nil, err
		}
		s = &bare
	}
	if i := p.BackupRootNode(); i >= 0 {
		w.deputy = i
	}
	options := s.Options(l.t, l, p, 0)
	for _, nodes := range p.Levels() {
		var level []part
		for _, i := range nodes {
			if l.t.Nodes[i].Kind == fabric.Switch {
				level = append(level, part{i, l.partOf(p, i, &options[i])})
			}
		}
		if level != nil {
			w.levels = append(w.levels, level)
		}
	}
	return w, nil
}

// size returns how many switches have a part in the plan.
func (w *wanted) size() (n int) {
	for _, level := range w.levels {
		n += len(level)
	}
	return n
}

// candidate returns the switch with a name if it works, or else the first working one
// among those farthest from the hosts.
func (l *live) candidate(name string) int {
	best := -1
	for _, i := range l.t.Switches() {
		switch {
		case !l.Node(i):
		case l.t.Nodes[i].Name == name:
			return i
		case best < 0 || l.t.Nodes[i].Tier > l.t.Nodes[best].Tier:
			best = i
		}
	}
	return best
}

// partOf converts the options of a node, with the names of its ports.
func (l *live) partOf(p *clock.Plan, i int, o *clocksync.Options) *api.ClockPlan {
	hops, most := p.Hops(i)
	c := &api.ClockPlan{Root: o.Root, Deputy: o.Timeout2 != 0, Hops: uint32(hops), MostHops: uint32(max(hops, most))}
	if o.Accept != clocksync.NoPort {
		c.Parent = l.ports[i][o.Accept]
	}
	if o.Backup != clocksync.NoPort {
		c.Second = l.ports[i][o.Backup]
	}
	o.Transmit.Each(func(at int) { c.Send = append(c.Send, l.ports[i][at]) })
	slices.Sort(c.Send)
	return c
}

// differs reports whether a switch needs its part of a plan: it follows another plan, or
// has left its parent in this one.
func (l *live) differs(p *part) bool {
	c := l.clocks[p.node]
	return c.Plan.GetEpoch() == 0 || c.Turned || c.State == "evicted" || (c.State == "root") != p.plan.Root || text(c.Plan) != text(p.plan)
}

// text returns a plan without its epoch.
func text(p *api.ClockPlan) string {
	send := slices.Sorted(slices.Values(p.Send))
	return fmt.Sprint(p.Root, p.Deputy, p.Parent, " ", p.Second, send, p.Hops, p.MostHops)
}
