package plan

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// fatTree is a k-ary fat tree of switches; domains are its pods. Nodes 0 to
// (k/2)^2-1 are the core.
func fatTree(k int, pods bool) *Graph {
	half := k / 2
	g := &Graph{Nodes: half*half + k*k}
	for p := range k {
		agg := func(i int) int { return half*half + p*k + i }
		edge := func(i int) int { return half*half + p*k + half + i }
		d := Domain{Name: fmt.Sprint("pod ", p)}
		for i := range half {
			d.Nodes = append(d.Nodes, agg(i), edge(i))
			for j := range half {
				g.Links = append(g.Links, [2]int{agg(i), edge(j)}, [2]int{i*half + j, agg(i)})
			}
		}
		if pods {
			g.Domains = append(g.Domains, d)
		}
	}
	return g
}

func holds(t *testing.T, g *Graph, p *Plan) {
	t.Helper()
	if d := Verify(g, p); len(d) > 0 {
		t.Errorf("%d defects: %v", len(d), d[0])
	}
}

func TestVector(t *testing.T) {
	g := &Graph{Nodes: 4, Links: [][2]int{{0, 1}, {0, 2}, {1, 2}, {1, 3}, {2, 3}}}
	p := &Plan{Root: 0, BackupRoot: 1, Primary: []int{-1, 0, 0, 1}, Backup: []int{-1, 2, 1, 2}, Leaf: make([]bool, 4)}
	p.depths()
	holds(t, g, p)
	if !reflect.DeepEqual(p.Depth, []int{0, 1, 1, 2}) || !reflect.DeepEqual(p.BackupDepth, []int{0, 2, 2, 3}) {
		t.Errorf("depths %v and %v", p.Depth, p.BackupDepth)
	}
	found, err := Find(g, 0)
	if err != nil {
		t.Fatal(err)
	}
	holds(t, g, found)
}

// The loop of the text: A follows 1 by the backup graph, 1 follows 2, 2 follows 3, 3
// follows 4, 4 follows A, and 3 is the backup root.
func TestLoopVector(t *testing.T) {
	const root, a, n1, n2, n3, n4, leaf, x1, x2, x3 = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
	p := &Plan{Root: root, BackupRoot: n3,
		Primary: []int{-1, x2, x1, x3, root, x1, a, root, x1, x2},
		Backup:  []int{-1, n1, n2, n3, n4, a, a, a, a, a}}
	p.depths()
	if got := []int{p.Depth[a], p.Depth[n1], p.Depth[n2], p.Depth[n3], p.Depth[n4]}; !reflect.DeepEqual(got, []int{3, 2, 4, 1, 2}) {
		t.Fatalf("the primary tree is not the vector's: %v", got)
	}
	if got := []int{p.BackupDepth[a], p.BackupDepth[n1], p.BackupDepth[n2], p.BackupDepth[n3], p.BackupDepth[n4], p.BackupDepth[leaf]}; !reflect.DeepEqual(got, []int{6, 7, 6, 8, 7, 7}) {
		t.Errorf("%v, want 6 7 6 8 7 7", got)
	}
}

