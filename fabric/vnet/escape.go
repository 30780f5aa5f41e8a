package vnet

import (
	"fmt"

	"github.com/gswitch/gswitch/escape"
	"github.com/gswitch/gswitch/fabric"
	"github.com/gswitch/gswitch/frame"
	"github.com/gswitch/gswitch/vswitch"
)

// Escape lets frames of lossless classes out of paused queues, on every link
// between two switches.
type Escape struct {
	On bool
	escape.Config
	Period frame.Time // see vswitch.EscapeConfig
}

// escapeQueue is where frames escape. Its class waits in the queue above.
const escapeQueue = 6

// escapeSwitch lets the switch take part.
func (n *Network) escapeSwitch(c *vswitch.Config) {
	if e := &n.cfg.Escape; e.On {
		c.Escape = vswitch.EscapeConfig{On: true, Queue: escapeQueue, Config: e.Config, Period: e.Period}
		c.Class.Queue[escapeQueue] = escapeQueue + 1
	}
}

// escapePort makes the port of a switch one by which frames escape.
func (n *Network) escapePort(c *vswitch.PortConfig, peer int) {
	if n.cfg.Escape.On {
		c.Escape = n.swOf[peer] >= 0
		q := &c.Scheduler.Queues[escapeQueue]
		q.Weight, q.Discipline = 0, nil
	}
}

// Detour makes a switch send what is for the hosts of another switch by a
// neighbour that is not on a shortest path, as after a failure or by mistake.
// Network.Ideal and BaseRTT do not know of it.
type Detour struct{ At, To, Via string }

// detour changes the routes of a node.
func (n *Network) detour(c *vswitch.Config, node int) error {
	for _, d := range n.cfg.Detours {
		if d.At != n.Topology.Nodes[node].Name {
			continue
		}
		to, ok := n.SwitchByName(d.To)
		if !ok {
			return fmt.Errorf("virtual network %s: the detour at %s leads to %s, which is no switch", n.Topology.Name, d.At, d.To)
		}
		via := -1
		for p := range n.Topology.Nodes[node].Links {
			if peer := n.Topology.Peer(node, p); n.swOf[peer.Node] >= 0 && n.Topology.Nodes[peer.Node].Name == d.Via {
				via = p
			}
		}
		if via < 0 || n.Topology.Mode != fabric.L3 {
			return fmt.Errorf("virtual network %s: the detour at %s goes by %s, which is no switch beside it in a routed network", n.Topology.Name, d.At, d.Via)
		}
		peer := n.Topology.Peer(node, via)
		addr := n.Plan.Nodes[peer.Node].Ports[peer.Port][0].Addr()
		for i := range c.Routes {
			for _, a := range n.Plan.Nodes[n.swNode[to]].Address {
				if c.Routes[i].Prefix == a.Masked() {
					c.Routes[i].NextHops = []vswitch.NextHop{{Via: addr}}
				}
			}
		}
	}
	return nil
}

// Escaped sums up what all ports of all switches had to do with frames that
// escape, and is false in a network where none may.
func (n *Network) Escaped() (c escape.Counts, on bool) {
	for _, sw := range n.Switches {
		for _, v := range sw.Nodes[0].Escape(nil) {
			c.Made += v.Made
			c.Forwarded += v.Forwarded
			c.Hits += v.Hits
			c.Dropped += v.Dropped
			c.Arrived += v.Arrived
			c.Strays += v.Strays
			c.Reclaimed += v.Reclaimed
			c.Full += v.Full
		}
	}
	return c, n.cfg.Escape.On
}
