package fabric

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A generator builds a family of topologies from a few numbers.
type generator struct {
	name   string
	params []param
	build  func(t *Topology, v []int)
	about  string
}

type param struct {
	name     string
	min, max int
	def      int // used where the argument is left out; 0 = it must be given
}

// maxGenerated bounds what a generator may build, so that a slip of the
// finger does not ask for a million namespaces.
const maxGenerated = 4096

var generators = []generator{
	{"star", []param{{"hosts", 1, 256, 0}}, star,
		"one switch, n hosts"},
	{"dumbbell", []param{{"left", 1, 255, 0}, {"right", 1, 255, 0}}, dumbbell,
		"two switches joined by one link, hosts on both sides"},
	{"leaf-spine", []param{{"spines", 1, 64, 0}, {"leaves", 1, 256, 0}, {"hosts", 1, 200, 2}}, leafSpine,
		"every leaf is linked to every spine, hosts per leaf"},
	{"fat-tree", []param{{"k", 2, 16, 0}}, fatTree,
		"k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 cores, k^3/4 hosts; k is even"},
	{"pods", []param{{"pods", 1, 64, 0}, {"tors", 1, 64, 0}, {"aggs", 1, 64, 0}, {"cores", 1, 256, 0}, {"hosts", 1, 200, 2}}, pods,
		"three tiers: in each pod every tor is linked to every agg, agg a to its cores/aggs cores; hosts per tor"},
	{"ring", []param{{"switches", 3, 256, 0}, {"hosts", 1, 64, 1}}, ring,
		"switches in a ring, hosts per switch"},
	{"line", []param{{"switches", 1, 256, 0}, {"hosts", 1, 64, 1}}, line,
		"switches in a line, hosts per switch"},
	{"internet2", []param{{"edges", 0, 64, 0}, {"hosts", 1, 64, 1}}, internet2,
		"a wide area of 10 switches and 16 links with rates and delays of their own; edge switches for each, hosts per edge switch, or per switch without"},
}

// Generators lists the generators for help texts, one per line.
func Generators() []string {
	width := 0
	for i := range generators {
		width = max(width, len(generators[i].usage()))
	}
	var v []string
	for i := range generators {
		v = append(v, fmt.Sprintf("%-*s  %s", width, generators[i].usage(), generators[i].about))
	}
	return v
}

func (g *generator) usage() string {
	var args []string
	for _, p := range g.params {
		if p.def != 0 {
			args = append(args, fmt.Sprintf("%s=%d", p.name, p.def))
		} else {
			args = append(args, p.name)
		}
	}
	return g.name + "(" + strings.Join(args, ", ") + ")"
}

// generate builds the topology that expr names: name(numbers), where a number
// may be written parameter=number. Shells dislike parentheses, so name:1,2,3
// is the same as name(1,2,3).
func generate(t *Topology, expr string) error {
	g, args, err := splitGenerator(expr)
	if err != nil {
		return err
	}
	v, err := g.values(args)
	if err != nil {
		return err
	}
	if g.name == "fat-tree" && v[0]%2 != 0 {
		return fmt.Errorf("fat-tree: k = %d is odd; a pod splits its k ports into two halves", v[0])
	}
	if g.name == "pods" && v[3]%v[2] != 0 {
		return fmt.Errorf("pods: %d cores cannot be shared evenly by the %d aggs of a pod", v[3], v[2])
	}
	g.build(t, v)
	if len(t.Nodes) > maxGenerated {
		return fmt.Errorf("%s builds %d nodes; at most %d are allowed", expr, len(t.Nodes), maxGenerated)
	}
	return nil
}

func splitGenerator(expr string) (*generator, []string, error) {
	expr = strings.TrimSpace(expr)
	name, rest := expr, ""
	if i := strings.IndexAny(expr, "(:"); i >= 0 {
		name, rest = strings.TrimSpace(expr[:i]), expr[i+1:]
		if expr[i] == '(' {
			inner, ok := strings.CutSuffix(rest, ")")
			if !ok {
				return nil, nil, fmt.Errorf("generator %q: closing parenthesis is missing", expr)
			}
			rest = inner
		}
	}
	var args []string
	if strings.TrimSpace(rest) != "" {
		args = strings.Split(rest, ",")
	}
	var names []string
	for i := range generators {
		if generators[i].name == name {
			return &generators[i], args, nil
		}
		names = append(names, generators[i].usage())
	}
	return nil, nil, fmt.Errorf("unknown generator %q; known are %s", name, strings.Join(names, ", "))
}

// values assigns arguments to parameters and checks their ranges.
func (g *generator) values(args []string) ([]int, error) {
	v := make([]int, len(g.params))
	given := make([]bool, len(g.params))
	for i, arg := range args {
		pos, text := i, strings.TrimSpace(arg)
		if key, val, ok := strings.Cut(text, "="); ok {
			if pos = g.param(strings.TrimSpace(key)); pos < 0 {
				return nil, fmt.Errorf("%s has no parameter %q; write %s", g.name, strings.TrimSpace(key), g.usage())
			}
			text = strings.TrimSpace(val)
		}
		if pos >= len(v) {
			return nil, fmt.Errorf("%s takes %s, not %d; write %s", g.name, Count(len(v), "argument", "arguments"), len(args), g.usage())
		}
		if given[pos] {
			return nil, fmt.Errorf("%s: %s is given twice", g.name, g.params[pos].name)
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %s = %q is not a number", g.name, g.params[pos].name, text)
		}
		v[pos], given[pos] = n, true
	}
	for i, p := range g.params {
		if !given[i] {
			if p.def == 0 {
				return nil, fmt.Errorf("%s: %s is missing; write %s", g.name, p.name, g.usage())
			}
			v[i] = p.def
		}
		if v[i] < p.min || v[i] > p.max {
			return nil, fmt.Errorf("%s: %s = %d is not from %d to %d", g.name, p.name, v[i], p.min, p.max)
		}
	}
	return v, nil
}

