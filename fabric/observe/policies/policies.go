// Package policies sums what the policies of egress queues and their shadows count
// (switch.policy, switch.shadow).
package policies

import (
	"gswitch/fabric/measure"
	"gswitch/fabric/observe"
	"gswitch/fabric/vnet"
	"gswitch/policy"
)

func init() {
	observe.Register(&observe.System{Name: "policies", Values: values(), Count: count})
}

// values are the keys of policies, and of shadows.
func values() (v []measure.Key) {
	for _, shadow := range []bool{false, true} {
		of := "Of the policies of all egress queues together, with switch.policy."
		if shadow {
			of = "Of the shadows of all egress queues together, what would have been, with switch.shadow."
		}
		for i := range policy.Counters {
			c := &policy.Counters[i]
			v = append(v, measure.Key{Name: c.Result(shadow), Of: measure.OfRun, Doc: c.Doc + " " + of})
		}
	}
	return v
}

// count adds up the counters of all egress queues that have a policy or a shadow.
func count(n *vnet.Network, sums map[string]float64) {
	add := func(shadow bool, v []policy.QueueStats) {
		for k := range policy.Counters {
			c, sum := &policy.Counters[k], int64(0)
			for i := range v {
				sum += c.Of(&v[i])
			}
			sums[c.Result(shadow)] += float64(sum)
		}
	}
	for i, sw := range n.Switches {
		for p := range n.Ports(i) {
			s := sw.Nodes[0].Scheduler(uint16(p))
			for q := range 8 {
				d, _ := s.Serving(q)
				if e := policy.Held(d); e != nil {
					add(false, e.Stats())
				}
				if w := policy.Watched(s.Admitting(q)); w != nil {
					add(true, w.Stats())
				}
			}
		}
	}
}
