package plan

// stTree returns the tree by st-numbers, or nil if the network without leaves
// falls apart when one node fails.
//
// With s the root and t the backup root as neighbours, a network that no single
// node cuts has an st-numbering: every other node has a neighbour with a lower
// number and one with a higher one (Lempel, Even, Cederbaum 1967; found in linear
// time by Tarjan's lists, 1986). Parents with lower numbers make a tree whose
// ancestors are always lower; second parents with higher numbers then lead to the
// backup root without a loop and are never ancestors. So a plan without domains
// exists wherever the network allows one.
func (s *search) stTree(t int) []int {
	number := s.stNumbers(t)
	if number == nil {
		return nil
	}
	order := make([]int, len(number))
	members := 0
	for i, n := range number {
		if n >= 0 {
			order[n] = i
			members++
		}
	}
	parent, depth := make([]int, s.n), make([]int, s.n)
	for i := range parent {
		parent[i] = -1
	}
	for _, i := range order[1:members] {
		if i == t {
			parent[i] = s.root // a leaf of the tree
			depth[i] = 1
			continue
		}
		for _, e := range s.near[i] {
			if n := number[e.to]; n >= 0 && n < number[i] && (parent[i] < 0 || depth[e.to] < depth[parent[i]]) {
				parent[i] = e.to
			}
		}
		if parent[i] < 0 {
			return nil
		}
		depth[i] = depth[parent[i]] + 1
	}
	return parent
}

// stNumbers returns the number of each node, -1 for leaves: 0 for the root and the
// last one for t.
func (s *search) stNumbers(t int) []int {
	n := s.n
	pre, low, parent := make([]int, n), make([]int, n), make([]int, n)
	for i := range pre {
		pre[i] = -1
	}
	var order []int // depth first, t directly below the root
	next := make([]int, n)
	visit := func(i, p int) {
		pre[i], low[i], parent[i] = len(order), i, p
		order = append(order, i)
	}
	visit(s.root, -1)
	visit(t, s.root)
	stack := []int{s.root, t}
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		if i == s.root && len(stack) == 1 {
			break
		}
		if next[i] == len(s.near[i]) {
			stack = stack[:len(stack)-1]
			if p := parent[i]; p >= 0 && pre[low[i]] < pre[low[p]] {
				low[p] = low[i]
			}
			continue
		}
		j := s.near[i][next[i]].to
		next[i]++
		switch {
		case s.leaf[j]:
		case pre[j] < 0:
			visit(j, i)
			stack = append(stack, j)
		case pre[j] < pre[low[i]]:
			low[i] = j
		}
	}
	members := 0
	for i := range n {
		if !s.leaf[i] {
			members++
		}
	}
	if len(order) != members {
		return nil
	}
	// A list in which each node is put before or behind its parent.
	after, before := make([]int, n), make([]int, n)
	for i := range after {
		after[i], before[i] = -1, -1
	}
	after[s.root], before[t] = t, s.root
	minus := make([]bool, n)
	minus[s.root] = true
	for _, i := range order[2:] {
		p := parent[i]
		if minus[low[i]] {
			link(before[p], i, after, before)
			link(i, p, after, before)
			minus[p] = false
		} else {
			a := after[p]
			link(p, i, after, before)
			link(i, a, after, before)
			minus[p] = true
		}
	}
	number := make([]int, n)
	for i := range number {
		number[i] = -1
	}
	k, first := 0, s.root
	for before[first] >= 0 {
		first = before[first]
	}
	for i := first; i >= 0; i = after[i] {
		number[i] = k
		k++
	}
	if number[s.root] != 0 || number[t] != members-1 {
		return nil
	}
	return number
}

func link(a, b int, after, before []int) {
	if a >= 0 {
		after[a] = b
	}
	if b >= 0 {
		before[b] = a
	}
}
