package fabric

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"gswitch/fabric/goldentest"
	"gswitch/units"
)

func build(t testing.TB, expr string, s Spec) *Topology {
	t.Helper()
	s.Generate = expr
	topo, err := s.Build()
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	return topo
}

func TestGenerators(t *testing.T) {
	for _, c := range []struct {
		expr                   string
		hosts, switches, links int
		mode                   Mode
		tiers                  int
	}{
		{"star(5)", 5, 1, 5, L2, 2},
		{"star:5", 5, 1, 5, L2, 2},
		{"dumbbell(2, 3)", 5, 2, 6, L2, 2},
		{"leaf-spine(2, 4, 2)", 8, 6, 16, L3, 3},
		{"leaf-spine(leaves=4, spines=2)", 8, 6, 16, L3, 3},
		{"leaf-spine(1, 3, 1)", 3, 4, 6, L2, 3},
		{"pods(5, 4, 4, 16, 16)", 320, 56, 480, L3, 4},
		{"fat-tree(4)", 16, 20, 48, L3, 4},
		{"fat-tree(2)", 2, 5, 6, L2, 4},
		{"ring(4)", 4, 4, 8, L3, 2},
		{"ring(3, 2)", 6, 3, 9, L3, 2},
		{"line(3)", 3, 3, 5, L2, 2},
		{"line(1, 2)", 2, 1, 2, L2, 2},
		{"internet2(10)", 100, 110, 216, L3, 3},
		{"internet2(0, 10)", 100, 10, 116, L3, 2},
	} {
		topo := build(t, c.expr, Spec{})
		if h, s, l := len(topo.Hosts()), len(topo.Switches()), len(topo.Links); h != c.hosts || s != c.switches || l != c.links {
			t.Errorf("%s: %d hosts, %d switches, %d links; want %d, %d, %d", c.expr, h, s, l, c.hosts, c.switches, c.links)
		}
		if topo.Mode != c.mode || len(topo.tiers()) != c.tiers {
			t.Errorf("%s: mode %s, %d tiers; want %s, %d", c.expr, topo.Mode, len(topo.tiers()), c.mode, c.tiers)
		}
	}
}

// The core of internet2 has rates of its own, which a change may replace.
func TestInternet2(t *testing.T) {
	topo := build(t, "internet2(10)", Spec{Classes: map[string]Class{"host": {Rate: units.Rate(10e9)}, "fabric": {Rate: units.Rate(1e9)}}})
	var sum uint64
	for i := range topo.Links {
		l := &topo.Links[i]
		switch a, b := topo.Nodes[l.A.Node].Name, topo.Nodes[l.B.Node].Name; {
		case a[0] == 's' && b[0] == 's':
			sum += l.Rate
			if l.Delay != 10*time.Millisecond {
				t.Errorf("%s-%s takes %v", a, b, l.Delay)
			}
		case a[0] == 'h' || b[0] == 'h':
			if l.Rate != 10e9 {
				t.Errorf("%s-%s has %d bit/s", a, b, l.Rate)
			}
		case l.Rate != 1e9:
			t.Errorf("%s-%s has %d bit/s", a, b, l.Rate)
		}
	}
	if sum != 98897e6 {
		t.Errorf("the core has %d bit/s, want 98897 Mb/s", sum)
	}
}

func TestFatTreeDegrees(t *testing.T) {
	topo := build(t, "fat-tree(8)", Spec{})
	for _, s := range topo.Switches() {
		if n := len(topo.Nodes[s].Links); n != 8 {
			t.Errorf("%s has %d links, want k = 8", topo.Nodes[s].Name, n)
		}
	}
	if n := len(topo.Hosts()); n != 128 {
		t.Errorf("%d hosts, want k^3/4 = 128", n)
	}
}

