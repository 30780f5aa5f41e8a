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

// PolicyTotals are the sums of the counters of policies.
type PolicyTotals struct {
	On                                  bool
	Sent, SentBytes, Refused, PushedOut uint64
	Marked, Late, Notices               uint64
	Value, LostValue                    int64
}

func (t *PolicyTotals) add(v []policy.QueueStats) {
	t.On = true
	for i := range v {
		q := &v[i]
		t.Plus(&PolicyTotals{true, q.Sent, q.SentBytes, q.Refused, q.PushedOut, q.Marked, q.Late, q.Notices, q.Value, q.RefusedValue})
	}
}

// Plus adds the counters of another part of the network.
func (t *PolicyTotals) Plus(o *PolicyTotals) {
	t.On = t.On || o.On
	t.Sent += o.Sent
	t.SentBytes += o.SentBytes
	t.Refused += o.Refused
	t.PushedOut += o.PushedOut
	t.Marked += o.Marked
	t.Late += o.Late
	t.Notices += o.Notices
	t.Value += o.Value
	t.LostValue += o.LostValue
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
