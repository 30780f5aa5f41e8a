package clock

import (
	"gswitch/clocksync"
	"gswitch/frame"
)

// mesh keeps clocks by Marzullo's algorithm (Marzullo and Owicki, "Maintaining the Time in
// a Distributed System", PODC 1983), as section 3.6.2 of Li's dissertation simulates it:
// each node sends what it knows to all neighbours each interval, by its own timer, and
// takes what all that it received agree on. The bounds of two masters are close to zero. It is a model
// of who knows what: its messages take as long as the links, and are no frames.
type mesh struct {
	k        *Keeper
	masters  [2]int
	received [][]claim // by node and port
}

// claim is what a node knows: the time at its own time at lies within eps of time. hops is
// how far it has come from a master.
type claim struct {
	at, time, eps frame.Time
	hops          uint8
	known         bool
}

// since is what the claim is at a later time of the same node.
func (c *claim) since(now frame.Time, drift int64) (low, high frame.Time) {
	span := max(now-c.at, 0)
	eps := c.eps + (span*frame.Time(drift)+1e9-1)/1e9
	return c.time + span - eps, c.time + span + eps
}

// begin has every node send by its own timer; their phases are spread over an interval.
func (m *mesh) begin() {
	t, s := m.k.n.Topology, m.k.spec
	m.masters = [2]int{m.k.first(), m.k.first()}
	for _, i := range t.Switches() { // another one like it, as far away as there is
		if t.Nodes[i].Tier == t.Nodes[m.masters[0]].Tier {
			m.masters[1] = i
		}
	}
	m.received = make([][]claim, len(t.Nodes))
	for i := range t.Nodes {
		m.received[i] = make([]claim, len(t.Nodes[i].Links))
		phase := frame.Time(uint32(i)*2654435769>>8) % s.Interval
		m.k.n.Engine.Every(phase, s.Interval, func(now frame.Time) { m.tick(now, i) })
	}
}

// tick sets a node's clock by what it received, and sends that to its neighbours.
func (m *mesh) tick(now frame.Time, i int) {
	k := m.k
	if !k.live.Node(i) {
		return
	}
	x := &k.nodes[i]
	local := k.n.Engine.LocalTime(x.id, now)
	mine, agree := m.agreed(i, local)
	if i == m.masters[0] || i == m.masters[1] {
		mine, agree = claim{at: local, time: k.truth(now), known: true}, true
		if i != m.masters[0] {
			mine.eps = rounding
		}
	}
	if !agree {
		k.Counts.Disagreed++
		return
	}
	if !mine.known {
		return
	}
	k.call(now, i, &clocksync.Adjust{To: mine.time, Bound: mine.eps, Root: k.nodes[m.masters[0]].Identity(), Hops: mine.hops})
	t := k.n.Topology
	for port, l := range t.Nodes[i].Links {
		if !k.live.Link(l) {
			continue
		}
		far, delay := t.Peer(i, port), frame.Time(t.Links[l].Delay)
		sent := claim{time: mine.time + delay, eps: mine.eps + k.spec.Hop, hops: mine.hops + 1, known: true}
		k.n.Engine.At(now+delay, func(now frame.Time) {
			sent.at = k.n.Engine.LocalTime(k.nodes[far.Node].id, now)
			m.received[far.Node][far.Port] = sent
		})
	}
}

// agreed is the intersection of all that a node knows at its own time, its own clock
// included. It reports whether there is one: else some clock is broken.
func (m *mesh) agreed(i int, local frame.Time) (c claim, agree bool) {
	x, drift := &m.k.nodes[i], m.k.spec.Drift
	low, high := frame.Time(0), clocksync.Forever
	if eps := x.Uncertainty(local); eps != clocksync.Forever {
		_, _, c.hops = x.Place()
		low, high, c.known = x.At(local)-eps, x.At(local)+eps, true
	}
	for j := range m.received[i] {
		h := &m.received[i][j]
		if !h.known {
			continue
		}
		l, u := h.since(local, drift)
		if !c.known || l > low {
			low, c.hops = l, h.hops
		}
		high, c.known = min(high, u), true
	}
	if !c.known {
		return c, true
	}
	c.at, c.time, c.eps = local, low+(high-low)/2, (high-low+1)/2
	return c, low <= high
}