func TestBadGenerators(t *testing.T) {
	for expr, want := range map[string]string{
		"clos(3)":                  `unknown generator "clos"`,
		"star":                     "hosts is missing",
		"star()":                   "hosts is missing",
		"star(2":                   "closing parenthesis is missing",
		"star(two)":                `hosts = "two" is not a number`,
		"star(0)":                  "hosts = 0 is not from 1 to 256",
		"star(1, 2)":               "takes 1 argument, not 2",
		"star(hosts=1, hosts=2)":   "given twice",
		"ring(switches=3, 1, 1)":   "takes 2 arguments",
		"dumbbell(left=1, left=2)": "left is given twice",
		"dumbbell(up=1, left=2)":   `no parameter "up"`,
		"fat-tree(3)":              "odd",
		"pods(2, 2, 2, 3, 4)":      "3 cores",
		"leaf-spine(64, 256, 128)": "at most 4096",
		"leaf-spine(60, 3, 250)":   "hosts = 250 is not from 1 to 200",
		"leaf-spine(64, 3, 200)":   "at most 256 ports",
	} {
		_, err := Spec{Generate: expr}.Build()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", expr, err, want)
		}
	}
}

const smallFile = `version: 1
name: small
classes:
  host: {rate: 1Gbps, delay: 5us}
  slow: {rate: 10Mbps, mtu: 9000}
hosts: [a, b, c]
switches: [x, y]
links:
  - {a: a, b: x}
  - {a: b, b: x, rate: 5Gbps, mtu: 1400}
  - {a: c, b: y, class: slow}
  - {a: x, b: y}
`

func TestFile(t *testing.T) {
	topo, err := Parse("small.yaml", []byte(smallFile))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range topo.Links {
		l := &topo.Links[i]
		got = append(got, fmt.Sprintf("%s:%d %s:%d %s %d %v %d", topo.Nodes[l.A.Node].Name, l.A.Port, topo.Nodes[l.B.Node].Name, l.B.Port, l.Class, l.Rate, l.Delay, l.MTU))
	}
	want := []string{
		"a:0 x:0 host 1000000000 5µs 1500",
		"b:0 x:1 host 5000000000 5µs 1400",
		"c:0 y:0 slow 10000000 0s 9000",
		"x:2 y:1 fabric 0 0s 1500",
	}
	if d := cmp.Diff(want, got); d != "" || topo.Mode != L2 || topo.Name != "small" {
		t.Errorf("mode %s, name %s, links (-want +got):\n%s", topo.Mode, topo.Name, d)
	}
}