func (g *generator) param(name string) int {
	for i, p := range g.params {
		if p.name == name {
			return i
		}
	}
	return -1
}

// named adds n nodes prefix1, prefix2, ... and returns their indices.
func (t *Topology) named(k Kind, prefix string, n int) []int {
	v := make([]int, n)
	for i := range v {
		v[i] = t.addNode(k, prefix+strconv.Itoa(i+1))
	}
	return v
}

// plug links the hosts h to the switches s, the same number to each in order.
func (t *Topology) plug(h, s []int) {
	per := len(h) / len(s)
	for i, host := range h {
		t.addLink(host, s[i/per], Link{})
	}
}

func star(t *Topology, v []int) {
	h := t.named(Host, "h", v[0])
	t.plug(h, t.named(Switch, "s", 1))
}

func dumbbell(t *Topology, v []int) {
	h := t.named(Host, "h", v[0]+v[1])
	s := t.named(Switch, "s", 2)
	t.plug(h[:v[0]], s[:1])
	t.plug(h[v[0]:], s[1:])
	t.addLink(s[0], s[1], Link{})
}

func leafSpine(t *Topology, v []int) {
	h := t.named(Host, "h", v[1]*v[2])
	leaves := t.named(Switch, "leaf", v[1])
	spines := t.named(Switch, "spine", v[0])
	t.plug(h, leaves)
	for _, l := range leaves {
		for _, s := range spines {
			t.addLink(l, s, Link{})
		}
	}
}

// fatTree follows Al-Fares, Loukissas, Vahdat, "A Scalable, Commodity Data
// Center Network Architecture" (SIGCOMM 2008), section 3: the j-th
// aggregation switch of every pod is linked to cores j*k/2 .. j*k/2+k/2-1.
func fatTree(t *Topology, v []int) {
	k, half := v[0], v[0]/2
	h := t.named(Host, "h", k*half*half)
	edges := t.named(Switch, "edge", k*half)
	aggs := t.named(Switch, "agg", k*half)
	cores := t.named(Switch, "core", half*half)
	t.plug(h, edges)
	for pod := range k {
		for e := range half {
			for a := range half {
				t.addLink(edges[pod*half+e], aggs[pod*half+a], Link{})
			}
		}
	}
	for pod := range k {
		for a := range half {
			for c := range half {
				t.addLink(aggs[pod*half+a], cores[a*half+c], Link{})
			}
		}
	}
}

// pods is the three-tier network that data centres build where one speed does
// not fit all links: HPCC's evaluation (SIGCOMM 2019, section 5.1) uses
// pods(5, 4, 4, 16, 16) with 100 Gb/s to hosts and 400 Gb/s between switches.
func pods(t *Topology, v []int) {
	n, tors, aggs, cores := v[0], v[1], v[2], v[3]
	h := t.named(Host, "h", n*tors*v[4])
	tor := t.named(Switch, "tor", n*tors)
	agg := t.named(Switch, "agg", n*aggs)
	core := t.named(Switch, "core", cores)
	t.plug(h, tor)
	for pod := range n {
		for e := range tors {
			for a := range aggs {
				t.addLink(tor[pod*tors+e], agg[pod*aggs+a], Link{})
			}
		}
	}
	per := cores / aggs
	for i, a := range agg {
		for c := range per {
			t.addLink(a, core[i%aggs*per+c], Link{})
		}
	}
}

func ring(t *Topology, v []int) {
	s := chain(t, v)
	t.addLink(s[len(s)-1], s[0], Link{})
}

func line(t *Topology, v []int) { chain(t, v) }

func chain(t *Topology, v []int) []int {
	h := t.named(Host, "h", v[0]*v[1])
	s := t.named(Switch, "s", v[0])
	t.plug(h, s)
	for i := 1; i < len(s); i++ {
		t.addLink(s[i-1], s[i], Link{})
	}
	return s
}

// internet2 is the network that the evaluations of RC3 (NSDI 2014) and UPS (NSDI
// 2016) call Internet2: the links of the core with the rates in Mb/s that their
// authors published, and 10 ms each.
func internet2(t *Topology, v []int) {
	const cores = 10
	perCore := max(v[0], 1)
	h := t.named(Host, "h", cores*perCore*v[1])
	s := t.named(Switch, "s", cores)
	access := s
	if v[0] > 0 {
		access = t.named(Switch, "e", cores*v[0])
		for i, e := range access {
			t.addLink(e, s[i/v[0]], Link{})
		}
	}
	t.plug(h, access)
	for _, l := range [16][3]int{{0, 1, 5556}, {0, 2, 7778}, {0, 3, 14445}, {1, 2, 3334}, {2, 4, 3334}, {1, 5, 5556}, {4, 5, 1112}, {3, 5, 3334},
		{3, 4, 5556}, {5, 6, 4445}, {3, 6, 10000}, {3, 7, 14445}, {7, 8, 1112}, {6, 8, 8889}, {8, 9, 2223}, {7, 9, 7778}} {
		t.addLink(s[l[0]], s[l[1]], Link{Rate: uint64(l[2]) * 1e6, Delay: 10 * time.Millisecond})
	}
}
