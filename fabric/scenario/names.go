package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gswitch/fabric"
)

// identifier is the syntax of names of variants, groups, windows and events, so that
// expectations can refer to them.
var identifier = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)

// FindHosts returns the hosts that a list of names, ranges (h1..h4) and "all" denotes, as
// indices into the hosts of the topology, each once. An empty list denotes all.
func FindHosts(t *fabric.Topology, names []string) ([]int32, error) {
	all := t.Hosts()
	index := make(map[string]int32, len(all))
	for i, n := range all {
		index[t.Nodes[n].Name] = int32(i)
	}
	var v []int32
	seen := make([]bool, len(all))
	add := func(i int32) {
		if !seen[i] {
			seen[i] = true
			v = append(v, i)
		}
	}
	if len(names) == 0 {
		names = []string{"all"}
	}
	for _, name := range names {
		if i, ok := index[name]; ok {
			add(i)
			continue
		}
		if name == "all" {
			for i := range all {
				add(int32(i))
			}
			continue
		}
		members, err := hostRange(name)
		if err != nil {
			return nil, err
		}
		for _, m := range members {
			i, ok := index[m]
			if !ok {
				return nil, fmt.Errorf("there is no host %q; hosts are %s to %s", m, t.Nodes[all[0]].Name, t.Nodes[all[len(all)-1]].Name)
			}
			add(i)
		}
	}
	return v, nil
}

// hostRange expands h3..h7; any other name denotes itself.
func hostRange(name string) ([]string, error) {
	a, b, ok := strings.Cut(name, "..")
	if !ok {
		return []string{name}, nil
	}
	prefixA, x, okA := number(a)
	prefixB, y, okB := number(b)
	if !okA || !okB || prefixA != prefixB || x > y || y-x > 1_000_000 {
		return nil, fmt.Errorf("%q is not a range of hosts; write it like h1..h4", name)
	}
	var v []string
	for i := x; i <= y; i++ {
		v = append(v, prefixA+strconv.Itoa(i))
	}
	return v, nil
}

// number splits h12 into h and 12.
func number(name string) (prefix string, n int, ok bool) {
	i := len(name)
	for i > 0 && name[i-1] >= '0' && name[i-1] <= '9' {
		i--
	}
	n, err := strconv.Atoi(name[i:])
	return name[:i], n, err == nil
}

// Port is one direction of a link: the frames that leave a node through a port.
type Port struct {
	Name string // as written
	Node int    // index into Topology.Nodes
	Port int
}

// FindPort returns the direction that a name such as s1:h3 denotes: from s1 to h3. Of
// parallel links s1:s2[1] is the second.
func FindPort(t *fabric.Topology, name string) (Port, error) {
	a, b, ok := strings.Cut(name, ":")
	nth := 0
	if end, rest, many := strings.Cut(b, "["); many {
		n, err := strconv.Atoi(strings.TrimSuffix(rest, "]"))
		if err != nil || n < 0 {
			ok = false
		}
		b, nth = end, n
	}
	if !ok {
		return Port{}, fmt.Errorf("%q does not name a link; write it like s1:h3, from s1 to h3", name)
	}
	n, okA := t.Lookup(a)
	m, okB := t.Lookup(b)
	switch {
	case !okA:
		return Port{}, fmt.Errorf("%q: there is no node %q", name, a)
	case !okB:
		return Port{}, fmt.Errorf("%q: there is no node %q", name, b)
	}
	var near []string
	for p := range t.Nodes[n].Links {
		far := t.Peer(n, p).Node
		if far == m {
			if nth == 0 {
				return Port{name, n, p}, nil
			}
			nth--
		}
		if peer := t.Nodes[far].Name; !slices.Contains(near, peer) && len(near) < 8 {
			near = append(near, peer)
		}
	}
	return Port{}, fmt.Errorf("%q: no such link leads from %s to %s; neighbours of %s are %s", name, a, b, a, strings.Join(near, ", "))
}

// PortName returns the name of a direction in the form that FindPort reads.
func PortName(t *fabric.Topology, node, port int) string {
	peer, nth := t.Peer(node, port).Node, 0
	for p := range port {
		if t.Peer(node, p).Node == peer {
			nth++
		}
	}
	name := t.Nodes[node].Name + ":" + t.Nodes[peer].Name
	if nth > 0 {
		name += fmt.Sprintf("[%d]", nth)
	}
	return name
}
