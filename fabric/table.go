package fabric

import (
	"fmt"
	"io"
	"net/netip"
	"strings"

	"gswitch/table"
	"gswitch/units"
)

// WriteTable writes the plan for humans: subnets, hosts, switches with their
// ports, and how many routes each switch has.
func (p *Plan) WriteTable(w io.Writer) error {
	t := p.Topology
	subnets := table.New("SUBNET", "ROUTED BY")
	for _, s := range p.Subnets {
		by := "-"
		if s.Switch >= 0 {
			by = t.Nodes[s.Switch].Name
		}
		subnets.Row(join(s.Nets), by)
	}
	hosts := table.New("HOST", "MAC", "ADDRESS", "GATEWAY", "SWITCH")
	for _, h := range t.Hosts() {
		n, far := &p.Nodes[h], t.Links[t.Nodes[h].Links[0]].Other(h)
		hosts.Row(t.Nodes[h].Name, n.MAC, lines(n.Address), lines(n.Gateway), fmt.Sprintf("%s port %d", t.Nodes[far.Node].Name, far.Port))
	}
	switches := table.New("SWITCH", "MAC", "ADDRESS", "LOOPBACK", "PORTS", "ROUTES", "HOPS")
	for _, s := range t.Switches() {
		n := &p.Nodes[s]
		hops := 0
		for _, r := range n.Routes {
			hops += len(r.Via)
		}
		switches.Row(t.Nodes[s].Name, n.MAC, lines(n.Address), lines(n.Loopback), len(n.Ports), len(n.Routes), hops)
	}
	links := table.New("LINK", "ADDRESSES", "RATE", "MTU")
	for i := range t.Links {
		l := &t.Links[i]
		addresses := "-"
		if t.Nodes[l.A.Node].Kind == Switch && t.Nodes[l.B.Node].Kind == Switch {
			addresses = pairs(p.Nodes[l.A.Node].Ports[l.A.Port], p.Nodes[l.B.Node].Ports[l.B.Port])
		}
		name := fmt.Sprintf("%s:%d - %s:%d", t.Nodes[l.A.Node].Name, l.A.Port, t.Nodes[l.B.Node].Name, l.B.Port)
		links.Row(name, addresses, units.Rate(l.Rate), l.MTU)
	}
	for i, part := range []*table.Table{subnets, hosts, switches, links} {
		if i > 0 {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		if err := part.Print(w); err != nil {
			return err
		}
	}
	return nil
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
