package clocks

import (
	"slices"
	"testing"

	"gswitch/fabric"
	"gswitch/fabric/scenario"
	"gswitch/fabric/vnet"
	"gswitch/frame"
)

type broken struct{ nodes, links []int }

func (b broken) Node(i int) bool { return !slices.Contains(b.nodes, i) }
func (b broken) Link(i int) bool { return !slices.Contains(b.links, i) }

// What fails cuts off itself, and what is reached by it alone, and no node that has another way.
func TestCutOff(t *testing.T) {
	top, err := fabric.Load("leaf-spine(2, 3, 2)", fabric.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	node := func(name string) int {
		i, ok := top.Lookup(name)
		if !ok {
			t.Fatal(name)
		}
		return i
	}
	link := func(a, b string) int {
		for _, l := range top.Nodes[node(a)].Links {
			if top.Links[l].Other(node(a)).Node == node(b) {
				return l
			}
		}
		t.Fatal(a, b)
		return 0
	}
	everybody := []string{"h1", "h2", "h3", "h4", "h5", "h6", "leaf1", "leaf2", "leaf3", "spine1", "spine2"}
	for _, c := range []struct {
		of   broken
		want []string
	}{
		{broken{}, nil},
		{broken{nodes: []int{node("spine1")}}, []string{"spine1"}},
		{broken{links: []int{link("leaf1", "spine1")}}, nil},
		{broken{nodes: []int{node("leaf2")}}, []string{"h3", "h4", "leaf2"}},
		{broken{nodes: []int{node("spine2")}, links: []int{link("leaf3", "spine1")}}, []string{"h5", "h6", "leaf3", "spine2"}},
		{broken{nodes: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}, everybody},
	} {
		var got []string
		for i, cut := range cutOff(top, c.of) {
			if cut {
				got = append(got, top.Nodes[i].Name)
			}
		}
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v, want %v", c.of, got, c.want)
		}
	}
}

// Where temperatures change each oscillator goes from one frequency to the next, a little at a
// time, and never beyond what oscillators are within.
func TestRamp(t *testing.T) {
	top, err := fabric.Load("star(2)", fabric.Spec{Classes: map[string]fabric.Class{fabric.ClassHost: {Rate: 1e9}}})
	if err != nil {
		t.Fatal(err)
	}
	n, err := vnet.Build(&vnet.Config{Topology: top})
	if err != nil {
		t.Fatal(err)
	}
	r := &scenario.Run{Doc: &scenario.Document{}, Seed: 5, Topology: top}
	r.Doc.Clock.Oscillator, r.Doc.Clock.Ramp = 100, 320_000_000
	const each = 10 * frame.Millisecond // of the 32 steps of a ramp
	for i := range top.Nodes {
		drift, step := r.Oscillator(i)
		if err := n.Engine.SetClock(n.EngineNode(i), drift, step); err != nil {
			t.Fatal(err)
		}
	}
	var c clockSet
	c.ramp(n, r)
	last, ppb := make([]frame.Time, len(top.Nodes)), make([]int64, len(top.Nodes))
	var least, most int64
	n.Engine.Every(each+1, each, func(now frame.Time) {
		for i := range last {
			local := n.Engine.LocalTime(n.EngineNode(i), now)
			if last[i] != 0 {
				was := ppb[i]
				ppb[i] = int64(local-last[i]-each) * int64(frame.Second) / int64(each)
				least, most = min(least, ppb[i]), max(most, ppb[i])
				if was != 0 && max(ppb[i]-was, was-ppb[i]) > 200_000/32+500 { // and what whole nanoseconds make of it
					t.Errorf("node %d goes from %d to %d parts in 10^9 at once", i, was, ppb[i])
				}
			}
			last[i] = local
		}
	})
	if err := n.Engine.Run(4 * frame.Second); err != nil {
		t.Fatal(err)
	}
	if least < -100_200 || most > 100_200 || most-least < 100_000 {
		t.Errorf("from %d to %d parts in 10^9", least, most)
	}
}
