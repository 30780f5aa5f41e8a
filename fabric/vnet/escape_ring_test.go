package vnet

import (
	"testing"
	"time"

	"gswitch/buffer"
	"gswitch/frame"
)

// The counters of the three links of a ring, as in figure 4.8: without Escape all
// stay above XON once they are stuck; with it each comes down to XON again and
// again, at least once in 5 ms, nothing is lost and every flow is in order.
func TestRingCounters(t *testing.T) {
	const xoff, long = 40_000, 15 * frame.Millisecond
	topo := topology(t, "ring(3, 1)", 40*gig, 40*gig, time.Microsecond)
	for _, on := range []bool{false, true} {
		n := deadRing(t, topo, Escape{On: on}, xoff)
		var done []Done
		n.OnDone(func(_ frame.Time, d *Done) { done = append(done, *d) })
		for i := range 3 {
			start(t, n, Flow{Src: i, Dst: (i + 2) % 3, Bytes: 30_000_000})
		}
		n.advance(t, frame.Millisecond)
		var atXON [3]frame.Time // when each was there last
		for i := range atXON {
			atXON[i] = n.Engine.Now()
		}
		for n.Engine.Now() < long {
			n.advance(t, 2*us)
			for s, held := range n.ringCounters(t) {
				switch now := n.Engine.Now(); {
				case held <= xoff-xoff/10:
					atXON[s] = now
					if !on {
						t.Fatalf("at %v the counter of s%d is at %d without Escape", now.Duration(), s+1, held)
					}
				case on && now-atXON[s] > 5*frame.Millisecond:
					t.Fatalf("the counter of s%d is above XON from %v to %v", s+1, atXON[s].Duration(), now.Duration())
				}
			}
		}
		if n.Lost() != 0 || retransmitted(done) != 0 {
			t.Fatalf("lost %v, sent again %d", n.Drops(), retransmitted(done))
		}
	}
}

// ringCounters returns for each switch of a ring what waits in it of what came
// from the switch before it.
func (n *Network) ringCounters(t *testing.T) (v [3]uint64) {
	t.Helper()
	for s, sw := range n.Switches {
		var b buffer.Snapshot
		sw.Nodes[0].Buffer(&b, false)
		for p := range b.Ports {
			if n.end(n.swNode[s], p).To == n.Topology.Nodes[n.swNode[(s+2)%3]].Name {
				g := &b.Ports[p].Groups[3]
				v[s] = g.Reserved + g.Shared + g.Headroom
			}
		}
	}
	return v
}
