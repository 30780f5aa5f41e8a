package vnet

import (
	"fmt"
	"slices"

	"gswitch/fabric"
	"gswitch/frame"
	"gswitch/vswitch"
)

// Detour makes a switch send frames for the hosts of another switch through a neighbour
// that is not on a shortest path, as after a failure or a misconfiguration. Network.Ideal
// and BaseRTT do not take it into account.
type Detour struct {
	At, To, Via string
	From        frame.Time // when the detour begins
}

// detour changes the routes of a node, at once or at the time of the detour.
func (n *Network) detour(c *vswitch.Config, node int) error {
	for _, d := range n.cfg.Detours {
		if d.At != n.Topology.Nodes[node].Name {
			continue
		}
		routes, err := n.detoured(c, node, d)
		if err != nil {
			return err
		}
		if d.From == 0 {
			for _, r := range routes {
				c.Routes[slices.IndexFunc(c.Routes, func(o vswitch.Route) bool { return o.Prefix == r.Prefix })] = r
			}
			continue
		}
		sw := n.swOf[node]
		n.Engine.At(d.From, func(now frame.Time) {
			for _, r := range routes {
				if err := n.Change(now, sw, vswitch.SetRoute{Route: r}); err != nil {
					n.Engine.Stop(fmt.Errorf("the detour at %s: %w", d.At, err))
				}
			}
		})
	}
	return nil
}

// detoured returns the routes of a node that a detour changes, before the change.
func (n *Network) detoured(c *vswitch.Config, node int, d Detour) ([]vswitch.Route, error) {
	to, ok := n.SwitchByName(d.To)
	if !ok {
		return nil, fmt.Errorf("virtual network %s: the detour at %s leads to %s, which is no switch", n.Topology.Name, d.At, d.To)
	}
	via := -1
	for p := range n.Topology.Nodes[node].Links {
		if peer := n.Topology.Peer(node, p); n.swOf[peer.Node] >= 0 && n.Topology.Nodes[peer.Node].Name == d.Via {
			via = p
		}
	}
	if via < 0 || n.Topology.Mode != fabric.L3 {
		return nil, fmt.Errorf("virtual network %s: the detour at %s goes by %s, which is no switch beside it in a routed network", n.Topology.Name, d.At, d.Via)
	}
	peer := n.Topology.Peer(node, via)
	addr := n.Plan.Nodes[peer.Node].Ports[peer.Port][0].Addr()
	var routes []vswitch.Route
	for _, r := range c.Routes {
		for _, a := range n.Plan.Nodes[n.swNode[to]].Address {
			if r.Prefix == a.Masked() {
				r.NextHops = []vswitch.NextHop{{Via: addr, Weight: 1}}
				routes = append(routes, r)
			}
		}
	}
	return routes, nil
}
