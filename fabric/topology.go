package fabric

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Mode says what the switches forward by.
type Mode string

const (
	// L2 bridges: all hosts share one subnet. Only loop-free topologies.
	L2 Mode = "l2"
	// L3 routes: each switch with hosts has a subnet, equal-cost paths share.
	L3 Mode = "l3"
)

// Kind distinguishes hosts from switches.
type Kind uint8

const (
	Host   Kind = iota // a network namespace with the kernel's stack
	Switch             // a gswitch
)

func (k Kind) String() string {
	if k == Host {
		return "host"
	}
	return "switch"
}

// Topology is a network: nodes, joined by links.
type Topology struct {
	Name  string
	Mode  Mode
	Nodes []Node
	Links []Link
}

// Node is a host or a switch.
type Node struct {
	Name string
	Kind Kind
	// Tier is the distance from the hosts: 0 for a host, 1 for a switch with
	// hosts, 2 for one above, ... Pictures draw tiers as rows.
	Tier int
	// Links are indices into Topology.Links; the node's port p is its end of
	// Links[p].
	Links []int
}

// Link joins two nodes.
type Link struct {
	A, B  End
	Class string        // name of the link class it took its values from
	Rate  uint64        // bit/s of the emulated link, each way; 0 = unlimited
	Delay time.Duration // propagation, each way
	MTU   int
}

// End is where a link is plugged in.
type End struct {
	Node int // index into Topology.Nodes
	Port int // index into Node.Links
}

// Names of the two link classes that always exist.
const (
	ClassHost   = "host"   // between a host and a switch
	ClassFabric = "fabric" // between two switches
)

// MTU limits: RFC 791's smallest, and what the switch takes.
const (
	DefaultMTU = 1500
	minMTU     = 576
	maxMTU     = 9000
)

// maxPorts is what one switch can have.
const maxPorts = 256

// nameRule keeps names usable as DNS labels, file names and parts of device
// and namespace names.
var nameRule = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// CheckName says what is wrong with the name of a fabric or of a node.
func CheckName(what, name string) error {
	if nameRule.MatchString(name) {
		return nil
	}
	return fmt.Errorf("%s name %q: use 1 to 32 lower-case letters, digits and inner dashes", what, name)
}

// Other returns the end of l that is not at node n.
func (l *Link) Other(n int) End {
	if l.A.Node == n {
		return l.B
	}
	return l.A
}

// End returns the end of l that is at node n.
func (l *Link) End(n int) End {
	if l.A.Node == n {
		return l.A
	}
	return l.B
}

// Peer returns the end at the far side of port p of node n.
func (t *Topology) Peer(n, p int) End { return t.Links[t.Nodes[n].Links[p]].Other(n) }

// PortNames returns what the ports of a node are called, in their order: by the neighbour,
// and the second link to the same one as in s2.2.
func (t *Topology) PortNames(n int) []string {
	names, seen := make([]string, len(t.Nodes[n].Links)), map[string]int{}
	for p := range names {
		name := t.Nodes[t.Peer(n, p).Node].Name
		if seen[name]++; seen[name] > 1 {
			name = fmt.Sprintf("%s.%d", name, seen[name])
		}
		names[p] = name
	}
	return names
}

// Lookup returns the index of the node with this name.
func (t *Topology) Lookup(name string) (int, bool) {
	for i := range t.Nodes {
		if t.Nodes[i].Name == name {
			return i, true
		}
	}
	return 0, false
}

// Hosts returns the indices of the hosts, in order.
func (t *Topology) Hosts() []int { return t.ofKind(Host) }

// Switches returns the indices of the switches, in order.
func (t *Topology) Switches() []int { return t.ofKind(Switch) }

func (t *Topology) ofKind(k Kind) []int {
	var v []int
	for i := range t.Nodes {
		if t.Nodes[i].Kind == k {
			v = append(v, i)
		}
	}
	return v
}

