package vnet

import (
	"net/netip"

	"gswitch/config"
	"gswitch/fabric"
	"gswitch/pipeline"
	"gswitch/vswitch"
)

// paths says how switches choose among shortest paths. Choice by link capacity takes the
// capacity of whole paths here, since the network is known: weights gives each next hop
// its weight, and flows are hashed by the weights.
func (n *Network) paths() *config.Paths {
	c := n.cfg.Paths
	if c.Choose == pipeline.ChooseWeighted.String() {
		c.Choose = pipeline.ChooseHash.String()
	}
	return &c
}

// weights returns, for a node and a prefix, the weight of each port: the capacity through
// it on shortest paths, in Mb/s. nil: all weights are equal.
func (n *Network) weights(node int, prefix netip.Prefix) func(port int) uint32 {
	if n.cfg.Paths.Choose != pipeline.ChooseWeighted.String() {
		return nil
	}
	to := -1
	for _, s := range n.swNode {
		for _, a := range n.Plan.Nodes[s].Address {
			if a.Masked() == prefix {
				to = s
			}
		}
	}
	if to < 0 {
		return nil
	}
	t := n.Topology
	w := capacities{t: t, dist: t.HopsTo(to), of: make([]uint64, len(t.Nodes))}
	return func(port int) uint32 { return uint32(min(max(w.by(node, port)/1e6, 1), 1<<32-1)) }
}

// capacities holds the capacity from each switch to one destination over shortest paths,
// in bit/s, each path limited by its narrowest link.
type capacities struct {
	t    *fabric.Topology
	dist []int
	of   []uint64 // 0: not yet computed
}

// by returns the capacity through one port of a node.
func (c *capacities) by(node, port int) uint64 {
	l := &c.t.Links[c.t.Nodes[node].Links[port]]
	rate := l.Rate
	if rate == 0 {
		rate = ^uint64(0) >> 16 // unlimited: more than any link, yet small enough to be summed
	}
	far := c.t.Peer(node, port).Node
	if c.dist[far] == 0 {
		return rate
	}
	if c.of[far] == 0 {
		for p := range c.t.Nodes[far].Links {
			if m := c.t.Peer(far, p).Node; c.t.Nodes[m].Kind == fabric.Switch && c.dist[m] == c.dist[far]-1 {
				c.of[far] += c.by(far, p)
			}
		}
	}
	return min(rate, c.of[far])
}

// PathCounts returns the sum of how all switches chose, and their configuration.
func (n *Network) PathCounts() (c vswitch.PathCounts, by vswitch.PathsConfig) {
	for _, sw := range n.Switches {
		k := sw.Nodes[0].PathCounts()
		c.Plus(&k)
	}
	return c, n.cfg.Paths.Config()
}
