package fabric

import "net/netip"

// addRoutes gives every switch a route to every other switch's subnet and
// loopbacks, over all shortest paths (hops count, links do not weigh).
func (p *Plan) addRoutes() {
	t := p.Topology
	for _, dst := range t.Switches() {
		var prefixes []netip.Prefix
		for _, a := range p.Nodes[dst].Address {
			prefixes = append(prefixes, a.Masked())
		}
		for _, a := range p.Nodes[dst].Loopback {
			prefixes = append(prefixes, netip.PrefixFrom(a, a.BitLen()))
		}
		dist := t.HopsTo(dst)
		for _, s := range t.Switches() {
			if s == dst {
				continue
			}
			for _, pre := range prefixes {
				p.Nodes[s].Routes = append(p.Nodes[s].Routes, p.shortest(s, dist, pre))
			}
		}
	}
}

// shortest returns the route of switch s to a prefix over every neighbour
// that is one hop nearer to it.
func (p *Plan) shortest(s int, dist []int, pre netip.Prefix) Route {
	t := p.Topology
	r := Route{Prefix: pre}
	for port := range t.Nodes[s].Links {
		far := t.Peer(s, port)
		if t.Nodes[far.Node].Kind != Switch || dist[far.Node] != dist[s]-1 {
			continue
		}
		for _, a := range p.Nodes[far.Node].Ports[far.Port] {
			if a.Addr().Is4() == pre.Addr().Is4() {
				r.Via = append(r.Via, a.Addr())
				r.Ports = append(r.Ports, port)
			}
		}
	}
	return r
}

// HopsTo returns the number of links between every node and dst, without
// passing through hosts. -1: unreachable.
func (t *Topology) HopsTo(dst int) []int {
	dist := make([]int, len(t.Nodes))
	for i := range dist {
		dist[i] = -1
	}
	dist[dst] = 0
	for todo := []int{dst}; len(todo) > 0; todo = todo[1:] {
		n := todo[0]
		for port := range t.Nodes[n].Links {
			m := t.Peer(n, port).Node
			if dist[m] >= 0 {
				continue
			}
			dist[m] = dist[n] + 1
			if t.Nodes[m].Kind == Switch {
				todo = append(todo, m)
			}
		}
	}
	return dist
}

// LongestPath returns the most switches on a shortest path between two hosts.
func (t *Topology) LongestPath() (switches int) {
	hosts := t.Hosts()
	done := map[int]bool{}
	for _, h := range hosts {
		s := t.Peer(h, 0).Node
		if done[s] {
			continue
		}
		done[s] = true
		dist := t.HopsTo(s)
		for _, o := range hosts {
			switches = max(switches, dist[t.Peer(o, 0).Node]+1)
		}
	}
	return switches
}