// addNode appends a node and returns its index.
func (t *Topology) addNode(k Kind, name string) int {
	t.Nodes = append(t.Nodes, Node{Name: name, Kind: k})
	return len(t.Nodes) - 1
}

// addLink plugs a link into the next free port of both nodes. A zero class
// takes the one that fits the two kinds.
func (t *Topology) addLink(a, b int, l Link) {
	if l.Class == "" {
		l.Class = ClassFabric
		if t.Nodes[a].Kind == Host || t.Nodes[b].Kind == Host {
			l.Class = ClassHost
		}
	}
	l.A = End{a, len(t.Nodes[a].Links)}
	l.B = End{b, len(t.Nodes[b].Links)}
	n := len(t.Links)
	t.Nodes[a].Links = append(t.Nodes[a].Links, n)
	t.Nodes[b].Links = append(t.Nodes[b].Links, n)
	t.Links = append(t.Links, l)
}

// fault is something wrong with one node or link of a topology.
type fault struct {
	node, link int // -1 where it is about none
	text       string
}

func (f *fault) Error() string { return f.text }

func badNode(n int, format string, args ...any) error {
	return &fault{n, -1, fmt.Sprintf(format, args...)}
}

func badLink(l int, format string, args ...any) error {
	return &fault{-1, l, fmt.Sprintf(format, args...)}
}

// finish checks what holds for every topology and fills in what follows from
// the links: tiers, and the mode where none was chosen.
func (t *Topology) finish() error {
	if err := t.check(); err != nil {
		return err
	}
	t.setTiers()
	closing, loop := t.switchLoop()
	switch {
	case t.Mode == "" && loop == nil:
		t.Mode = L2
	case t.Mode == "":
		t.Mode = L3
	case t.Mode == L2 && loop != nil:
		return badLink(closing, "mode l2 needs a topology without loops, because flooded frames would circle in it for ever, but this one has the loop %s; use mode l3 or remove a link",
			strings.Join(loop, " - "))
	}
	return nil
}

func (t *Topology) check() error {
	if len(t.Hosts()) == 0 {
		return fmt.Errorf("the topology has no hosts")
	}
	for i := range t.Links {
		l := &t.Links[i]
		a, b := &t.Nodes[l.A.Node], &t.Nodes[l.B.Node]
		switch {
		case l.A.Node == l.B.Node:
			return badLink(i, "joins %q to itself", a.Name)
		case a.Kind == Host && b.Kind == Host:
			return badLink(i, "joins the hosts %q and %q; put a switch between them", a.Name, b.Name)
		case l.MTU < minMTU || l.MTU > maxMTU:
			return badLink(i, "mtu %d is not from %d to %d", l.MTU, minMTU, maxMTU)
		case l.Delay < 0:
			return badLink(i, "delay %v is negative", l.Delay)
		}
	}
	for i := range t.Nodes {
		switch n := &t.Nodes[i]; {
		case n.Kind == Host && len(n.Links) != 1:
			return badNode(i, "host %q has %d links; a host has exactly one, to a switch", n.Name, len(n.Links))
		case n.Kind == Switch && len(n.Links) == 0:
			return badNode(i, "switch %q has no links", n.Name)
		case n.Kind == Switch && len(n.Links) > maxPorts:
			return badNode(i, "switch %q has %d links; a switch has at most %d ports", n.Name, len(n.Links), maxPorts)
		}
	}
	return t.checkConnected()
}

// Size says in words how many nodes and links there are.
func (t *Topology) Size() string {
	return Count(len(t.Hosts()), "host", "hosts") + ", " + Count(len(t.Switches()), "switch", "switches") + ", " + Count(len(t.Links), "link", "links")
}

