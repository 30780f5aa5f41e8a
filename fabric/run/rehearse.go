package run

import (
	"context"
	"fmt"

	"gswitch/fabric/scenario"
	"gswitch/fabric/vnet"
	"gswitch/frame"
)

// rehearse makes a run in virtual time to learn something from it, in a network that
// change may change first. It fails if frames are lost, since other frames would then
// arrive than in the real run.
func rehearse(ctx context.Context, s *scenario.Scenario, r *scenario.Run, change func(*vnet.Config)) error {
	c, err := describe(r, false)
	if err != nil {
		return err
	}
	change(c)
	n, err := vnet.Build(c)
	if err != nil {
		return err
	}
	rec, _ := recorder(n, r)
	t, err := newTraffic(ctx, n, here{n}, rec, r, s.File)
	if err != nil {
		return err
	}
	t.listen(rec)
	t.begin()
	end := frame.Time(r.Doc.Duration)
	for k := frame.Time(1); k <= pieces; k++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := n.Engine.Run(end / pieces * k); err != nil {
			return err
		}
	}
	lost := uint64(0)
	for why, k := range n.Drops() {
		if frame.Reason(why).Loss() {
			lost += k
		}
	}
	if lost > 0 {
		return fmt.Errorf("%d packets are lost, and others than would arrive; give switch.buffer more", lost)
	}
	return n.Engine.Close()
}
