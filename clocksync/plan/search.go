package plan

import (
	"hash/maphash"
	"slices"
)

// search looks for a plan (SEARCH of section 3.4.1.3): from a few trees on, it
// makes those better whose backup graph reaches the most nodes, until one reaches
// all.
type search struct {
	*network
	graph *Graph
	root  int
	leaf  []bool
}

const (
	mostTrees   = 4000 // tried for one backup root
	mostBranch  = 48   // better trees looked for from one
	backupRoots = 8    // children of the root that are tried
)

// find returns a plan without its depths, or nil.
func (s *search) find() *Plan {
	members := 0
	for i := range s.n {
		if !s.leaf[i] {
			members++
		}
	}
	if members < 3 {
		return nil
	}
	seed := maphash.MakeSeed()
	for _, r := range s.candidates() {
		var pending []attempt
		tested := map[uint64]bool{}
		push := func(parent []int) (a attempt, whole bool) {
			key := maphash.Comparable(seed, fingerprint(parent))
			if parent[r] != s.root || tested[key] {
				return a, false
			}
			tested[key] = true
			t := newTree(s.network, s.root, parent, s.leaf)
			if t == nil {
				return a, false
			}
			a = attempt{tree: t}
			a.backup, a.score = t.largest(r, s.leaf)
			pending = append(pending, a)
			return a, a.score == members-1 && s.stands(r, a)
		}
		for _, parent := range s.seeds(r) {
			if a, whole := push(parent); whole {
				return s.plan(r, a)
			}
		}
		for len(pending) > 0 && len(tested) < mostTrees {
			best := 0
			for i := range pending {
				if pending[i].score > pending[best].score {
					best = i
				}
			}
			a := pending[best]
			pending = slices.Delete(pending, best, best+1)
			branches, done := 0, false
			s.improve(a, r, func(parent []int) bool {
				before := len(tested)
				b, whole := push(parent)
				if whole {
					a, done = b, true
					return false
				}
				if len(tested) > before {
					branches++
				}
				return branches < mostBranch && (b.tree == nil || b.score <= a.score)
			})
			if done {
				return s.plan(r, a)
			}
		}
	}
	return nil
}

// stands reports whether a plan that reaches all nodes survives the failure of each
// domain.
func (s *search) stands(r int, a attempt) bool {
	p := s.plan(r, a)
	p.Primary, p.Backup = slices.Clone(p.Primary), slices.Clone(p.Backup)
	attach(s.network, p, s.leaf)
	return len(verify(p, domainFailures(s.graph))) == 0
}

type attempt struct {
	tree   *tree
	backup []int
	score  int
}

func (s *search) plan(r int, a attempt) *Plan {
	return &Plan{Root: s.root, BackupRoot: r, Primary: a.tree.parent, Backup: a.backup}
}

// candidates are the neighbours of the root that may stand in for it: not of one
// of its domains, those with many links first.
func (s *search) candidates() []int {
	var v []int
	for _, i := range s.distinct(s.root) {
		if s.leaf[i] || slices.ContainsFunc(s.domains[i], func(d int) bool { return slices.Contains(s.domains[s.root], d) }) {
			continue
		}
		v = append(v, i)
	}
	slices.SortStableFunc(v, func(a, b int) int { return len(s.near[b]) - len(s.near[a]) })
	return v[:min(len(v), backupRoots)]
}

// seeds are the trees that the search begins with: breadth first, and one by
// st-numbers, with which a plan is whole wherever there are no domains.
func (s *search) seeds(r int) [][]int {
	out := [][]int{s.breadthFirst(r)}
	if p := s.stTree(r); p != nil {
		out = append(out, p)
	}
	return out
}

func (s *search) breadthFirst(r int) []int {
	parent := make([]int, s.n)
	for i := range parent {
		parent[i] = -1
	}
	parent[r] = s.root
	queue := []int{s.root}
	for i := 0; i < len(queue); i++ {
		x := queue[i]
		if x == s.root {
			queue = append(queue, r)
		}
		for _, e := range s.near[x] {
			if e.to != s.root && !s.leaf[e.to] && parent[e.to] < 0 {
				parent[e.to] = x
				queue = append(queue, e.to)
			}
		}
	}
	return parent
}

// improve yields trees near a in which a node that the backup graph does not
// reach might be (MUTATE, IMPROVE and RECONNECT of section 3.4.1.3): for a link
// from a node that is reached to one that is not, the latter, or a node above it,
// gets another parent from outside its own subtree.
func (s *search) improve(a attempt, r int, yield func(parent []int) bool) {
	t := a.tree
	reached := func(x int) bool { return x == r || a.backup[x] >= 0 }
	missing := func(y int) bool { return y != s.root && !s.leaf[y] && (a.backup[y] < 0) }
	for y := range s.n {
		if !missing(y) {
			continue
		}
		for _, e := range s.near[y] {
			x := e.to
			if s.leaf[x] || x == s.root || !reached(x) || x == y {
				continue
			}
			for v := y; v != s.root; v = t.parent[v] {
				if v == x || v == r {
					break
				}
				for _, f := range s.near[v] {
					w := f.to
					if s.leaf[w] || w == t.parent[v] || t.ancestor(v, w) || t.ancestor(x, w) && t.ancestor(x, y) {
						continue
					}
					p := slices.Clone(t.parent)
					p[v] = w
					if !yield(p) {
						return
					}
				}
			}
		}
	}
	// The loop does not close, or a subtree is in the way as a whole: any node of
	// it may get another parent.
	for v := range s.n {
		if s.leaf[v] || v == s.root || v == r || !missing(v) && !missing(r) {
			continue
		}
		for _, f := range s.near[v] {
			if w := f.to; !s.leaf[w] && w != t.parent[v] && !t.ancestor(v, w) {
				p := slices.Clone(t.parent)
				p[v] = w
				if !yield(p) {
					return
				}
			}
		}
	}
}

// fingerprint is a tree in a form that can be hashed.
func fingerprint(parent []int) string {
	b := make([]byte, 0, 4*len(parent))
	for _, p := range parent {
		b = append(b, byte(p), byte(p>>8), byte(p>>16), byte(p>>24))
	}
	return string(b)
}
