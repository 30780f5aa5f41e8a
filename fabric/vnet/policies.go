package vnet

import (
	"math/bits"

	"gswitch/config"
	"gswitch/policy"
)

// oneQueue maps all lossy classes to the lowest of their queues.
func (n *Network) oneQueue(d *config.Switch) {
	lossless := uint8(0)
	if n.cfg.PFC.On {
		lossless = n.lossless()
	}
	first := bits.TrailingZeros8(^lossless)
	for class := range d.Classes.Queue {
		if lossless>>class&1 == 0 {
			d.Classes.Queue[class] = first
		}
	}
}

// PolicyTotals are sums of policy.Counters, in their order. nil: there are no policies.
type PolicyTotals []int64

func (t *PolicyTotals) add(v []policy.QueueStats) {
	sum := make(PolicyTotals, len(policy.Counters))
	for i := range v {
		for k := range policy.Counters {
			sum[k] += policy.Counters[k].Of(&v[i])
		}
	}
	t.Plus(sum)
}

// Plus adds the counters of another part of the network.
func (t *PolicyTotals) Plus(o PolicyTotals) {
	if *t == nil && o != nil {
		*t = make(PolicyTotals, len(policy.Counters))
	}
	for k, v := range o {
		(*t)[k] += v
	}
}

// Policies returns the sums over the policies of all egress queues and over their
// shadows.
func (n *Network) Policies() (live, shadow PolicyTotals) {
	if q := &n.cfg.Queue; q.Policy == nil && q.Shadow == nil {
		return live, shadow
	}
	for i, sw := range n.Switches {
		for p := range n.Ports(i) {
			s := sw.Nodes[0].Scheduler(uint16(p))
			for q := range 8 {
				d, _ := s.Serving(q)
				if e := policy.Held(d); e != nil {
					live.add(e.Stats())
				}
				if w := policy.Watched(s.Admitting(q)); w != nil {
					shadow.add(w.Stats())
				}
			}
		}
	}
	return live, shadow
}
