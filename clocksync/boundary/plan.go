package boundary

import (
	"errors"
	"fmt"

	"gswitch/clocksync"
	"gswitch/feature"
	"gswitch/frame"
)

// planned is what a controller gave the clock. It is no part of the configuration: a
// clock that gets another one follows that, until the controller has seen it.
type planned struct {
	taken    feature.ClockPlan
	promised uint32 // the highest epoch of which there was any stage
}

// TakePlan implements feature.Planned. That no stage of an earlier plan is taken once a
// later one has begun keeps out a controller that was replaced and does not know it.
func (c *Clock) TakePlan(now int64, p *feature.ClockPlan) error {
	own := &c.planned
	switch {
	case !c.requested.Idle:
		return errors.New("the configuration sets the parent of this clock: write clock: {controlled: true} for a controller to do so")
	case p.Epoch < own.promised:
		return fmt.Errorf("plan %d has begun here: plan %d is of a controller that was replaced", own.promised, p.Epoch)
	case p.Epoch == 0:
		return fmt.Errorf("a plan has an epoch of 1 or more")
	case p.Stage != feature.Widen && own.promised != p.Epoch:
		return fmt.Errorf("plan %d has not begun here: its ports are widened first", p.Epoch)
	case p.Stage == feature.Narrow && own.taken.Epoch != p.Epoch:
		return fmt.Errorf("plan %d was not taken here", p.Epoch)
	}
	var send clocksync.Ports
	for _, at := range p.Send {
		if at < 0 || at >= len(c.ports) {
			return fmt.Errorf("there is no port %d to send by", at)
		}
		send.Add(at)
	}
	switch p.Stage {
	case feature.Widen:
		own.promised = p.Epoch
		c.Widen(&send)
	case feature.Take:
		o := c.optionsOf(p)
		o.Transmit = *c.Transmit()
		if err := c.Set(frame.Time(now), o); err != nil {
			return err
		}
		own.taken = *p
	case feature.Narrow:
		c.Narrow(send)
	}
	return nil
}

// optionsOf are those of the configuration, with the place that a plan gives the clock.
func (c *Clock) optionsOf(p *feature.ClockPlan) clocksync.Options {
	o := c.requested
	o.Epoch, o.Idle, o.Root, o.Accept, o.Backup = p.Epoch, false, p.Root, p.Parent, p.Second
	o.EpsBase, o.EpsBackup = frame.Time(p.Hops)*o.Hop, frame.Time(max(p.Hops, p.MostHops))*o.Hop
	if o.Timeout2 = 0; p.Deputy {
		o.Timeout2 = 2 * o.Interval
	}
	return o
}

// View implements feature.Planned.
func (c *Clock) View(now int64) feature.ClockView {
	_, _, depth := c.Place()
	return feature.ClockView{Plan: c.planned.taken, Promised: c.planned.promised, Time: c.ReadTime(now), State: c.State().String(), Identity: c.Identity(),
		Depth: int(depth), Parent: c.Parent(), Turned: c.Turned(), Awaits: c.requested.Idle, Hop: int64(c.requested.Hop)}
}
