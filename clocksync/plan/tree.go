package plan

import "slices"

// tree is a primary tree with what the search needs of it.
type tree struct {
	w       *network
	root    int
	parent  []int
	enter   []int // first and last number of a node's subtree, in preorder
	leave   []int
	top     []int // child of the root above a node
	depth   []int
	domains [][]int // domains on the way from the root, the node's own included; slices are shared
}

// newTree returns the tree of these parents, or nil if they are none.
func newTree(w *network, root int, parent []int, leaf []bool) *tree {
	n := w.n
	t := &tree{w: w, root: root, parent: parent, enter: make([]int, n), leave: make([]int, n), top: make([]int, n), depth: make([]int, n), domains: make([][]int, n)}
	first, next := make([]int, n), make([]int, n) // children as lists
	for i := range first {
		first[i], next[i] = -1, -1
		t.enter[i] = -1
	}
	members := 1
	for i := n - 1; i >= 0; i-- {
		if leaf[i] || i == root {
			continue
		}
		if parent[i] < 0 {
			return nil
		}
		members++
		next[i], first[parent[i]] = first[parent[i]], i
	}
	clock := 0
	stack := []int{root}
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		if t.enter[i] < 0 {
			t.enter[i] = clock
			clock++
			t.arrive(i)
			for c := first[i]; c >= 0; c = next[c] {
				stack = append(stack, c)
			}
			continue
		}
		stack = stack[:len(stack)-1]
		t.leave[i] = clock
	}
	if clock != members {
		return nil
	}
	return t
}

func (t *tree) arrive(i int) {
	if i == t.root {
		t.top[i], t.domains[i] = -1, t.w.domains[i]
		return
	}
	p := t.parent[i]
	t.depth[i] = t.depth[p] + 1
	t.top[i] = t.top[p]
	if p == t.root {
		t.top[i] = i
	}
	t.domains[i] = t.domains[p]
	add := func(d int) {
		if !slices.Contains(t.domains[i], d) {
			t.domains[i] = append(slices.Clip(t.domains[i]), d)
		}
	}
	for _, d := range t.w.domains[i] {
		add(d)
	}
	for _, e := range t.w.near[i] {
		if e.to == p {
			for _, d := range e.domains {
				add(d)
			}
			break
		}
	}
}

// ancestor reports whether x is y or above it.
func (t *tree) ancestor(x, y int) bool { return t.enter[x] <= t.enter[y] && t.enter[y] < t.leave[x] }

// usable reports whether y may have x as its second parent over link e: x is not
// above y, neither is the root, and no domain takes down both ways that y itself
// does not belong to (properties 2 and 4).
func (t *tree) usable(x, y int, e edge) bool {
	return x != t.root && y != t.root && !t.ancestor(x, y) && t.disjoint(x, y, e)
}

func (t *tree) disjoint(x, y int, e edge) bool {
	shared := func(ds []int) bool {
		for _, d := range ds {
			if slices.Contains(t.domains[y], d) && !slices.Contains(t.w.domains[y], d) {
				return true
			}
		}
		return false
	}
	return !shared(t.w.domains[x]) && !shared(e.domains)
}

// largest finds a largest backup graph of the tree with the backup root r
// (LARGEST of section 3.4.1.3): all nodes that the backup root reaches over
// usable links, and an edge back to it that closes a loop through another subtree
// of the root's. It returns the second parents, and how many these are.
func (t *tree) largest(r int, leaf []bool) (backup []int, count int) {
	backup = make([]int, t.w.n)
	for i := range backup {
		backup[i] = -1
	}
	crossed := make([]bool, t.w.n)
	queue := []int{r}
	reached := make([]bool, t.w.n)
	reached[r] = true
	for i := 0; i < len(queue); i++ {
		x := queue[i]
		for _, e := range t.w.near[x] {
			y := e.to
			if leaf[y] || reached[y] || !t.usable(x, y, e) {
				continue
			}
			reached[y] = true
			backup[y], crossed[y] = x, crossed[x] || t.top[y] != r
			count++
			queue = append(queue, y)
		}
	}
	best := -1
	for _, e := range t.w.near[r] {
		y := e.to
		if !leaf[y] && reached[y] && crossed[y] && t.usable(y, r, e) && (best < 0 || t.depth[y] < t.depth[best]) {
			best = y
		}
	}
	if best >= 0 {
		backup[r] = best
		count++
	}
	return backup, count
}
