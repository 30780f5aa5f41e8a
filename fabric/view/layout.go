package view

import "gswitch/fabric"

// NewLayout is the layout of a topology: nodes and links in its order.
func NewLayout(t *fabric.Topology) *Layout {
	l := &Layout{Name: t.Name, Scale: 1, Nodes: make([]Node, len(t.Nodes)), Links: make([]Link, len(t.Links))}
	for i := range t.Nodes {
		n := &t.Nodes[i]
		l.Nodes[i] = Node{Name: n.Name, Kind: n.Kind.String(), Tier: n.Tier}
	}
	for i := range t.Links {
		k := &t.Links[i]
		l.Links[i] = Link{A: End{k.A.Node, k.A.Port}, B: End{k.B.Node, k.B.Port}, Rate: float64(k.Rate), Delay: k.Delay.Seconds()}
	}
	return l
}

// ends numbers the ends of links: by node, then by port, and knows the far
// end of each.
type ends struct {
	base []int // by node: the number of its port 0
	end  []End
	peer []int
	rate []float64
}

func newEnds(l *Layout) *ends {
	e := &ends{base: make([]int, len(l.Nodes)+1)}
	count := make([]int, len(l.Nodes))
	for i := range l.Links {
		for _, x := range [2]End{l.Links[i].A, l.Links[i].B} {
			count[x.Node] = max(count[x.Node], x.Port+1)
		}
	}
	for n, c := range count {
		e.base[n+1] = e.base[n] + c
		for p := range c {
			e.end = append(e.end, End{n, p})
		}
	}
	e.peer, e.rate = make([]int, len(e.end)), make([]float64, len(e.end))
	for i := range e.peer {
		e.peer[i] = -1
	}
	for i := range l.Links {
		k := &l.Links[i]
		a, b := e.at(k.A), e.at(k.B)
		e.peer[a], e.peer[b] = b, a
		e.rate[a], e.rate[b] = k.Rate, k.Rate
	}
	return e
}

func (e *ends) at(x End) int { return e.base[x.Node] + x.Port }
