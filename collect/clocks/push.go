package clocks

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"gswitch/control/api"
	"gswitch/feature"
)

// push brings the switches to a plan. Every switch has completed a stage before the next
// one starts, and a switch adopts the plan after its parent, so that whoever follows the
// plan follows it up to the root. If a switch does not answer, or the lease has ended,
// the rest is left as it is: in every stage all switches receive the sync messages of the
// root.
func (c *Controller) push(ctx context.Context, w *wanted) error {
	var all, changed []part
	var levels [][]part
	for _, level := range w.levels {
		var v []part
		for _, p := range level {
			p.plan.Epoch = c.record.Epoch
			all = append(all, p)
			if c.live.differs(&p) {
				v = append(v, p)
			}
		}
		changed, levels = append(changed, v...), append(levels, v)
	}
	if err := c.stage(ctx, feature.Widen, all); err != nil {
		return err
	}
	for _, level := range levels {
		if err := c.stage(ctx, feature.Take, level); err != nil {
			return err
		}
	}
	return c.stage(ctx, feature.Narrow, changed)
}

// stage makes switches carry out a stage concurrently, and waits for all.
func (c *Controller) stage(ctx context.Context, s feature.ClockStage, parts []part) error {
	if !c.lease.Held() {
		return errReplaced
	}
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	errs := make([]error, len(parts))
	var all sync.WaitGroup
	for k := range parts {
		p := &parts[k]
		all.Go(func() {
			name := c.Topology.Nodes[p.node].Name
			m, err := c.Daemons[p.node].PlanClock(ctx, &api.PlanClockRequest{Switch: name, Stage: s.String(), Plan: p.plan})
			if err != nil {
				errs[k] = fmt.Errorf("%s does not %s: %w", name, s, err)
				return
			}
			c.live.clocks[p.node] = m
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
