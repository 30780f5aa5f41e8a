package fabric

import (
	"fmt"
	"io"
	"net/netip"
	"strings"
	"text/tabwriter"

	"gswitch/units"
)

// WriteTable writes the plan for humans: subnets, hosts, switches with their
// ports, and how many routes each switch has.
func (p *Plan) WriteTable(w io.Writer) error {
	t := p.Topology
	var b strings.Builder
	tw := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)

	fmt.Fprintf(tw, "SUBNET\tROUTED BY\n")
	for _, s := range p.Subnets {
		by := "-"
		if s.Switch >= 0 {
			by = t.Nodes[s.Switch].Name
		}
		fmt.Fprintf(tw, "%s\t%s\n", join(s.Nets), by)
	}
	fmt.Fprintf(tw, "\nHOST\tMAC\tADDRESS\tGATEWAY\tSWITCH\n")
	for _, h := range t.Hosts() {
		n, far := &p.Nodes[h], t.Links[t.Nodes[h].Links[0]].Other(h)
		row(tw, t.Nodes[h].Name, n.MAC.String(), lines(n.Address), lines(n.Gateway), fmt.Sprintf("%s port %d", t.Nodes[far.Node].Name, far.Port))
	}
	fmt.Fprintf(tw, "\nSWITCH\tMAC\tADDRESS\tLOOPBACK\tPORTS\tROUTES\tHOPS\n")
	for _, s := range t.Switches() {
		n := &p.Nodes[s]
		hops := 0
		for _, r := range n.Routes {
			hops += len(r.Via)
		}
		row(tw, t.Nodes[s].Name, n.MAC.String(), lines(n.Address), lines(n.Loopback), fmt.Sprint(len(n.Ports)), fmt.Sprint(len(n.Routes)), fmt.Sprint(hops))
	}
	fmt.Fprintf(tw, "\nLINK\tADDRESSES\tRATE\tMTU\n")
	for i := range t.Links {
		l := &t.Links[i]
		addresses := "-"
		if t.Nodes[l.A.Node].Kind == Switch && t.Nodes[l.B.Node].Kind == Switch {
			addresses = pairs(p.Nodes[l.A.Node].Ports[l.A.Port], p.Nodes[l.B.Node].Ports[l.B.Port])
		}
		row(tw, fmt.Sprintf("%s:%d - %s:%d", t.Nodes[l.A.Node].Name, l.A.Port, t.Nodes[l.B.Node].Name, l.B.Port), addresses, units.Rate(l.Rate).String(), fmt.Sprint(l.MTU))
	}
	tw.Flush()
	for line := range strings.Lines(b.String()) {
		// A row that goes on below ends in columns that have nothing more to say.
		if _, err := io.WriteString(w, strings.TrimRight(line, " \n")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// row writes cells, which may have several lines.
func row(w io.Writer, cells ...string) {
	for more := true; more; {
		more = false
		for i, c := range cells {
			line, rest, _ := strings.Cut(c, "\n")
			cells[i], more = rest, more || rest != ""
			if i > 0 {
				io.WriteString(w, "\t")
			}
			io.WriteString(w, line)
		}
		io.WriteString(w, "\n")
	}
}

// join writes addresses on one line, lines one on each; "-" for none.
func join[T netip.Addr | netip.Prefix](v []T) string  { return joinBy(" ", v) }
func lines[T netip.Addr | netip.Prefix](v []T) string { return joinBy("\n", v) }

func joinBy[T netip.Addr | netip.Prefix](sep string, v []T) string {
	if len(v) == 0 {
		return "-"
	}
	words := make([]string, len(v))
	for i := range v {
		words[i] = fmt.Sprint(v[i])
	}
	return strings.Join(words, sep)
}

// pairs writes the addresses of both ends of a link, one pair on each line;
// the plan gives both ends the same families in the same order.
func pairs(a, b []netip.Prefix) string {
	var words []string
	for i := range min(len(a), len(b)) {
		words = append(words, fmt.Sprintf("%s - %s", a[i], b[i]))
	}
	if len(words) == 0 {
		return "-"
	}
	return strings.Join(words, "\n")
}
