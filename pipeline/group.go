package pipeline

import (
	"cmp"
	"fmt"
	"slices"
)

// Member is a next hop of a Group with its share.
type Member struct {
	NextHop uint32
	Weight  uint32 // 0 takes no traffic
}

// MaxBuckets bounds the bucket table of a Group.
const MaxBuckets = 1 << 16

// Group is a set of next hops that share traffic by weight. A bucket table
// makes a choice one multiplication and one load, and makes it resilient: when
// a member goes, only flows in its buckets change their way (RFC 2992 says
// what happens otherwise). A Group is an immutable snapshot.
type Group struct {
	kind    Chooser
	buckets []uint32 // next hop of each bucket
	members []Member
	byPort  byPort // if kind is by port
}

// NewGroup returns a group of n buckets. Shares are exact to one bucket, so n
// should be some ten times the number of members, or more.
func NewGroup(kind Chooser, n int, members []Member) (*Group, error) {
	if n < 1 || n > MaxBuckets {
		return nil, fmt.Errorf("group: %d buckets are not from 1 to %d", n, MaxBuckets)
	}
	g := &Group{kind: kind, buckets: make([]uint32, n)}
	for i := range g.buckets {
		g.buckets[i] = NoEntry
	}
	return g.WithMembers(members)
}

// Select returns the next hop of a key, which is the flow's hash or what
// stands for it, or NoEntry if the group has no member with weight. Keys that
// are spread evenly give each member its share.
func (g *Group) Select(key uint32) uint32 {
	return g.buckets[uint64(key)*uint64(len(g.buckets))>>32]
}

// Members returns the members, in order. The caller must not change them.
func (g *Group) Members() []Member { return g.members }

// Chooser returns how the group chooses.
func (g *Group) Chooser() Chooser { return g.kind }

// Buckets returns the next hop of every bucket. The caller must not change it.
func (g *Group) Buckets() []uint32 { return g.buckets }

// WithMembers returns the group with other members. Buckets keep their next hop as far as
// the new shares allow: if members are only removed, or shares grow only as a result, no
// bucket of the other members moves.
func (g *Group) WithMembers(members []Member) (*Group, error) {
	var sum uint64
	seen := make(map[uint32]int, len(members))
	live := 0
	for i, m := range members {
		if _, dup := seen[m.NextHop]; dup {
			return nil, fmt.Errorf("group: next hop %d is named twice", m.NextHop)
		}
		if m.NextHop == NoEntry {
			return nil, fmt.Errorf("group: next hop %d is reserved", m.NextHop)
		}
		seen[m.NextHop] = i
		sum += uint64(m.Weight)
		if m.Weight > 0 {
			live++
		}
	}
	if live > len(g.buckets) {
		return nil, fmt.Errorf("group: %d members do not fit into %d buckets", live, len(g.buckets))
	}
	ng := &Group{kind: g.kind, buckets: slices.Clone(g.buckets), members: slices.Clone(members)}
	if sum == 0 {
		for i := range ng.buckets {
			ng.buckets[i] = NoEntry
		}
		return ng, nil
	}
	b := balancer{group: ng, share: make([]float64, len(members)), owned: make([]int, len(members)), index: seen}
	for i, m := range members {
		b.share[i] = float64(m.Weight) * float64(len(ng.buckets)) / float64(sum)
	}
	b.run(g.grew(members))
	return ng, nil
}

// grew reports whether a member is new, or has a larger part of the whole than the
// removal of others explains: others must then give up buckets.
func (g *Group) grew(members []Member) bool {
	for _, m := range members {
		i := slices.IndexFunc(g.members, func(o Member) bool { return o.NextHop == m.NextHop })
		if m.Weight > 0 && (i < 0 || g.members[i].Weight < m.Weight) {
			return true
		}
	}
	return false
}

// balancer moves as few buckets as bring every member to its share.
type balancer struct {
	group *Group
	share []float64      // buckets due to each member
	owned []int          // buckets that it has
	index map[uint32]int // next hop -> member
}

func (b *balancer) run(level bool) {
	// The buckets of removed members are free, and so are those that a member has above
	// its share, rounded up.
	var free []int
	for i, nh := range b.group.buckets {
		m, ok := b.index[nh]
		if !ok || float64(b.owned[m]) >= b.share[m] {
			free = append(free, i)
			continue
		}
		b.owned[m]++
	}
	for _, i := range free {
		b.give(i, b.most(func(m int) float64 { return b.share[m] - float64(b.owned[m]) }))
	}
	if !level {
		return
	}
	// If all shares are rounded up, a new member can lack many buckets: take them from
	// the member that is most above its share, one at a time.
	for {
		short := b.most(func(m int) float64 { return b.share[m] - float64(b.owned[m]) })
		if b.share[short]-float64(b.owned[short]) < 1 {
			return
		}
		over := b.most(func(m int) float64 { return float64(b.owned[m]) - b.share[m] })
		b.owned[over]--
		b.give(slices.Index(b.group.buckets, b.group.members[over].NextHop), short)
	}
}

func (b *balancer) give(bucket, m int) {
	b.group.buckets[bucket] = b.group.members[m].NextHop
	b.owned[m]++
}

// most returns the member with weight for which f is largest.
func (b *balancer) most(f func(m int) float64) int {
	best := -1
	for m := range b.group.members {
		if b.group.members[m].Weight > 0 && (best < 0 || cmp.Compare(f(m), f(best)) > 0) {
			best = m
		}
	}
	return best
}
