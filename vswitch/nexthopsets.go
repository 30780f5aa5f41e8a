package vswitch

import (
	"slices"

	"gswitch/pipeline"
)

// spareSets is how many sets of next hops may be without a route before it is
// worth looking for them: some 100 KB.
const spareSets = 64

// dropUnusedSets drops the sets of next hops that no route leads to, when there are
// enough sets that they may be the greater part. A controller that changes
// weights makes a set with each change; this keeps them below twice those in
// use and spareSets, at a cost per change that does not depend on their number.
//
// What is left gets new numbers, which hold in this program: workers that still
// forward by an older one read slices of theirs, which are copied here and not
// changed, and go with the last worker that leaves it.
func (p *Program) dropUnusedSets() {
	rt := &p.routing
	if len(rt.groups) < rt.cleanAt {
		return
	}
	used, live := make([]bool, len(rt.groups)), 0
	for _, id := range rt.table.All() {
		if e := &rt.entries[id]; e.kind == routeGroup && !used[e.group] {
			used[e.group] = true
			live++
		}
	}
	rt.cleanAt = 2*live + spareSets
	if live == len(rt.groups) {
		return
	}
	old := *rt
	rt.groups, rt.hops = make([]*pipeline.Group, 0, live), nil
	group, hop := make([]uint32, len(old.groups)), make([]uint32, len(old.hops))
	for i, g := range old.groups {
		group[i] = pipeline.NoEntry
		if !used[i] {
			continue
		}
		for _, m := range g.Members() {
			hop[m.NextHop] = uint32(len(rt.hops))
			rt.hops = append(rt.hops, old.hops[m.NextHop])
		}
		group[i] = uint32(len(rt.groups))
		rt.groups = append(rt.groups, g.Renumber(hop))
	}
	rt.entries = slices.Clone(old.entries)
	for i := range rt.entries {
		switch e := &rt.entries[i]; {
		case e.kind != routeGroup:
		case group[e.group] == pipeline.NoEntry:
			*e = routeEntry{} // of a route that was deleted
		default:
			e.group = group[e.group]
		}
	}
	rt.sets = make(map[string]uint32, live)
	for key, g := range old.sets {
		if group[g] != pipeline.NoEntry {
			rt.sets[key] = group[g]
		}
	}
}