// The example that users copy is read, and needs every key that it shows.
func TestExample(t *testing.T) {
	data, err := os.ReadFile("example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	topo, err := Parse("example.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	checkUnique(t, topo)
	checkRoutes(t, topo)
	if topo.Mode != L3 || topo.Links[3].Rate != 1e9 || topo.Links[4].Delay != time.Millisecond || topo.Links[5].MTU != 9000 {
		t.Errorf("topology %+v", topo)
	}
}

// A section inside another document has the same keys, and errors name the
// line of that document.
func TestParseNode(t *testing.T) {
	decode := func(text string) (*Topology, error) {
		var doc struct{ Topology yaml.Node }
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		return ParseNode("scenario.yaml", &doc.Topology)
	}
	topo, err := decode("seed: 1\ntopology:\n  name: inner\n  generate: ring(4)\n")
	if err != nil || topo.Name != "inner" || len(topo.Links) != 8 {
		t.Errorf("topology %+v, error %v", topo, err)
	}
	_, err = decode("seed: 1\ntopology:\n  name: inner\n  generate: rung(4)\n")
	if err == nil || !strings.HasPrefix(err.Error(), "scenario.yaml:4:13: generate: unknown generator") {
		t.Errorf("error %v", err)
	}
}

func TestBadFiles(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"unknown key":    {"hosts: [", "hots: [", "f.yaml:6:1: hots: unknown key"},
		"unit":           {"1Gbps", "1", "f.yaml:4:16: classes.host.rate"},
		"version":        {"version: 1\n", "", "version: is missing"},
		"future":         {"version: 1", "version: 2", "f.yaml:1:10: version"},
		"no such node":   {"b: y, class", "b: z, class", `f.yaml:11:15: links[2].b: "z" is neither`},
		"no such class":  {"class: slow", "class: fast", "f.yaml:11:"},
		"unused class":   {", class: slow", "", "f.yaml:5:"},
		"name twice":     {"[a, b, c]", "[a, b, x]", `f.yaml:7:12: switches[0]: the name "x" is given to two`},
		"bad name":       {"[x, y]", "[x, Y_]", "f.yaml:7:15: switches[1]: switch name"},
		"two uplinks":    {"  - {a: x, b: y}", "  - {a: x, b: y}\n  - {a: a, b: y}", `f.yaml:6:9: hosts[0]: host "a" has 2 links`},
		"host to host":   {"{a: a, b: x}", "{a: a, b: b}", "f.yaml:9:5: links[0]: joins the hosts"},
		"itself":         {"{a: x, b: y}", "{a: x, b: x}", "f.yaml:12:5: links[3]: joins"},
		"apart":          {"  - {a: x, b: y}\n", "", "f.yaml:6:15: hosts[2]: the topology falls apart"},
		"mtu":            {"mtu: 1400", "mtu: 10", "f.yaml:10:"},
		"loop in l2":     {"  - {a: x, b: y}", "  - {a: x, b: y}\n  - {a: y, b: x}\nmode: l2", "the loop "},
		"both":           {"name: small", "name: small\ngenerate: star(2)", "f.yaml:3:11: generate: stands beside"},
		"mode":           {"name: small", "mode: l4", "f.yaml:2:7: mode:"},
		"key twice":      {"name: small", "name: small\nname: big", "appears twice"},
		"end is missing": {"{a: a, b: x}", "{a: a}", "links[0].b: is missing"},
	} {
		text := strings.Replace(smallFile, c.old, c.new, 1)
		if text == smallFile {
			t.Fatalf("%s: nothing replaced", name)
		}
		_, err := Parse("f.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v\nwant %q", name, err, c.want)
		}
	}
}

func TestLoopIsNamed(t *testing.T) {
	_, err := Spec{Generate: "ring(4)", Mode: "l2"}.Build()
	if err == nil || !strings.Contains(err.Error(), "the loop s2 - s1 - s4 - s3 - s2") && !strings.Contains(err.Error(), "the loop s3 - s2 - s1 - s4 - s3") && !strings.Contains(err.Error(), "the loop s4 - s1 - s2 - s3 - s4") {
		t.Errorf("error %v", err)
	}
}

// Tables of every generator fit a terminal of 80 columns.
func TestWidth(t *testing.T) {
	for _, expr := range []string{"star(4)", "dumbbell(2, 2)", "leaf-spine(12, 11, 2)", "fat-tree(4)", "ring(4)", "line(3)"} {
		for _, mode := range []string{"", "l3"} {
			plan, err := NewPlan(build(t, expr, Spec{Mode: mode}))
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			plan.WriteTable(&b)
			for line := range strings.Lines(b.String()) {
				if n := len(strings.TrimSuffix(line, "\n")); n > 80 {
					t.Errorf("%s: %d columns: %s", expr, n, line)
				}
			}
		}
	}
}

func TestCount(t *testing.T) {
	if got := build(t, "star(2)", Spec{}).Size(); got != "2 hosts, 1 switch, 2 links" {
		t.Error(got)
	}
}

func TestGolden(t *testing.T) {
	for file, topo := range map[string]*Topology{
		"leaf-spine": build(t, "leaf-spine(2, 3, 2)", Spec{Classes: map[string]Class{"host": {Rate: 200e6}, "fabric": {Rate: 1e9, MTU: 9000}}}),
		"dumbbell":   build(t, "dumbbell(2, 1)", Spec{}),
	} {
		plan, err := NewPlan(topo)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		plan.WriteTable(&b)
		goldentest.Compare(t, file+".plan", b.String())
		for ext, draw := range map[string]func(*bytes.Buffer) error{
			"dot": func(b *bytes.Buffer) error { return DOT(b, topo) },
			"mmd": func(b *bytes.Buffer) error { return Mermaid(b, topo) },
			"txt": func(b *bytes.Buffer) error { return ASCII(b, topo) },
		} {
			b.Reset()
			if err := draw(&b); err != nil {
				t.Fatal(err)
			}
			goldentest.Compare(t, file+"."+ext, b.String())
		}
	}
}

