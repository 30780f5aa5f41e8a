package ns3

import (
	"math/bits"
	"slices"
)

// murmur3 is the 32-bit hash of the MurmurHash3 family (Appleby) over whole
// words: the simulator's choice among equal paths. A switch's seed is its
// number; the words are the two addresses and the two ports.
func murmur3(seed uint32, words ...uint32) uint32 {
	h := seed
	for _, k := range words {
		k *= 0xcc9e2d51
		k = bits.RotateLeft32(k, 15)
		k *= 0x1b873593
		h = bits.RotateLeft32(h^k, 13)*5 + 0xe6546b64
	}
	h ^= 4 * uint32(len(words))
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}

// routes knows the simulator's routes: for every node, its neighbours that are
// one hop nearer to a host, in the order in which its breadth-first search
// from that host comes upon them.
type routes struct {
	t    *Topology
	near [][]int         // neighbours of each node, in the order of the search
	next map[int][][]int // by destination: next nodes of each node
}

// newRoutes prepares the search. The simulator walks through neighbours in the
// order of the addresses of their objects in memory, which is that of their
// creation among hosts and, since switches are large and large objects are
// laid out downwards, the reverse among switches.
func newRoutes(t *Topology) *routes {
	r := &routes{t: t, near: make([][]int, t.Nodes), next: map[int][][]int{}}
	for i := range t.Links {
		l := &t.Links[i]
		r.near[l.A] = append(r.near[l.A], l.B)
		r.near[l.B] = append(r.near[l.B], l.A)
	}
	for n := range r.near {
		slices.SortFunc(r.near[n], func(a, b int) int {
			if t.IsSwitch[a] && t.IsSwitch[b] {
				return b - a
			}
			return a - b
		})
		r.near[n] = slices.Compact(r.near[n])
	}
	return r
}

// to returns the next nodes of every node towards a host.
func (r *routes) to(dst int) [][]int {
	if next, ok := r.next[dst]; ok {
		return next
	}
	next := make([][]int, r.t.Nodes)
	dist := make([]int, r.t.Nodes)
	for i := range dist {
		dist[i] = -1
	}
	dist[dst] = 0
	for todo := []int{dst}; len(todo) > 0; todo = todo[1:] {
		now := todo[0]
		for _, n := range r.near[now] {
			if dist[n] < 0 {
				dist[n] = dist[now] + 1
				if r.t.IsSwitch[n] {
					todo = append(todo, n)
				}
			}
			if dist[n] == dist[now]+1 {
				next[n] = append(next[n], now)
			}
		}
	}
	r.next[dst] = next
	return next
}

// path returns the nodes that frames from host src to host dst pass, without
// src, where their ports are sport and dport.
func (r *routes) path(src, dst int, sport, dport uint16) []int {
	next := r.to(dst)
	var v []int
	for n := src; n != dst; {
		hops := next[n]
		if len(hops) == 0 {
			return nil
		}
		if !r.t.IsSwitch[n] {
			n = hops[0]
		} else {
			n = hops[murmur3(uint32(n), AddrOf(src), AddrOf(dst), uint32(sport)|uint32(dport)<<16)%uint32(len(hops))]
		}
		v = append(v, n)
	}
	return v
}
