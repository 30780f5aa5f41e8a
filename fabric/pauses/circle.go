package pauses

import (
	"slices"

	"gswitch/frame"
)

// Wait is an egress port whose frames of a class its neighbour holds back.
type Wait struct {
	At    End        `json:"at"`
	Class int        `json:"class"`
	Since frame.Time `json:"since_ns"`
	// From are the ports of At.Node by which frames that wait there came.
	From []int `json:"from"`
}

// Circle is a deadlock: egress ports each of which is held back by the node of
// another one of them, because of frames that wait in that one. One that lasts
// for longer than a pause does that ends lasts for ever, unless frames escape
// or a watchdog drops them.
type Circle struct {
	Class int        `json:"class"`
	Ports []End      `json:"ports"`    // each waits for the next, or for another one of them
	Since frame.Time `json:"since_ns"` // none of them has sent a frame of the class since
}

// waiting is a node of the graph of which queue waits for which.
type waiting struct {
	on []int // those that it waits for

	index, low int // of Tarjan's algorithm; index 0 = not visited
	stacked    bool
}

// Circles returns the circles among queues that wait. peer is the other end of
// a port's link.
func Circles(v []Wait, peer func(End) End) []Circle {
	g := make([]waiting, len(v))
	for i := range v {
		far := peer(v[i].At)
		for j := range v {
			if v[j].At.Node == far.Node && v[j].Class == v[i].Class && slices.Contains(v[j].From, far.Port) {
				g[i].on = append(g[i].on, j)
			}
		}
	}
	var found []Circle
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
		c := Circle{Class: v[i].Class}
		for k, j := range circle {
			g[j].stacked = false
			c.Ports = append(c.Ports, v[j].At)
			if k == 0 || v[j].Since > c.Since {
				c.Since = v[j].Since
			}
		}
		if len(circle) > 1 {
			found = append(found, c)
		}
	}
	for i := range g {
		if g[i].index == 0 {
			visit(i)
		}
	}
	return found
}