// randomTopology draws a connected network: a random tree of switches with
// extra links, hosts anywhere.
func randomTopology(r *rapid.T) *Topology {
	t := &Topology{Name: "random"}
	n := rapid.IntRange(1, 12).Draw(r, "switches")
	for i := range n {
		t.addNode(Switch, fmt.Sprintf("s%d", i))
		if i > 0 {
			t.addLink(rapid.IntRange(0, i-1).Draw(r, "parent"), i, Link{MTU: DefaultMTU})
		}
	}
	for range rapid.IntRange(0, 8).Draw(r, "extra") {
		a, b := rapid.IntRange(0, n-1).Draw(r, "a"), rapid.IntRange(0, n-1).Draw(r, "b")
		if a != b {
			t.addLink(a, b, Link{MTU: DefaultMTU})
		}
	}
	for i := range rapid.IntRange(1, 20).Draw(r, "hosts") {
		t.addLink(t.addNode(Host, fmt.Sprintf("h%d", i)), rapid.IntRange(0, n-1).Draw(r, "at"), Link{MTU: DefaultMTU})
	}
	if err := t.finish(); err != nil {
		r.Fatal(err)
	}
	return t
}

// Every address is given once, and lies in one subnet only.
func TestPlanAddressesAreUnique(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		topo := randomTopology(r)
		if rapid.Bool().Draw(r, "routed") {
			topo.Mode = L3
		}
		checkUnique(r, topo)
	})
	for _, expr := range []string{"star(256)", "fat-tree(16)", "leaf-spine(16, 64, 8)", "line(256)", "dumbbell(255, 3)", "pods(5, 4, 4, 16, 16)"} {
		checkUnique(t, build(t, expr, Spec{}))
		checkUnique(t, build(t, expr, Spec{Mode: "l3"}))
	}
}

func checkUnique(t interface{ Fatalf(string, ...any) }, topo *Topology) {
	plan, err := NewPlan(topo)
	if err != nil {
		t.Fatalf("%v", err)
	}
	owner := map[any]string{}
	claim := func(x any, who string) {
		if other, taken := owner[x]; taken {
			t.Fatalf("%v is given to %s and to %s", x, other, who)
		}
		owner[x] = who
	}
	for i := range plan.Nodes {
		n, name := &plan.Nodes[i], topo.Nodes[i].Name
		claim(n.MAC, name)
		for _, a := range n.Address {
			claim(a.Addr(), name)
			if a.Masked().Addr() == a.Addr() {
				t.Fatalf("%s has the network's own address %v", name, a)
			}
			if a.Addr().Is4() && offset(a.Masked().Addr(), 1<<(32-a.Bits())-1) == a.Addr() {
				t.Fatalf("%s has the broadcast address %v", name, a)
			}
		}
		for _, a := range n.Loopback {
			claim(a, name)
		}
		for p := range n.Ports {
			for _, a := range n.Ports[p] {
				claim(a.Addr(), fmt.Sprintf("%s port %d", name, p))
			}
		}
	}
	for i, a := range plan.Subnets {
		for _, b := range plan.Subnets[:i] {
			for k := range a.Nets {
				if a.Nets[k].Overlaps(b.Nets[k]) {
					t.Fatalf("subnets %v and %v overlap", a.Nets[k], b.Nets[k])
				}
			}
		}
	}
}

