package clocks

import (
	"slices"
	"testing"

	"gswitch/fabric"
)

type broken struct{ nodes, links []int }

func (b broken) Node(i int) bool { return !slices.Contains(b.nodes, i) }
func (b broken) Link(i int) bool { return !slices.Contains(b.links, i) }

// What fails cuts off itself, and what hangs by it alone, and nobody who has another way.
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
