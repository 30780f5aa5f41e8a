package clock

import (
	"fmt"
	"slices"

	"gswitch/clocksync"
	"gswitch/clocksync/plan"
	"gswitch/fabric"
	"gswitch/frame"
)

// Live says what of a topology works.
type Live interface {
	Node(i int) bool
	Link(i int) bool
}

type everything struct{}

func (everything) Node(int) bool { return true }
func (everything) Link(int) bool { return true }

// Everything works.
var Everything Live = everything{}

// Plan is which clock follows which, by the nodes of the topology; those that do not work,
// or that the root does not reach, have none.
type Plan struct {
	plan.Plan
	of []int // node of the plan by node of the topology, -1: it has none
	by []int // and back
}

// Graph is what of the topology the root reaches, with the numbers that a Plan of
// it has.
func (s *Spec) Graph(t *fabric.Topology) *plan.Graph {
	root, _ := t.Lookup(s.Root)
	g, _, _ := s.graph(t, Everything, root)
	return g
}

// graph takes what works and reaches the root.
func (s *Spec) graph(t *fabric.Topology, live Live, root int) (g *plan.Graph, of, by []int) {
	of = make([]int, len(t.Nodes))
	for i := range of {
		of[i] = -1
	}
	works := func(l int) bool {
		return live.Link(l) && live.Node(t.Links[l].A.Node) && live.Node(t.Links[l].B.Node)
	}
	of[root], by = 0, []int{root}
	for k := 0; k < len(by); k++ {
		for _, l := range t.Nodes[by[k]].Links {
			if m := t.Links[l].Other(by[k]).Node; works(l) && of[m] < 0 {
				of[m] = len(by)
				by = append(by, m)
			}
		}
	}
	g = &plan.Graph{Nodes: len(by)}
	for _, i := range by {
		g.Names = append(g.Names, t.Nodes[i].Name)
	}
	for l := range t.Links {
		a, b := of[t.Links[l].A.Node], of[t.Links[l].B.Node]
		if a >= 0 && b >= 0 && works(l) {
			g.Links = append(g.Links, [2]int{a, b})
		}
	}
	if s.Scheme.Domains {
		for _, d := range s.Domains {
			v := plan.Domain{Name: d.Name}
			for _, name := range d.Nodes {
				if i, ok := t.Lookup(name); ok && of[i] >= 0 {
					v.Nodes = append(v.Nodes, of[i])
				}
			}
			g.Domains = append(g.Domains, v)
		}
	}
	return g, of, by
}

// ErrNoPlan is wrapped by errors of Plan where not all nodes can have a second parent.
var ErrNoPlan = plan.ErrNone

// Plan plans on what works. root is the node that is the root, -1: that of the
// spec.
func (s *Spec) Plan(t *fabric.Topology, live Live, root int) (*Plan, error) {
	if root < 0 {
		root, _ = t.Lookup(s.Root)
	}
	if !live.Node(root) {
		return nil, fmt.Errorf("the root, %s, does not work", t.Nodes[root].Name)
	}
	g, of, by := s.graph(t, live, root)
	if !s.Scheme.Backup {
		return &Plan{*tree(g), of, by}, nil
	}
	p, err := plan.Find(g, 0)
	if err != nil {
		return nil, fmt.Errorf("%w; another root may have one, and sync-messages is a scheme without second parents", err)
	}
	return &Plan{*p, of, by}, nil
}

// tree is the tree of shortest ways, without second parents.
func tree(g *plan.Graph) *plan.Plan {
	p := &plan.Plan{BackupRoot: -1, Primary: make([]int, g.Nodes), Backup: make([]int, g.Nodes), Depth: make([]int, g.Nodes), BackupDepth: make([]int, g.Nodes), Leaf: make([]bool, g.Nodes)}
	near := make([][]int, g.Nodes)
	for _, l := range g.Links {
		near[l[0]], near[l[1]] = append(near[l[0]], l[1]), append(near[l[1]], l[0])
	}
	for i := range p.Primary {
		p.Primary[i], p.Backup[i] = -1, -1
	}
	queue, seen := []int{0}, make([]bool, g.Nodes)
	seen[0] = true
	for k := 0; k < len(queue); k++ {
		for _, m := range near[queue[k]] {
			if !seen[m] {
				seen[m] = true
				p.Primary[m], p.Depth[m] = queue[k], p.Depth[queue[k]]+1
				queue = append(queue, m)
			}
		}
	}
	return p
}

// Has reports whether a node of the topology is part of the plan.
func (p *Plan) Has(node int) bool { return p.of[node] >= 0 }

// RootNode and BackupRootNode are nodes of the topology, -1: none.
func (p *Plan) RootNode() int       { return p.by[p.Root] }
func (p *Plan) BackupRootNode() int { return p.node(p.BackupRoot) }

// Parent and SecondParent are those that a node of the topology follows, -1: none.
func (p *Plan) Parent(node int) int       { return p.node(p.Primary[p.of[node]]) }
func (p *Plan) SecondParent(node int) int { return p.node(p.Backup[p.of[node]]) }

// Hops is how far a node of the topology is from the root, and how far it can be
// after a failure.
func (p *Plan) Hops(node int) (primary, backup int) {
	return p.Depth[p.of[node]], p.BackupDepth[p.of[node]]
}

func (p *Plan) node(i int) int {
	if i < 0 {
		return -1
	}
	return p.by[i]
}

// TopDown are the nodes of the plan, parents before children.
func (p *Plan) TopDown() []int { return slices.Concat(p.Levels()...) }

// Levels are the nodes of the plan by their hops from the root.
func (p *Plan) Levels() [][]int {
	var v [][]int
	for i, depth := range p.Depth {
		for len(v) <= depth {
			v = append(v, nil)
		}
		v[depth] = append(v[depth], p.by[i])
	}
	return v
}

// Options are what the nodes of the topology are configured with by a plan. Those
// of nodes that have no part in it are zero.
func (s *Spec) Options(t *fabric.Topology, live Live, p *Plan, epoch uint32) []clocksync.Options {
	out := make([]clocksync.Options, len(t.Nodes))
	port := func(at, to int) int { // of a working link
		for k, l := range t.Nodes[at].Links {
			if live.Link(l) && t.Links[l].Other(at).Node == to {
				return k
			}
		}
		return clocksync.NoPort
	}
	children := p.Children()
	for i, node := range p.by {
		c := clocksync.Config{Epoch: epoch, Root: i == p.Root, Accept: clocksync.NoPort, Backup: clocksync.NoPort, Interval: s.Interval, Drift: s.Drift,
			Hop: s.Hop, EpsBase: frame.Time(p.Depth[i]) * s.Hop, EpsBackup: frame.Time(max(p.Depth[i], p.BackupDepth[i])) * s.Hop, Free: s.Scheme.Free, Recovery: s.recovery()}
		if s.Scheme.Backup {
			c.Timeout1 = s.Timeout1
			if i == p.BackupRoot {
				c.Timeout2 = s.Timeout2
			}
		}
		if i != p.Root {
			c.Accept = port(node, p.by[p.Primary[i]])
			if p.Backup[i] >= 0 && !p.Leaf[i] {
				c.Backup = port(node, p.by[p.Backup[i]])
			}
		}
		for _, y := range children[i] {
			if s.Scheme.Computed || s.Scheme.Mesh {
				break
			}
			c.Transmit.Add(port(node, p.by[y]))
		}
		out[node] = clocksync.Options{Config: c, Domain: clocksync.DefaultDomain, Unstamped: s.Unstamped}
	}
	return out
}