// walk follows every next hop from a switch towards an address and returns
// the length of the longest way, or fails where one does not arrive.
func walk(t interface{ Fatalf(string, ...any) }, p *Plan, s int, dst netip.Addr, budget int) int {
	n := &p.Nodes[s]
	for _, a := range n.Address {
		if a.Masked().Contains(dst) {
			return 0
		}
	}
	for _, a := range n.Loopback {
		if a == dst {
			return 0
		}
	}
	if budget == 0 {
		t.Fatalf("no way to %v: routes circle through %s", dst, p.Topology.Nodes[s].Name)
	}
	longest, matches := 0, 0
	for _, r := range n.Routes {
		if !r.Prefix.Contains(dst) {
			continue
		}
		matches++
		for i, via := range r.Via {
			far := p.Topology.Peer(s, r.Ports[i])
			owns := false
			for _, a := range p.Nodes[far.Node].Ports[far.Port] {
				owns = owns || a.Addr() == via
			}
			onLink := false
			for _, a := range n.Ports[r.Ports[i]] {
				onLink = onLink || a.Masked().Contains(via)
			}
			if !owns || !onLink {
				t.Fatalf("%s reaches %v via %v, which is not across port %d", p.Topology.Nodes[s].Name, dst, via, r.Ports[i])
			}
			longest = max(longest, 1+walk(t, p, far.Node, dst, budget-1))
		}
	}
	if matches != 1 || longest == 0 {
		t.Fatalf("%s has %d routes to %v", p.Topology.Nodes[p.Topology.Switches()[0]].Name, matches, dst)
	}
	return longest
}

// From every host's switch every host and loopback is reached, over shortest
// ways only, whichever next hop is taken.
func TestRoutesConnect(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		topo := randomTopology(r)
		topo.Mode = L3
		checkRoutes(r, topo)
	})
	for _, expr := range []string{"leaf-spine(2, 4, 2)", "fat-tree(4)", "ring(5)", "line(4)", "star(3)"} {
		checkRoutes(t, build(t, expr, Spec{Mode: "l3"}))
	}
}

func checkRoutes(t interface{ Fatalf(string, ...any) }, topo *Topology) {
	p, err := NewPlan(topo)
	if err != nil {
		t.Fatalf("%v", err)
	}
	for i := range topo.Nodes {
		at := i
		addrs := p.Nodes[i].Loopback
		if topo.Nodes[i].Kind == Host {
			at = topo.Peer(i, 0).Node
			for k, a := range p.Nodes[i].Address {
				addrs = append(addrs, a.Addr())
				if gw := p.Nodes[at].Address[k]; p.Nodes[i].Gateway[k] != gw.Addr() || a.Masked() != gw.Masked() {
					t.Fatalf("%s: address %v, gateway %v, but its switch has %v", topo.Nodes[i].Name, a, p.Nodes[i].Gateway[k], gw)
				}
			}
		}
		dist := topo.HopsTo(at)
		for _, s := range topo.Switches() {
			for _, a := range addrs {
				if hops := walk(t, p, s, a, len(topo.Nodes)); hops != dist[s] {
					t.Fatalf("%s reaches %v in %d hops, %d are possible", topo.Nodes[s].Name, a, hops, dist[s])
				}
			}
		}
	}
}

func TestPlanIsDeterministic(t *testing.T) {
	topo := build(t, "fat-tree(4)", Spec{})
	a, _ := NewPlan(topo)
	b, _ := NewPlan(build(t, "fat-tree(4)", Spec{}))
	var x, y bytes.Buffer
	a.WriteTable(&x)
	b.WriteTable(&y)
	if x.String() != y.String() {
		t.Error("two plans of the same topology differ")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(smallFile))
	f.Add([]byte("version: 1\ngenerate: leaf-spine(2, 4, 2)\nmode: l3\n"))
	f.Add([]byte("version: 1\ngenerate: ring(4)\nmode: l2\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		topo, err := Parse("fuzz", data)
		if err != nil {
			return
		}
		if _, err := NewPlan(topo); err != nil {
			t.Logf("no plan: %v", err)
		}
	})
}