// Count is a number with the word for what is counted.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// CheckIndices says whether nodes, links and ports of a topology that was read
// from elsewhere name each other. Those that this package builds do.
func (t *Topology) CheckIndices() error {
	for i := range t.Nodes {
		for p, l := range t.Nodes[i].Links {
			if l < 0 || l >= len(t.Links) || t.Links[l].A != (End{i, p}) && t.Links[l].B != (End{i, p}) {
				return fmt.Errorf("port %d of node %d is not the end of link %d", p, i, l)
			}
		}
		if t.Nodes[i].Kind == Host && len(t.Nodes[i].Links) != 1 {
			return fmt.Errorf("node %d is a host with %d links", i, len(t.Nodes[i].Links))
		}
	}
	for i := range t.Links {
		for _, e := range []End{t.Links[i].A, t.Links[i].B} {
			if e.Node < 0 || e.Node >= len(t.Nodes) || e.Port < 0 || e.Port >= len(t.Nodes[e.Node].Links) || t.Nodes[e.Node].Links[e.Port] != i {
				return fmt.Errorf("link %d ends at no port", i)
			}
		}
	}
	return nil
}

// checkConnected finds a node that the first one cannot reach.
func (t *Topology) checkConnected() error {
	seen := make([]bool, len(t.Nodes))
	seen[0] = true
	for todo := []int{0}; len(todo) > 0; {
		n := todo[0]
		todo = todo[1:]
		for p := range t.Nodes[n].Links {
			if m := t.Peer(n, p).Node; !seen[m] {
				seen[m] = true
				todo = append(todo, m)
			}
		}
	}
	for i, ok := range seen {
		if !ok {
			return badNode(i, "the topology falls apart: no path leads from %s %q to %s %q", t.Nodes[0].Kind, t.Nodes[0].Name, t.Nodes[i].Kind, t.Nodes[i].Name)
		}
	}
	return nil
}

// setTiers measures every node's distance from the nearest host.
func (t *Topology) setTiers() {
	var todo []int
	for i := range t.Nodes {
		t.Nodes[i].Tier = -1
		if t.Nodes[i].Kind == Host {
			t.Nodes[i].Tier = 0
			todo = append(todo, i)
		}
	}
	for ; len(todo) > 0; todo = todo[1:] {
		n := todo[0]
		for p := range t.Nodes[n].Links {
			if m := &t.Nodes[t.Peer(n, p).Node]; m.Tier < 0 {
				m.Tier = t.Nodes[n].Tier + 1
				todo = append(todo, t.Peer(n, p).Node)
			}
		}
	}
}

// switchLoop returns the names of switches that form a loop, the first one
// repeated at the end, and a link of the loop; or nil. Two parallel links are
// a loop.
func (t *Topology) switchLoop() (closing int, names []string) {
	parent := make([]int, len(t.Nodes)) // link towards the root of the search
	depth := make([]int, len(t.Nodes))
	for i := range depth {
		depth[i] = -1
	}
	for _, root := range t.Switches() {
		if depth[root] >= 0 {
			continue
		}
		depth[root], parent[root] = 0, -1
		for todo := []int{root}; len(todo) > 0; todo = todo[1:] {
			n := todo[0]
			for _, li := range t.Nodes[n].Links {
				m := t.Links[li].Other(n).Node
				if t.Nodes[m].Kind == Host || li == parent[n] {
					continue
				}
				if depth[m] >= 0 {
					return li, t.loopNames(parent, depth, n, m)
				}
				depth[m], parent[m] = depth[n]+1, li
				todo = append(todo, m)
			}
		}
	}
	return -1, nil
}

// loopNames walks from both ends of the closing link up to where the two
// branches of the search tree meet.
func (t *Topology) loopNames(parent, depth []int, a, b int) []string {
	var left, right []string
	for a != b {
		if depth[a] >= depth[b] {
			left = append(left, t.Nodes[a].Name)
			a = t.Links[parent[a]].Other(a).Node
		} else {
			right = append(right, t.Nodes[b].Name)
			b = t.Links[parent[b]].Other(b).Node
		}
	}
	loop := append(left, t.Nodes[a].Name)
	for i := len(right) - 1; i >= 0; i-- {
		loop = append(loop, right[i])
	}
	return append(loop, loop[0])
}
