package fabric

import (
	"fmt"
	"io"
	"net/netip"
	"strings"
	"text/tabwriter"

	"github.com/gswitch/gswitch/config"
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
	fmt.Fprintf(tw, "\nHOST\tMAC\tADDRESS\tGATEWAY\tSWITCH\tRATE\tMTU\n")
	for _, h := range t.Hosts() {
		n, l := &p.Nodes[h], &t.Links[t.Nodes[h].Links[0]]
		far := l.Other(h)
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s port %d\t%s\t%d\n", t.Nodes[h].Name, n.MAC, join(n.Address), join(n.Gateway),
			t.Nodes[far.Node].Name, far.Port, config.Rate(l.Rate), l.MTU)
	}
	fmt.Fprintf(tw, "\nSWITCH\tMAC\tADDRESS\tLOOPBACK\tPORTS\tROUTES\tNEXT HOPS\n")
	for _, s := range t.Switches() {
		n := &p.Nodes[s]
		hops := 0
		for _, r := range n.Routes {
			hops += len(r.Via)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%d\t%d\t%d\n", t.Nodes[s].Name, n.MAC, join(n.Address), join(n.Loopback), len(n.Ports), len(n.Routes), hops)
	}
	fmt.Fprintf(tw, "\nLINK\tPORTS\tADDRESSES\tRATE\tMTU\n")
	for i := range t.Links {
		l := &t.Links[i]
		if t.Nodes[l.A.Node].Kind == Host || t.Nodes[l.B.Node].Kind == Host {
			continue
		}
		fmt.Fprintf(tw, "%s - %s\t%d - %d\t%s - %s\t%s\t%d\n", t.Nodes[l.A.Node].Name, t.Nodes[l.B.Node].Name, l.A.Port, l.B.Port,
			join(p.Nodes[l.A.Node].Ports[l.A.Port]), join(p.Nodes[l.B.Node].Ports[l.B.Port]), config.Rate(l.Rate), l.MTU)
	}
	tw.Flush()
	_, err := io.WriteString(w, b.String())
	return err
}

// join writes addresses in one cell; "-" for none.
func join[T netip.Addr | netip.Prefix](v []T) string {
	if len(v) == 0 {
		return "-"
	}
	words := make([]string, len(v))
	for i := range v {
		words[i] = fmt.Sprint(v[i])
	}
	return strings.Join(words, " ")
}
