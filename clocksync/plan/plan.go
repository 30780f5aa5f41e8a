// Package plan computes which clock follows which: a primary tree and a backup graph such
// that after any single failure of a link, a node, the root or a failure domain
// all that are left still follow a root (section 3.4.1 of Li's dissertation;
// "Sundial", OSDI 2020).
package plan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// Graph is a network. Nodes are numbered from 0.
type Graph struct {
	Nodes int
	Names []string // what errors call the nodes; "node 3" and so on if left out
	Links [][2]int
	// Domains fail as a whole: a pod, a power supply, a patch panel.
	Domains []Domain
}

// Domain is a set of nodes and links that one failure takes down together.
type Domain struct {
	Name  string
	Nodes []int
	Links []int // indices
}

// Plan says for each node which one it follows. Parents are node numbers, -1 for none.
type Plan struct {
	Root       int
	BackupRoot int
	Primary    []int // parent in the primary tree
	Backup     []int // second parent; of a node with one link its only neighbour
	// Depth is how many hops from the root a node is by the primary tree, and
	// BackupDepth the most that it can be after a failure.
	Depth, BackupDepth []int
	Leaf               []bool // nodes with one link: these have no second way
}

// Children returns, for each node, those that it sends to: its children in the primary
// tree and in the backup graph.
func (p *Plan) Children() [][]int {
	out := make([][]int, len(p.Primary))
	for y := range p.Primary {
		for _, x := range []int{p.Primary[y], p.Backup[y]} {
			if x >= 0 && !slices.Contains(out[x], y) {
				out[x] = append(out[x], y)
			}
		}
	}
	return out
}

// ErrNone is wrapped by the errors that say why no plan was found.
var ErrNone = errors.New("no plan")

// Validate reports what is wrong with a graph.
func (g *Graph) Validate() error {
	for i, l := range g.Links {
		if l[0] == l[1] || min(l[0], l[1]) < 0 || max(l[0], l[1]) >= g.Nodes {
			return fmt.Errorf("link %d joins %d and %d; there are nodes 0 to %d", i, l[0], l[1], g.Nodes-1)
		}
	}
	for _, d := range g.Domains {
		for _, n := range d.Nodes {
			if n < 0 || n >= g.Nodes {
				return fmt.Errorf("domain %q has node %d; there are nodes 0 to %d", d.Name, n, g.Nodes-1)
			}
		}
		for _, l := range d.Links {
			if l < 0 || l >= len(g.Links) {
				return fmt.Errorf("domain %q has link %d; there are links 0 to %d", d.Name, l, len(g.Links)-1)
			}
		}
	}
	return nil
}

// name is what errors call a node.
func (g *Graph) name(i int) string {
	if i < len(g.Names) {
		return g.Names[i]
	}
	return "node " + strconv.Itoa(i)
}

// network is a graph in the form that planning wants: neighbours, and the domains
// of nodes and links.
type network struct {
	n       int
	near    [][]edge
	domains [][]int // of each node
}

type edge struct {
	to      int
	domains []int // of the link
}

func (g *Graph) network() *network {
	w := &network{n: g.Nodes, near: make([][]edge, g.Nodes), domains: make([][]int, g.Nodes)}
	ofLink := map[int][]int{}
	for d, dom := range g.Domains {
		for _, n := range dom.Nodes {
			w.domains[n] = append(w.domains[n], d)
		}
		for _, l := range dom.Links {
			ofLink[l] = append(ofLink[l], d)
		}
	}
	for i, l := range g.Links {
		w.near[l[0]] = append(w.near[l[0]], edge{l[1], ofLink[i]})
		w.near[l[1]] = append(w.near[l[1]], edge{l[0], ofLink[i]})
	}
	return w
}

// Find returns a plan with the given root. Single links and nodes are covered by
// how it is made; that it survives the failure of each domain is verified before it
// is returned, since the paper's property 4 alone does not say so where a domain
// cuts off several subtrees at once.
//
// Nodes with one link are taken away first, hang below their only neighbour, and
// are as uncertain as that one and a hop more.
func Find(g *Graph, root int) (*Plan, error) {
	if err := g.Validate(); err != nil {
		return nil, err
	}
	if root < 0 || root >= g.Nodes {
		return nil, fmt.Errorf("the root is node %d; there are nodes 0 to %d", root, g.Nodes-1)
	}
	w := g.network()
	leaf := w.leaves(root)
	s := &search{network: w, graph: g, root: root, leaf: leaf}
	p := s.find()
	if p == nil {
		return nil, fmt.Errorf("%w with %s as its root: %s", ErrNone, g.name(root), w.why(g, root, leaf))
	}
	attach(w, p, leaf)
	for i := range p.Primary {
		if p.Primary[i] < 0 && i != root {
			return nil, fmt.Errorf("%w: %s is not connected to %s", ErrNone, g.name(i), g.name(root))
		}
	}
	p.depths()
	return p, nil
}

// leaves finds the nodes with one link, and those with one link after these are
// gone; the root is none.
func (w *network) leaves(root int) []bool {
	leaf, degree := make([]bool, w.n), make([]int, w.n)
	var work []int
	for i := range w.near {
		degree[i] = len(w.distinct(i))
		if degree[i] <= 1 && i != root {
			work = append(work, i)
		}
	}
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		if leaf[i] {
			continue
		}
		leaf[i] = true
		for _, j := range w.distinct(i) {
			if degree[j]--; degree[j] == 1 && j != root && !leaf[j] {
				work = append(work, j)
			}
		}
	}
	return leaf
}

// distinct returns the neighbours of a node, each once.
func (w *network) distinct(i int) []int {
	var out []int
	for _, e := range w.near[i] {
		if !slices.Contains(out, e.to) {
			out = append(out, e.to)
		}
	}
	return out
}

// attach hangs nodes with one link below their neighbours.
func attach(w *network, p *Plan, leaf []bool) {
	p.Leaf = leaf
	for again := true; again; {
		again = false
		for i := range w.near {
			if !leaf[i] || p.Primary[i] >= 0 {
				continue
			}
			for _, e := range w.near[i] {
				if e.to == p.Root || p.Primary[e.to] >= 0 {
					p.Primary[i], p.Backup[i] = e.to, e.to
					again = true
					break
				}
			}
		}
	}
}

// why says why there is no plan: often a node whose failure cuts off others.
func (w *network) why(g *Graph, root int, leaf []bool) string {
	members := w.others(root, leaf)
	if len(members) < 2 {
		return "it needs two neighbours that are connected without it"
	}
	for _, skip := range append([]int{-1, root}, members...) {
		start := root
		if skip == root {
			start = members[0]
		}
		seen := make([]bool, w.n)
		seen[start] = true
		for queue := []int{start}; len(queue) > 0; {
			x := queue[len(queue)-1]
			queue = queue[:len(queue)-1]
			for _, e := range w.near[x] {
				if e.to != skip && !leaf[e.to] && !seen[e.to] {
					seen[e.to] = true
					queue = append(queue, e.to)
				}
			}
		}
		for _, i := range members {
			switch {
			case seen[i] || i == skip:
			case skip < 0:
				return fmt.Sprintf("%s is not connected to it", g.name(i))
			default:
				return fmt.Sprintf("without %s, %s is cut off from %s", g.name(skip), g.name(i), g.name(start))
			}
		}
	}
	return "the search ended without one; another root, or smaller failure domains, may have one"
}

func (w *network) others(root int, leaf []bool) (v []int) {
	for i := range w.n {
		if i != root && !leaf[i] {
			v = append(v, i)
		}
	}
	return v
}