func TestUsable(t *testing.T) {
	// 0 is the root; 1 and 2 below it; 3 and 4 below 1; 5 below 3.
	g := &Graph{Nodes: 6, Links: [][2]int{{0, 1}, {0, 2}, {1, 3}, {1, 4}, {3, 5}, {1, 5}, {4, 5}, {2, 5}, {3, 4}},
		Domains: []Domain{{Name: "d", Nodes: []int{1, 2}}}}
	w := g.network()
	tr := newTree(w, 0, []int{-1, 0, 0, 1, 1, 3}, make([]bool, 6))
	find := func(x, y int) edge {
		return w.near[x][slices.IndexFunc(w.near[x], func(e edge) bool { return e.to == y })]
	}
	for _, c := range []struct {
		x, y int
		want bool
		why  string
	}{
		{1, 5, false, "an ancestor"}, {3, 5, false, "the parent"}, {4, 5, true, "a sibling of the parent"},
		{5, 3, true, "a descendant"}, {2, 5, false, "1, on its way, and 2 fail together"}, {0, 1, false, "the root"},
	} {
		if got := tr.usable(c.x, c.y, find(c.x, c.y)); got != c.want {
			t.Errorf("%d may be the second parent of %d: %t (%s)", c.x, c.y, got, c.why)
		}
	}
	// A node of the domain itself is excused.
	g.Domains[0].Nodes = append(g.Domains[0].Nodes, 5)
	w = g.network()
	tr = newTree(w, 0, []int{-1, 0, 0, 1, 1, 3}, make([]bool, 6))
	if !tr.usable(2, 5, find(2, 5)) {
		t.Error("5 fails with 1 and 2, and still may not follow 2")
	}
	if newTree(w, 0, []int{-1, 3, 0, 1, 1, 3}, make([]bool, 6)) != nil {
		t.Error("parents in a circle were taken for a tree")
	}
}

func TestFatTrees(t *testing.T) {
	for _, k := range []int{4, 6, 8} {
		for _, pods := range []bool{false, true} {
			g := fatTree(k, pods)
			p, err := Find(g, 0)
			if err != nil {
				t.Errorf("k=%d, pods fail: %t: %v", k, pods, err)
				continue
			}
			holds(t, g, p)
			if most := slices.Max(p.Depth); most > 12 {
				t.Errorf("k=%d, pods fail: %t: a tree of %d hops", k, pods, most)
			}
		}
	}
}

// Why no plan of a fat tree whose root is a core switch has fewer than 6 hops between
// switches, and 7 to hosts. The backup root is a neighbour of the root, an aggregation switch.
// By second parents it reaches all; from aggregation switches below the root, and core
// switches next to these, the way into a pod leads from such an aggregation switch to an edge
// switch, which by property 2 must not be below it. So that edge switch is as far from the root
// as the tree that avoids the aggregation switch is long. The plan that is found is no deeper in
// the smallest one, and a hop deeper at most in others.
func TestFatTreesCannotBeFlatter(t *testing.T) {
	for _, k := range []int{4, 6, 8} {
		g := fatTree(k, false)
		w := g.network()
		least := g.Nodes
		for _, agg := range w.distinct(0) {
			far := make([]int, g.Nodes) // hops from the root, without agg
			for queue := []int{0}; len(queue) > 0; queue = queue[1:] {
				for _, e := range w.near[queue[0]] {
					if e.to != agg && e.to != 0 && far[e.to] == 0 {
						far[e.to] = far[queue[0]] + 1
						queue = append(queue, e.to)
					}
				}
			}
			for _, edge := range w.distinct(agg) {
				if len(w.distinct(edge)) == k/2 { // else it is a core switch
					least = min(least, far[edge])
				}
			}
		}
		p, err := Find(g, 0)
		if err != nil {
			t.Fatal(err)
		}
		if most := slices.Max(p.Depth); least != 6 || most > least+1 || k == 4 && most != least {
			t.Errorf("k=%d: %d hops are found, and no plan has fewer than %d", k, most, least)
		}
	}
}

// random is a connected graph of n nodes.
func random(r *rand.Rand, n, links int) *Graph {
	g := &Graph{Nodes: n}
	have := map[[2]int]bool{}
	add := func(a, b int) {
		if a != b && !have[[2]int{min(a, b), max(a, b)}] {
			have[[2]int{min(a, b), max(a, b)}] = true
			g.Links = append(g.Links, [2]int{a, b})
		}
	}
	for i := 1; i < n; i++ {
		add(i, r.IntN(i))
	}
	for range links {
		add(r.IntN(n), r.IntN(n))
	}
	return g
}

// cuttable reports whether the network without its leaves falls apart when one node goes.
func cuttable(g *Graph, root int) bool {
	w := g.network()
	return !strings.Contains(w.why(g, root, w.leaves(root)), "the search ended")
}

