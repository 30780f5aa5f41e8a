package plan

import "fmt"

// Failure is one thing that breaks.
type Failure struct {
	What  string
	Nodes []int
	Links [][2]int
}

// Defect is a failure after which a node that is left does not follow a root, or
// after which there are two.
type Defect struct {
	Failure Failure
	Node    int
	Why     string
}

// String is the defect in words.
func (d Defect) String() string {
	return fmt.Sprintf("%s fails: node %d %s", d.Failure.What, d.Node, d.Why)
}

// Failures returns every single failure of a network: each link, node and domain.
func Failures(g *Graph) []Failure {
	var out []Failure
	for i, l := range g.Links {
		out = append(out, Failure{What: fmt.Sprintf("link %d (%d-%d)", i, l[0], l[1]), Links: [][2]int{l}})
	}
	for i := range g.Nodes {
		out = append(out, Failure{What: fmt.Sprintf("node %d", i), Nodes: []int{i}})
	}
	return append(out, domainFailures(g)...)
}

func domainFailures(g *Graph) (out []Failure) {
	for _, d := range g.Domains {
		f := Failure{What: "domain " + d.Name, Nodes: d.Nodes}
		for _, l := range d.Links {
			f.Links = append(f.Links, g.Links[l])
		}
		out = append(out, f)
	}
	return out
}

// Verify tries every single failure and returns what does not hold. Nodes that
// failed themselves do not count, and a node with one link may lose that one.
//
// It follows the protocol: a node that is cut off from the root by its primary
// path turns to its second parent; if the root has failed all do, and the
// backup root takes over. If the root does not reach it by either parent while the
// root is up, there are two roots.
func Verify(g *Graph, p *Plan) []Defect { return verify(p, Failures(g)) }

func verify(p *Plan, failures []Failure) []Defect {
	var out []Defect
	v := verifier{p: p, dead: make([]int, len(p.Primary)), state: make([]int8, len(p.Primary))}
	v.below = make([][]int, len(p.Primary))
	for y, x := range p.Primary {
		if x >= 0 {
			v.below[x] = append(v.below[x], y)
		}
	}
	for i, f := range failures {
		out = append(out, v.try(i+1, f)...)
	}
	return out
}

type verifier struct {
	p     *Plan
	below [][]int
	dead  []int // by node: number of the failure in which it last failed
	state []int8
}

const (
	unknown int8 = iota
	visiting
	reached
	cut
)

func (v *verifier) try(number int, f Failure) (out []Defect) {
	p := v.p
	for _, n := range f.Nodes {
		v.dead[n] = number
	}
	down := func(x, y int) bool { // the way from x to y
		if v.dead[x] == number || v.dead[y] == number {
			return true
		}
		for _, l := range f.Links {
			if l == [2]int{x, y} || l == [2]int{y, x} {
				return true
			}
		}
		return false
	}
	rootDead := v.dead[p.Root] == number
	// The nodes that the root still reaches by the primary tree.
	primary := make([]bool, len(p.Primary))
	if !rootDead {
		primary[p.Root] = true
		for queue := []int{p.Root}; len(queue) > 0; {
			x := queue[len(queue)-1]
			queue = queue[:len(queue)-1]
			for _, y := range v.below[x] {
				if !down(x, y) {
					primary[y] = true
					queue = append(queue, y)
				}
			}
		}
	}
	clear(v.state)
	var reach func(y int) int8
	reach = func(y int) int8 {
		switch {
		case primary[y]:
			return reached
		case v.state[y] == visiting:
			return cut // round the loop without meeting anybody
		case v.state[y] != unknown:
			return v.state[y]
		}
		v.state[y] = visiting
		s := cut
		switch x := p.Backup[y]; {
		case rootDead && y == p.BackupRoot:
			s = reached
		case x >= 0 && !down(x, y):
			s = reach(x)
		}
		v.state[y] = s
		return s
	}
	for y := range p.Primary {
		if v.dead[y] == number || y == p.Root {
			continue
		}
		if reach(y) != reached && !v.excused(y, down) {
			why := "follows no root"
			if y == p.BackupRoot && !rootDead {
				why = "becomes a second root"
			}
			out = append(out, Defect{f, y, why})
		}
	}
	return out
}

// excused reports whether a node with one link lost it, or hangs below one that
// did.
func (v *verifier) excused(y int, down func(x, y int) bool) bool {
	for ; v.p.Leaf[y]; y = v.p.Primary[y] {
		if down(v.p.Primary[y], y) {
			return true
		}
	}
	return false
}
