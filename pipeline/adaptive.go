package pipeline

import (
	"fmt"
	"math/bits"
	"slices"

	"gswitch/frame"
)

// MaxTiers is the largest number of thresholds for the load of a port.
const MaxTiers = 4

// byPort are the ports of a group's members with weight, and the mapping from a port back
// to its member.
type byPort struct {
	set    PortSet
	lo, hi uint8             // words of set with a port: from lo, below hi
	before [portWords]uint16 // ports in the words before each
	hop    []uint32          // next hops in the order of their ports
}

// AtPorts returns the group with the ports of its members: ports[i] is that of member i.
// Choosers by port need them. No two members may have the same port.
func (g *Group) AtPorts(ports []uint16) (*Group, error) {
	if len(ports) != len(g.members) {
		return nil, fmt.Errorf("group: %d ports for %d members", len(ports), len(g.members))
	}
	e := byPort{lo: portWords}
	order := make([]int, 0, len(ports))
	for i, p := range ports {
		switch {
		case p >= MaxPorts:
			return nil, fmt.Errorf("group: port %d of next hop %d is not below %d", p, g.members[i].NextHop, MaxPorts)
		case g.members[i].Weight == 0:
			continue
		case e.set[p/64]>>(p%64)&1 != 0:
			return nil, fmt.Errorf("group: two next hops are at port %d", p)
		}
		e.set[p/64] |= 1 << (p % 64)
		order = append(order, i)
	}
	slices.SortFunc(order, func(a, b int) int { return int(ports[a]) - int(ports[b]) })
	for _, i := range order {
		e.hop = append(e.hop, g.members[i].NextHop)
	}
	n := 0
	for w, word := range e.set {
		e.before[w] = uint16(n)
		if n += bits.OnesCount64(word); word != 0 {
			e.lo, e.hi = min(e.lo, uint8(w)), uint8(w+1)
		}
	}
	ng := *g
	ng.byPort = e
	return &ng, nil
}

// Ports returns the ports of the members with weight, empty if AtPorts was not
// called.
func (g *Group) Ports() PortSet { return g.byPort.set }

// at returns the next hop whose port is bit b of word w.
func (e *byPort) at(w, b int) uint32 {
	w &= portWords - 1
	return e.hop[int(e.before[w])+bits.OnesCount64(e.set[w]&(1<<(b&63)-1))]
}

// Adaptive returns a next hop whose port is in the lowest tier that any port
// of the group is in, chosen uniformly at random, and the tier. tiers[t] are
// the ports whose load is below threshold t, for the class of the frame; if
// none of the group's is below the last, all of the group are tier len(tiers).
// Ports that are not up have no part. It returns NoEntry if none is up.
//
// This is the port selection of DeTail (Zats et al., UCB/EECS-2012-33, section
// 4.3): the set is that of the shortest paths, cut with the favoured ports; a
// port that is favoured and on no shortest path is never taken.
func (g *Group) Adaptive(up *PortSet, tiers []PortSet, rng *frame.Rand) (hop uint32, tier int) {
	e := &g.byPort
	if e.hi-e.lo == 1 { // the usual case: up to 64 ports, or all close to each other
		w := int(e.lo) & (portWords - 1)
		all := e.set[w] & up[w]
		for t := range tiers {
			s := all & tiers[t][w]
			if s == e.set[w] { // the usual case: none has to be left out
				k := uint32(0)
				if n := uint32(len(e.hop)); n > 1 {
					k = rng.Uint32n(n)
				}
				return e.hop[k], t
			}
			if s != 0 {
				return e.at(w, pick(s, rng)), t
			}
		}
		if all == 0 {
			return NoEntry, len(tiers)
		}
		return e.at(w, pick(all, rng)), len(tiers)
	}
	var s PortSet
	for t := range tiers {
		if n := e.cut(&s, up, &tiers[t]); n > 0 {
			return e.pick(&s, n, rng), t
		}
	}
	if n := e.cut(&s, up, up); n > 0 {
		return e.pick(&s, n, rng), len(tiers)
	}
	return NoEntry, len(tiers)
}

// pick returns one of the set bits of s, uniformly at random. If there is only one, it
// draws no random number.
func pick(s uint64, rng *frame.Rand) int {
	if s&(s-1) == 0 {
		return bits.TrailingZeros64(s)
	}
	n := uint32(bits.OnesCount64(s))
	return nth(s, rng.Uint32n(n), n)
}

// cut sets s to the ports of the group that are in a and in b, and counts them.
func (e *byPort) cut(s, a, b *PortSet) (n int) {
	for w := range s {
		s[w] = e.set[w] & a[w] & b[w]
		n += bits.OnesCount64(s[w])
	}
	return n
}

// pick is pick for a set of n ports in several words.
func (e *byPort) pick(s *PortSet, n int, rng *frame.Rand) uint32 {
	k := uint32(0)
	if n > 1 {
		k = rng.Uint32n(uint32(n))
	}
	for w := range s {
		c := uint32(bits.OnesCount64(s[w]))
		if k < c {
			return e.at(w, nth(s[w], k, c))
		}
		k -= c
	}
	return NoEntry
}

// Least returns the next hop at whose port load is least, at random among
// equals. Ports that are not up have no part. It returns NoEntry if none is
// up. It visits every port of the group: the reference that tiers are compared
// with.
func (g *Group) Least(up *PortSet, load *[MaxPorts]uint64, rng *frame.Rand) uint32 {
	e := &g.byPort
	best, ties := NoEntry, uint32(0)
	var least uint64
	for w := int(e.lo); w < int(e.hi); w++ {
		for s := e.set[w] & up[w]; s != 0; s &= s - 1 {
			b := bits.TrailingZeros64(s)
			switch l := load[w*64+b]; {
			case ties == 0 || l < least:
				best, ties, least = int(e.at(w, b)), 1, l
			case l == least:
				// The n-th of equals is chosen with probability 1/n.
				if ties++; rng.Uint32n(ties) == 0 {
					best = int(e.at(w, b))
				}
			}
		}
	}
	return uint32(best)
}