// Where no single node cuts the network a plan is found, and every plan stands
// every single failure.
func TestRandom(t *testing.T) {
	found, none := 0, 0
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 3))
		g := random(r, 4+r.IntN(26), r.IntN(40))
		p, err := Find(g, 0)
		switch {
		case err == nil:
			found++
			if d := Verify(g, p); len(d) > 0 {
				t.Fatalf("seed %d: %d defects, %v", seed, len(d), d[0])
			}
		case !errors.Is(err, ErrNone):
			t.Fatal(err)
		default:
			none++
			if !cuttable(g, 0) {
				t.Fatalf("seed %d: %v, and no node cuts the network: %+v", seed, err, *g)
			}
		}
	}
	if found < 200 || none < 50 {
		t.Errorf("%d plans, %d without: the graphs are too much of one kind", found, none)
	}
}

// With domains a plan need not exist; what is found holds.
func TestRandomDomains(t *testing.T) {
	found := 0
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 4))
		n := 6 + r.IntN(18)
		g := random(r, n, 2*n)
		for d := range 1 + r.IntN(3) {
			a := 1 + r.IntN(n-1)
			g.Domains = append(g.Domains, Domain{Name: fmt.Sprint(d), Nodes: []int{a, 1 + (a+r.IntN(n-2))%(n-1)}, Links: []int{r.IntN(len(g.Links))}})
		}
		p, err := Find(g, 0)
		if err != nil {
			if !errors.Is(err, ErrNone) {
				t.Fatal(err)
			}
			continue
		}
		found++
		if d := Verify(g, p); len(d) > 0 {
			t.Fatalf("seed %d: %d defects, %v", seed, len(d), d[0])
		}
	}
	if found < 90 {
		t.Errorf("%d of 150 have a plan", found)
	}
}

// A second parent that is the first one is refused, whichever it is.
func TestVerifyFinds(t *testing.T) {
	g := fatTree(4, true)
	good, err := Find(g, 0)
	if err != nil {
		t.Fatal(err)
	}
	for y := range g.Nodes {
		if y == good.Root {
			continue
		}
		p := *good
		p.Backup = slices.Clone(good.Backup)
		p.Backup[y] = p.Primary[y] // an ancestor
		if len(Verify(g, &p)) == 0 {
			t.Errorf("node %d has its parent twice, and nothing is wrong", y)
		}
	}
}

// One plan against each of the five properties (section 3.4.1.1), and the failure by which
// that is found. Nothing is wrong with the first.
func TestVerifyFindsEachProperty(t *testing.T) {
	two := [][2]int{{0, 1}, {0, 2}, {1, 2}, {1, 3}, {1, 4}, {3, 4}, {2, 3}, {2, 4}} // 1 and 2 below the root, 3 and 4 below 1
	three := [][2]int{{0, 1}, {0, 2}, {0, 3}, {1, 2}, {2, 3}, {3, 1}}
	ring := [][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 0}}
	for _, c := range []struct {
		property        string
		links           [][2]int
		domain          []int
		primary, backup []int
		backupRoot      int
		what, why       string
		node            int
	}{
		{"none", two, nil, []int{-1, 0, 0, 1, 1}, []int{-1, 2, 3, 2, 2}, 2, "", "", 0},
		{"1, no loop within a subtree", two, nil, []int{-1, 0, 0, 1, 1}, []int{-1, 2, 1, 4, 3}, 2, "link 0 (0-1)", "follows no root", 3},
		{"2, no ancestor", two, nil, []int{-1, 0, 0, 1, 1}, []int{-1, 2, 3, 2, 1}, 2, "node 1", "follows no root", 4},
		{"3, reachability", three, nil, []int{-1, 0, 0, 0}, []int{-1, 2, 1, 1}, 3, "node 0", "follows no root", 1},
		{"4, disjoint failure domains", two, []int{1, 2}, []int{-1, 0, 0, 1, 1}, []int{-1, 2, 3, 2, 2}, 2, "domain d", "follows no root", 3},
		{"5, root failure detection", ring, nil, []int{-1, 0, 1, 0}, []int{-1, 2, 1, 2}, 1, "link 0 (0-1)", "becomes a second root", 1},
	} {
		g := &Graph{Nodes: len(c.primary), Links: c.links}
		if c.domain != nil {
			g.Domains = []Domain{{Name: "d", Nodes: c.domain}}
		}
		p := &Plan{Root: 0, BackupRoot: c.backupRoot, Primary: c.primary, Backup: c.backup, Leaf: make([]bool, g.Nodes)}
		d := Verify(g, p)
		if c.what == "" {
			if len(d) != 0 {
				t.Errorf("%s: %v", c.property, d)
			}
		} else if !slices.ContainsFunc(d, func(d Defect) bool { return d.Failure.What == c.what && d.Why == c.why && d.Node == c.node }) {
			t.Errorf("%s: %v, want that %s fails and node %d %s", c.property, d, c.what, c.node, c.why)
		}
	}
}

