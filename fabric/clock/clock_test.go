package clock

import (
	"math/rand/v2"
	"testing"

	"gswitch/clocksync"
	"gswitch/clocksync/plan"
	"gswitch/fabric"
)

func topology(t *testing.T, generate string) *fabric.Topology {
	t.Helper()
	top, err := fabric.Load(generate, fabric.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	return top
}

type broken struct{ nodes, links map[int]bool }

func (b broken) Node(i int) bool { return !b.nodes[i] }
func (b broken) Link(i int) bool { return !b.links[i] }

// Whatever is broken, a plan joins what the root reaches, by links that work, and
// every configuration that follows from it is one that clocks take. Ports and
// parents agree, and each parent sends at the port by which it is followed.
func TestPlansOfWhatWorks(t *testing.T) {
	top := topology(t, "fat-tree(4)")
	r := rand.New(rand.NewPCG(18, 1))
	for i := range Schemes {
		s := &Spec{Scheme: &Schemes[i], Controller: 1e8}
		s.Defaults(top)
		if err := s.Check(top); err != nil {
			t.Fatal(err)
		}
		root, _ := top.Lookup(s.Root)
		planned := 0
		for range 50 {
			live := broken{map[int]bool{}, map[int]bool{}}
			for range r.IntN(3) {
				if n := r.IntN(len(top.Nodes)); n != root {
					live.nodes[n] = true
				}
				live.links[r.IntN(len(top.Links))] = true
			}
			p, err := s.Plan(top, live, -1)
			if err != nil {
				continue // some node is cut off but by one node
			}
			planned++
			options := s.Options(top, live, p, 7)
			for n, o := range options {
				if !p.Has(n) {
					if o != (clocksync.Options{}) || live.Node(n) && len(top.Nodes[n].Links) > 3 && len(live.nodes) == 0 {
						t.Fatalf("%s: %s is not in the plan", s.Scheme.Name, top.Nodes[n].Name)
					}
					continue
				}
				if err := o.Validate(); err != nil {
					t.Fatalf("%s: %s: %v", s.Scheme.Name, top.Nodes[n].Name, err)
				}
				for _, port := range []int{o.Accept, o.Backup} {
					if port == clocksync.NoPort {
						continue
					}
					l := top.Nodes[n].Links[port]
					far := top.Peer(n, port)
					if s.Scheme.Mesh || s.Scheme.Computed {
						if options[far.Node].Transmit != (clocksync.Ports{}) {
							t.Fatalf("%s: %s sends messages, which the scheme does not have", s.Scheme.Name, top.Nodes[far.Node].Name)
						}
						continue
					}
					if live.links[l] || live.nodes[far.Node] || !options[far.Node].Transmit.Has(far.Port) {
						t.Fatalf("%s: %s listens at port %d, where nobody sends", s.Scheme.Name, top.Nodes[n].Name, port)
					}
				}
				if o.Root != (n == root) || (o.Backup != clocksync.NoPort) && !s.Scheme.Backup {
					t.Fatalf("%s: %s: %+v", s.Scheme.Name, top.Nodes[n].Name, o.Config)
				}
			}
		}
		if planned < 10 {
			t.Errorf("%s: %d plans of 50", s.Scheme.Name, planned)
		}
	}
}

// The graph has the numbers of the plan: what is verified is what was planned.
func TestGraphAndPlanAgree(t *testing.T) {
	top := topology(t, "leaf-spine(4, 6, 2)")
	s := &Spec{Scheme: &Schemes[0], Root: "leaf2", Domains: []Domain{{"supply", []string{"spine1", "spine2"}}}}
	s.Defaults(top)
	p, err := s.Plan(top, Everything, -1)
	if err != nil {
		t.Fatal(err)
	}
	if d := plan.Verify(s.Graph(top), &p.Plan); len(d) != 0 {
		t.Errorf("%d defects, the first: %v", len(d), d[0])
	}
	if name := top.Nodes[p.RootNode()].Name; name != "leaf2" {
		t.Errorf("the root is %s", name)
	}
}
