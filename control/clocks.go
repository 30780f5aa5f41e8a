package control

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"connectrpc.com/connect"

	"gswitch/control/api"
	"gswitch/dataplane"
	"gswitch/feature"
	"gswitch/frame"
	"gswitch/metrics"
	"gswitch/vswitch"
)

// clock is that of a switch, for which a controller may plan.
type clock struct {
	feature.Planned
	name string // of the feature that keeps it
	at   int    // index of its worker and node
}

// clockOf returns the clock of a switch that a controller may plan for; false if there is
// none.
func (u *unit) clockOf() (clock, bool) {
	n := u.sw.Owner()
	for _, f := range vswitch.Features() {
		if k, ok := n.Feature(f.Name).(feature.Planned); ok {
			return clock{k, f.Name, n.Index()}, true
		}
	}
	return clock{}, false
}

func (s *server) ListClocks(_ context.Context, r *api.ListRequest) (*api.Clocks, error) {
	if err := s.d.known(r.Switch, ""); err != nil {
		return nil, err
	}
	s.d.mu.RLock()
	defer s.d.mu.RUnlock()
	out := &api.Clocks{}
	for u := range s.d.chosen(r.Switch) {
		if k, ok := u.clockOf(); ok {
			c, err := s.d.clock(u, k)
			if err != nil {
				return nil, connect.NewError(connect.CodeUnavailable, err)
			}
			out.Clocks = append(out.Clocks, c)
		}
	}
	return out, nil
}

// clock describes the clock of a switch.
func (d *Daemon) clock(u *unit, k clock) (*api.Clock, error) {
	var v feature.ClockView
	if err := d.engine.Worker(u.workers[k.at]).Do(func(now frame.Time) { v = k.View(int64(now)) }); err != nil {
		return nil, err
	}
	c := &api.Clock{Switch: u.name, State: v.State, Controlled: v.Awaits, Promised: v.Promised, Identity: v.Identity, Root: v.Time.Root,
		Depth: uint32(v.Depth), Parent: u.portName(v.Parent), Turned: v.Turned, Time: v.Time.Time, Eps: v.Time.Eps, Hop: v.Hop,
		Plan: &api.ClockPlan{Epoch: v.Plan.Epoch, Root: v.Plan.Root, Deputy: v.Plan.Deputy, Hops: uint32(v.Plan.Hops), MostHops: uint32(v.Plan.MostHops)}}
	if v.Plan.Epoch != 0 {
		c.Plan.Parent, c.Plan.Second = u.portName(v.Plan.Parent), u.portName(v.Plan.Second)
	}
	for _, at := range v.Plan.Send {
		c.Plan.Send = append(c.Plan.Send, u.portName(at))
	}
	ports := d.engine.Stats().Ports
	for _, name := range u.portNames() {
		p := &api.ClockPort{Port: name}
		for k := range ports {
			if st := &ports[k]; st.Name == metrics.PortName(u.name, name) {
				p.Up, p.Stamps = p.Up || st.Up, stampsOf(st, u.recording != nil)
			}
		}
		c.Ports = append(c.Ports, p)
	}
	return c, nil
}

// stampsOf returns the source of the arrival times of a clock's messages.
func stampsOf(p *dataplane.PortStats, recorded bool) string {
	switch {
	case recorded:
		return "worker: what is recorded has the worker's time"
	case p.Kind != dataplane.XDP:
		return "worker: the port is no interface"
	case !p.Up:
		return "none: no link"
	case p.Stamped == 0 && p.Unstamped > 0:
		return "worker: the driver leaves no room for stamps"
	}
	if p.StampedByNIC > 0 {
		if p.StampedByNIC < p.Stamped {
			return "hardware: the clock of the NIC, and the kernel where it said nothing"
		}
		return "hardware: the clock of the NIC"
	}
	return "kernel: the XDP program, when the driver hands the frame over"
}

// portNames returns the names of a switch's ports, ordered by number.
func (u *unit) portNames() []string {
	v := make([]string, 0, len(u.numbers))
	for name := range u.numbers {
		v = append(v, name)
	}
	slices.SortFunc(v, func(a, b string) int { return u.numbers[a] - u.numbers[b] })
	return v
}

// portName returns the name of the port with a number, "" if there is none.
func (u *unit) portName(number int) string {
	for name, n := range u.numbers {
		if n == number {
			return name
		}
	}
	return ""
}

// PlanClock carries out one stage of a plan.
func (s *server) PlanClock(_ context.Context, r *api.PlanClockRequest) (*api.Clock, error) {
	if r.Plan == nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("the request has no plan"))
	}
	d := s.d
	d.mu.Lock()
	defer d.mu.Unlock()
	u, err := d.unit(r.Switch)
	if err != nil {
		return nil, connect.NewError(connect.CodeNotFound, err)
	}
	plan := &feature.TakePlan{ClockPlan: feature.ClockPlan{Epoch: r.Plan.Epoch, Root: r.Plan.Root, Deputy: r.Plan.Deputy, Hops: int(r.Plan.Hops), MostHops: int(r.Plan.MostHops)}}
	if plan.Stage, err = feature.ParseClockStage(r.Stage); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	if err := u.clockPorts(r.Plan, &plan.ClockPlan); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	k, ok := u.clockOf()
	if !ok {
		return nil, connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("switch %s has no clock", u.name))
	}
	call := &vswitch.CallFeature{Feature: k.name, Call: plan}
	command, err := u.sw.Prepare(call)
	if err != nil {
		return nil, connect.NewError(connect.CodeFailedPrecondition, err)
	}
	if err := d.engine.Command(u.workers[k.at], u.sw.Nodes[k.at], command); err != nil {
		return nil, connect.NewError(connect.CodeUnavailable, err)
	}
	if err := call.Refusal(); err != nil {
		return nil, connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("switch %s: %w", u.name, err))
	}
	out, err := d.clock(u, k)
	if err != nil {
		return nil, connect.NewError(connect.CodeUnavailable, err)
	}
	return out, nil
}

// clockPorts finds the ports of a plan by their names.
func (u *unit) clockPorts(p *api.ClockPlan, to *feature.ClockPlan) error {
	find := func(name string) (int, error) {
		if at, ok := u.numbers[name]; ok {
			return at, nil
		}
		return 0, fmt.Errorf("switch %s has no port %q", u.name, name)
	}
	to.Parent, to.Second = -1, -1
	var err error
	if p.Parent != "" {
		if to.Parent, err = find(p.Parent); err != nil {
			return err
		}
	}
	if p.Second != "" {
		if to.Second, err = find(p.Second); err != nil {
			return err
		}
	}
	for _, name := range p.Send {
		at, err := find(name)
		if err != nil {
			return err
		}
		to.Send = append(to.Send, at)
	}
	if p.Hops > 255 || p.MostHops > 255 {
		return fmt.Errorf("%d and %d hops: there are 255 at most", p.Hops, p.MostHops)
	}
	return nil
}
