package vnet

import (
	"gswitch/fabric/pauses"
	"gswitch/frame"
)

// Deadlock is a circle of egress queues each of which is held back by the
// switch of the next, because of frames that wait in that one.
type Deadlock struct {
	Class uint8
	Ports []Port     // each waits for the next or for another one of them
	Since frame.Time // none of them has sent a frame of the class since
}

// Deadlocks returns the circles of queues that wait for each other at now. One
// that has lasted for longer than a pause takes to end by itself will last
// forever, unless frames escape. On real frames it is for use after Halt.
func (n *Network) Deadlocks(now frame.Time) []Deadlock { return n.Circles(n.Waits(now)) }

// Waits returns the egress queues that their neighbours hold back at now. Where
// other processes step nodes, too, these report their own.
func (n *Network) Waits(now frame.Time) (v []pauses.Wait) {
	for s, sw := range n.Switches {
		for _, w := range sw.Nodes[0].Waits(now, nil) {
			p := pauses.Wait{At: n.end(n.swNode[s], int(w.Port)), Class: int(w.Class), Since: w.Since}
			for _, from := range w.From {
				p.From = append(p.From, int(from))
			}
			v = append(v, p)
		}
	}
	return v
}

// Circles returns the circles among queues that wait.
func (n *Network) Circles(v []pauses.Wait) (found []Deadlock) {
	for _, c := range pauses.Circles(v, n.peer) {
		d := Deadlock{Class: uint8(c.Class), Since: c.Since}
		for _, e := range c.Ports {
			s, _ := n.SwitchByName(e.Node)
			d.Ports = append(d.Ports, Port{s, e.Port})
		}
		found = append(found, d)
	}
	return found
}

// end names a port of a node of the topology.
func (n *Network) end(node, port int) pauses.End {
	t := n.Topology
	return pauses.End{Node: t.Nodes[node].Name, Port: port, To: t.Nodes[t.Peer(node, port).Node].Name}
}

// peer is the other end of a port's link.
func (n *Network) peer(e pauses.End) pauses.End {
	node, _ := n.Topology.Lookup(e.Node)
	far := n.Topology.Peer(node, e.Port)
	return n.end(far.Node, far.Port)
}
