package vnet

import (
	"slices"

	"github.com/gswitch/gswitch/frame"
	"github.com/gswitch/gswitch/vswitch"
)

// Deadlock is a circle of egress queues each of which is held back by the
// switch of the next, because of frames that wait in that one.
type Deadlock struct {
	Class uint8
	Ports []Port     // each waits for the next or for another one of them
	Since frame.Time // none of them has sent a frame of the class since
}

// waiting is a node of the graph of who waits for whom.
type waiting struct {
	at Port
	vswitch.Wait
	on []int // those that it waits for

	index, low int // of Tarjan's algorithm; index 0 = not visited
	stacked    bool
}

// Deadlocks returns the circles of queues that wait for each other at now. One
// that has lasted for longer than a pause takes to end by itself will last
// forever, unless frames escape. On real frames it is for use after Halt.
func (n *Network) Deadlocks(now frame.Time) []Deadlock {
	g := n.waits(now)
	var found []Deadlock
	var stack []int
	next := 0
	// Tarjan, SIAM J. Computing 1(2), 1972: strongly connected components.
	var visit func(i int)
	visit = func(i int) {
		next++
		w := &g[i]
		w.index, w.low, w.stacked = next, next, true
		stack = append(stack, i)
		for _, j := range w.on {
			if g[j].index == 0 {
				visit(j)
				w.low = min(w.low, g[j].low)
			} else if g[j].stacked {
				w.low = min(w.low, g[j].index)
			}
		}
		if w.low != w.index {
			return
		}
		at := slices.Index(stack, i)
		circle := stack[at:]
		stack = stack[:at]
		d := Deadlock{Class: w.Class}
		for _, j := range circle {
			g[j].stacked = false
			d.Ports = append(d.Ports, g[j].at)
			d.Since = max(d.Since, g[j].Since)
		}
		if len(circle) > 1 {
			found = append(found, d)
		}
	}
	for i := range g {
		if g[i].index == 0 {
			visit(i)
		}
	}
	return found
}

// waits is the graph of who waits for whom.
func (n *Network) waits(now frame.Time) []waiting {
	var g []waiting
	for s, sw := range n.Switches {
		for _, w := range sw.Nodes[0].Waits(now, nil) {
			g = append(g, waiting{at: Port{s, int(w.Port)}, Wait: w})
		}
	}
	for i := range g {
		far := n.Topology.Peer(n.swNode[g[i].at.Switch], g[i].at.Port)
		s := n.swOf[far.Node]
		if s < 0 {
			continue // a host that pauses waits for nobody
		}
		for j := range g {
			if g[j].at.Switch == s && g[j].Class == g[i].Class && slices.Contains(g[j].From, uint16(far.Port)) {
				g[i].on = append(g[i].on, j)
			}
		}
	}
	return g
}
