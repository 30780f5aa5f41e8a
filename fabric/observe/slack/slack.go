// Package slack replays schedules (switch.replay): a run is made twice, the second time
// with what each packet waited in the first as its slack.
package slack

import (
	"context"
	"fmt"

	"gswitch/config"
	"gswitch/fabric/observe"
	"gswitch/fabric/scenario"
	"gswitch/fabric/vnet"
	"gswitch/frame"
	"gswitch/lstf"
	slack "gswitch/lstf/point"
)

func init() {
	observe.Register(&observe.System{
		Name:    "replay",
		On:      func(d *scenario.Document) bool { return d.Switch.Replay },
		Divided: "switch.replay: what packets waited is known to the switches that sent them, which are in one process: run it with --processes one",
		Virtual: "switch.replay repeats a run to the nanosecond, which is possible in virtual time only: run it with --on sim",
		New: func(ctx context.Context, r *observe.Run) (*observe.Observer, error) {
			waits := &lstf.Schedule{}
			err := r.Rehearse(ctx, func(c *vnet.Config) {
				onPorts(c, func(o *slack.Config) {
					if o.Recorded = waits; !o.Fixed {
						o.Policy = lstf.Policy{} // nothing goes by it
					}
				})
			})
			if err != nil {
				return nil, fmt.Errorf("switch.replay: the schedule to be replayed: %w", err)
			}
			return &observe.Observer{Network: func(c *vnet.Config) {
				c.Cores = 1 // what nodes share belongs to one thread
				replay(c, waits, r.Doc.Switch.ReplayPriority)
			}}, nil
		},
	})
}

// unscheduled is the slack of packets that had not left yet when the first run
// ended: they go behind the others.
const unscheduled = 60 * frame.Second

// replay makes queues of a network serve the least slack first, each packet's being
// what it waited in a schedule (Mittal et al., "Universal Packet Scheduling", NSDI
// 2016, section 2.3), or by priority the one first that left first then.
func replay(c *vnet.Config, waits *lstf.Schedule, priority bool) {
	by, kind := "slack", lstf.Replay
	if priority {
		by, kind = "priority", lstf.Exit
	}
	c.Queue = config.Queue{Order: &config.Order{Kind: "ranked"}, Ranking: config.Ranking{Rank: by, Inversions: c.Queue.Inversions}}
	onPorts(c, func(o *slack.Config) {
		o.Policy, o.Fixed = lstf.Policy{Kind: kind, Of: unscheduled, Schedule: waits}, priority
	})
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
