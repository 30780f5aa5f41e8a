package vnet

import (
	"gswitch/fabric/pauses"
	"gswitch/frame"
)

// Deadlock is a cycle of egress queues. The switch of the next queue holds each one back
// because of frames that wait in the next.
type Deadlock struct {
	Class uint8
	Ports []Port     // each waits for the next, or for another one in the list
	Since frame.Time // time since which none of them has sent a frame of the class
}

// Deadlocks returns the cycles of queues that wait for each other at now. A cycle that
// outlasts the time in which a pause ends by itself lasts forever, unless something moves frames out of it.
// On real frames, call it after Halt only.
func (n *Network) Deadlocks(now frame.Time) []Deadlock { return n.Circles(n.Waits(now)) }

// Waits returns the egress queues that their neighbours hold back at now. It leaves out nodes
// that other processes step: they report their own.
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

// Circles returns the cycles among queues that wait.
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
