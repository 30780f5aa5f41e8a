package fabric

import (
	"fmt"
	"io"
	"strings"

	"gswitch/table"
	"gswitch/units"
)

// label says what a link can carry, as short as possible.
func (l *Link) label() string {
	s := units.Rate(l.Rate).String()
	if l.Delay > 0 {
		s += " " + l.Delay.String()
	}
	if l.MTU != DefaultMTU {
		s += fmt.Sprintf(" mtu %d", l.MTU)
	}
	return s
}

// tiers returns the nodes row by row, the one farthest from the hosts first.
func (t *Topology) tiers() [][]int {
	top := 0
	for i := range t.Nodes {
		top = max(top, t.Nodes[i].Tier)
	}
	rows := make([][]int, top+1)
	for i := range t.Nodes {
		r := top - t.Nodes[i].Tier
		rows[r] = append(rows[r], i)
	}
	return rows
}

// DOT writes t in the language of Graphviz.
func DOT(w io.Writer, t *Topology) error {
	var b strings.Builder
	fmt.Fprintf(&b, "graph %q {\n  graph [rankdir=TB, splines=line];\n  node [fontname=sans, fontsize=11];\n  edge [fontname=sans, fontsize=8];\n", t.Name)
	for _, row := range t.tiers() {
		b.WriteString("  { rank=same;\n")
		for _, n := range row {
			shape := "box, style=filled, fillcolor=lightblue"
			if t.Nodes[n].Kind == Host {
				shape = "ellipse"
			}
			fmt.Fprintf(&b, "    %q [shape=%s];\n", t.Nodes[n].Name, shape)
		}
		b.WriteString("  }\n")
	}
	for i := range t.Links {
		up, down := t.updown(i)
		fmt.Fprintf(&b, "  %q -- %q [label=%q];\n", up, down, t.Links[i].label())
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// Mermaid writes t as a Mermaid flowchart, which many Markdown viewers draw.
func Mermaid(w io.Writer, t *Topology) error {
	var b strings.Builder
	b.WriteString("flowchart TB\n")
	for i := range t.Nodes {
		open, shut := "[", "]"
		if t.Nodes[i].Kind == Host {
			open, shut = "([", "])"
		}
		fmt.Fprintf(&b, "  n%d%s%q%s\n", i, open, t.Nodes[i].Name, shut)
	}
	for i := range t.Links {
		l := &t.Links[i]
		up, down := l.A.Node, l.B.Node
		if t.Nodes[up].Tier < t.Nodes[down].Tier {
			up, down = down, up
		}
		fmt.Fprintf(&b, "  n%d ---|%q| n%d\n", up, l.label(), down)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// updown names the two nodes of a link, the one farther from the hosts first.
func (t *Topology) updown(link int) (up, down string) {
	a, b := &t.Nodes[t.Links[link].A.Node], &t.Nodes[t.Links[link].B.Node]
	if a.Tier < b.Tier {
		a, b = b, a
	}
	return a.Name, b.Name
}

// asciiWidth is where rows of the ASCII picture are broken.
const asciiWidth = 96

// ASCII draws t for a terminal: the tiers as rows, then what every switch is
// linked to. Links of one kind to one tier are written together.
func ASCII(w io.Writer, t *Topology) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, %s\n\n", t.Name, t.Mode, t.Size())
	for _, row := range t.tiers() {
		line := ""
		for _, n := range row {
			cell := "[" + t.Nodes[n].Name + "]"
			if t.Nodes[n].Kind == Host {
				cell = "(" + t.Nodes[n].Name + ")"
			}
			if len(line)+1+len(cell) > asciiWidth {
				b.WriteString(strings.TrimRight(line, " ") + "\n")
				line = ""
			}
			line += cell + " "
		}
		pad := max(0, (asciiWidth-len(line))/2)
		b.WriteString(strings.Repeat(" ", pad) + strings.TrimRight(line, " ") + "\n\n")
	}
	links := table.New()
	for _, row := range t.tiers() {
		for _, n := range row {
			if t.Nodes[n].Kind == Switch {
				t.asciiLinks(links, n)
			}
		}
	}
	links.Print(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// asciiLinks adds the links of switch n that lead down or sideways.
func (t *Topology) asciiLinks(links *table.Table, n int) {
	var order []string
	far := map[string][]string{}
	for p, li := range t.Nodes[n].Links {
		m := t.Peer(n, p).Node
		if t.Nodes[m].Tier > t.Nodes[n].Tier || t.Nodes[m].Tier == t.Nodes[n].Tier && m < n {
			continue
		}
		l := t.Links[li].label()
		if far[l] == nil {
			order = append(order, l)
		}
		far[l] = append(far[l], t.Nodes[m].Name)
	}
	name := t.Nodes[n].Name
	for _, l := range order {
		links.Rowf("%s\t%s\t-- %s", name, l, strings.Join(far[l], " "))
		name = ""
	}
}
