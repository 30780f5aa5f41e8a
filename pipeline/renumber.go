package pipeline

import "slices"

// Renumber returns the group with other numbers for the same next hops: to[h]
// is the new number of next hop h. Every key leads where it led before.
func (g *Group) Renumber(to []uint32) *Group {
	ng := *g
	ng.buckets, ng.members, ng.byPort.hop = slices.Clone(g.buckets), slices.Clone(g.members), slices.Clone(g.byPort.hop)
	for i := range ng.members {
		ng.members[i].NextHop = to[ng.members[i].NextHop]
	}
	for _, hops := range [][]uint32{ng.buckets, ng.byPort.hop} {
		for i, h := range hops {
			if h != NoEntry {
				hops[i] = to[h]
			}
		}
	}
	return &ng
}