func TestErrors(t *testing.T) {
	line := &Graph{Nodes: 5, Links: [][2]int{{0, 1}, {1, 2}, {0, 2}, {2, 3}, {3, 4}, {2, 4}}}
	for _, c := range []struct {
		g    *Graph
		root int
		want string
	}{
		{line, 0, "without node 2, node 3 is cut off"},
		{&Graph{Nodes: 4, Links: [][2]int{{0, 1}, {1, 2}, {2, 0}}}, 0, "node 3 is not connected"},
		{&Graph{Nodes: 6, Links: [][2]int{{0, 1}, {1, 2}, {2, 0}, {3, 4}, {4, 5}, {5, 3}}}, 0, "node 3 is not connected"},
		{line, 9, "there are nodes 0 to 4"},
		{&Graph{Nodes: 2, Links: [][2]int{{0, 5}}}, 0, "link 0 joins 0 and 5"},
		{&Graph{Nodes: 2, Domains: []Domain{{Name: "x", Nodes: []int{7}}}}, 0, `domain "x" has node 7`},
		{&Graph{Nodes: 2, Domains: []Domain{{Name: "x", Links: []int{7}}}}, 0, `domain "x" has link 7`},
	} {
		_, err := Find(c.g, c.root)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// Hosts with one link hang below their switch.
func TestLeaves(t *testing.T) {
	g := fatTree(4, false)
	switches := g.Nodes
	for i := range 16 {
		g.Links = append(g.Links, [2]int{g.Nodes, 4 + i/4*4 + 2 + i%2})
		g.Nodes++
	}
	p, err := Find(g, 0)
	if err != nil {
		t.Fatal(err)
	}
	holds(t, g, p)
	for h := switches; h < g.Nodes; h++ {
		if s := p.Primary[h]; !p.Leaf[h] || p.Backup[h] != s || p.BackupDepth[h] != 1+max(p.BackupDepth[s], p.Depth[s]) {
			t.Errorf("host %d: below %d, second parent %d, %d hops after a failure", h, s, p.Backup[h], p.BackupDepth[h])
		}
	}
}

// Fifty failures one after another, each planned around.
func TestPlanningAgain(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	g := fatTree(8, false)
	links := slices.Clone(g.Links)
	for i := range 50 {
		k := r.IntN(len(links))
		links = slices.Delete(links, k, k+1)
		now := &Graph{Nodes: g.Nodes, Links: links}
		p, err := Find(now, 0)
		if err != nil {
			if cuttable(now, 0) {
				continue // said with the node that cuts
			}
			t.Fatalf("after %d failures: %v", i+1, err)
		}
		holds(t, now, p)
	}
}

// jupiter is a fabric of three tiers with 88,064 nodes, as many as the paper's has.
func jupiter() *Graph {
	// 64 blocks of 8 middle and 16 top-of-rack switches, below 512 spines; 84
	// hosts below each top of rack.
	const blocks, middles, racks, spines, hosts = 64, 8, 16, 512, 84
	g := &Graph{Nodes: spines}
	for range blocks {
		middle, rack := g.Nodes, g.Nodes+middles
		g.Nodes += middles + racks
		for m := range middles {
			for s := range spines / middles {
				g.Links = append(g.Links, [2]int{m*(spines/middles) + s, middle + m})
			}
			for k := range racks {
				g.Links = append(g.Links, [2]int{middle + m, rack + k})
			}
		}
	}
	for b := range blocks {
		for k := range racks {
			for range hosts {
				g.Links = append(g.Links, [2]int{spines + b*(middles+racks) + middles + k, g.Nodes})
				g.Nodes++
			}
		}
	}
	return g
}

// A plan at the scale of the paper's simulation (section 3.6.2): every failure that is tried
// leaves every device a root, and what clocks may say by it lies within the paper's largest.
func TestJupiter(t *testing.T) {
	g := jupiter()
	if g.Nodes != 88_064 {
		t.Fatalf("%d nodes", g.Nodes)
	}
	p, err := Find(g, 0)
	if err != nil {
		t.Fatal(err)
	}
	// Every failure would take hours: the root's links, some others, the root, some
	// nodes.
	sample := Failures(g)
	sample = slices.Concat(sample[:64], sample[len(g.Links):len(g.Links)+400])
	if d := verify(p, sample); len(d) > 0 {
		t.Errorf("%d defects: %v", len(d), d[0])
	}
	// 5 ns for each hop, and 200 ppm of 90 us between messages, or of 365 us while another root is elected.
	normal, failed := 5*slices.Max(p.Depth)+18, 5*slices.Max(p.BackupDepth)+73
	if normal >= 100 || failed > 178 {
		t.Errorf("uncertain by %d ns, and by %d ns when the root fails", normal, failed)
	}
	t.Logf("%d nodes, %d hops, %d after a failure: uncertain by %d ns, and by %d ns when the root fails", g.Nodes, slices.Max(p.Depth), slices.Max(p.BackupDepth), normal, failed)
}

// Fifty failures one after another among its 2048 switches, as many of links and of nodes as in
// section 3.6.1.3, the root among them: a plan is found each time (section 3.4.2).
func TestJupiterPlanningAgain(t *testing.T) {
	const switches = 2048
	g := &Graph{Nodes: switches}
	for _, l := range jupiter().Links {
		if l[1] < switches {
			g.Links = append(g.Links, l)
		}
	}
	r := rand.New(rand.NewPCG(2, 5))
	for i := range 50 {
		dead := -1
		switch {
		case i == 39:
			dead = 0
		case i%2 == 1:
			dead = 1 + r.IntN(g.Nodes-1)
		default:
			k := r.IntN(len(g.Links))
			g.Links = slices.Delete(g.Links, k, k+1)
		}
		if dead >= 0 { // the last one takes its number
			last := g.Nodes - 1
			g.Links = slices.DeleteFunc(g.Links, func(l [2]int) bool { return l[0] == dead || l[1] == dead })
			for k := range g.Links {
				for end, n := range g.Links[k] {
					if n == last {
						g.Links[k][end] = dead
					}
				}
			}
			g.Nodes--
		}
		p, err := Find(g, 0)
		if err != nil {
			t.Fatalf("after %d failures: %v", i+1, err)
		}
		f := Failures(g)
		sample := []Failure{f[len(g.Links)]} // the root
		for range 20 {
			sample = append(sample, f[r.IntN(len(f))])
		}
		if d := verify(p, sample); len(d) > 0 {
			t.Fatalf("after %d failures: %v", i+1, d[0])
		}
	}
}

func BenchmarkJupiter(b *testing.B) {
	g := jupiter()
	for b.Loop() {
		if _, err := Find(g, 0); err != nil {
			b.Fatal(err)
		}
	}
}
