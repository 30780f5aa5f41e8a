package run

import (
	"context"
	"fmt"

	"gswitch/fabric/scenario"
	"gswitch/fabric/vnet"
	"gswitch/frame"
	"gswitch/lstf"
	slack "gswitch/lstf/point"
	"gswitch/scheduler"
	"gswitch/scheduler/orders"
)

// unscheduled is the slack of packets that had not left yet when the first run
// ended: they go behind the others.
const unscheduled = 60 * frame.Second

// replay makes queues of a network serve the least slack first, each packet's being
// what it waited in a schedule (Mittal et al., "Universal Packet Scheduling", NSDI
// 2016, section 2.3), or by priority the one first that left first then.
func replay(c *vnet.Config, waits *lstf.Schedule, priority bool) {
	by, kind := scheduler.RankSlack, lstf.Replay
	if priority {
		by, kind = scheduler.RankKept, lstf.Exit
	}
	c.Queue = scheduler.QueueConfig{Order: orders.Ranked{}, Rank: by, Inversions: c.Queue.Inversions}
	onPorts(c, func(o *slack.Config) {
		o.Policy, o.Fixed = lstf.Policy{Kind: kind, Of: unscheduled, Schedule: waits}, priority
	})
}

// rehearse runs r as it stands and returns what packets waited; nil if it is not to
// be replayed.
func rehearse(ctx context.Context, s *scenario.Scenario, r *scenario.Run) (*lstf.Schedule, error) {
	if !r.Doc.Switch.Replay {
		return nil, nil
	}
	c, err := describe(r, false)
	if err != nil {
		return nil, err
	}
	waits := &lstf.Schedule{}
	onPorts(c, func(o *slack.Config) {
		if o.Recorded = waits; !o.Fixed {
			o.Policy = lstf.Policy{} // nothing goes by it
		}
	})
	n, err := vnet.Build(c)
	if err != nil {
		return nil, err
	}
	rec, _ := recorder(n, r)
	t, err := newTraffic(ctx, n, here{n}, rec, r, s.File)
	if err != nil {
		return nil, err
	}
	t.listen(rec)
	t.begin()
	end := frame.Time(r.Doc.Duration)
	for k := frame.Time(1); k <= pieces; k++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := n.Engine.Run(end / pieces * k); err != nil {
			return nil, err
		}
	}
	lost := uint64(0)
	for why, k := range n.Drops() {
		if frame.Reason(why).Loss() {
			lost += k
		}
	}
	if lost > 0 {
		return nil, fmt.Errorf("a schedule in which packets are lost cannot be replayed, and %d are; give switch.buffer more", lost)
	}
	return waits, n.Engine.Close()
}

// onPorts changes what ports have of slack.
func onPorts(c *vnet.Config, change func(*slack.Config)) {
	for i := range c.Features {
		f := &c.Features[i]
		if f.Name != slack.Name {
			continue
		}
		options := f.Options
		f.Options = func(queues uint8, rate uint64) (any, error) {
			o, err := options(queues, rate)
			if err != nil {
				return nil, err
			}
			x := o.(slack.Config)
			change(&x)
			return x, nil
		}
	}
}
