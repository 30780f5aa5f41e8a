package fabric

import (
	"strings"
	"testing"

	"gswitch/units"
)

// DeTail's network of 16 servers: three rates by the tier of the link.
func TestLinksOfTiersChange(t *testing.T) {
	g, err := Spec{Generate: "fat-tree(4)", Classes: map[string]Class{"host": {Rate: 1e9}, "fabric": {Rate: 500e6}},
		Change: []LinkChange{{Link: "core*:agg*", Rate: ptr(units.Rate(250e6))}, {Link: "agg2:core4", Rate: ptr(units.Rate(10e6))}}}.Build()
	if err != nil {
		t.Fatal(err)
	}
	count := map[uint64]int{}
	for i := range g.Links {
		count[g.Links[i].Rate]++
	}
	if count[1e9] != 16 || count[500e6] != 16 || count[250e6] != 15 || count[10e6] != 1 {
		t.Errorf("rates %v", count)
	}
}

func ptr[T any](v T) *T { return &v }

// A link that is not there is on no way, and the network stays sound.
func TestLinkIsRemoved(t *testing.T) {
	s := Spec{Generate: "pods(4, 4, 4, 8, 8)", Change: []LinkChange{{Link: "agg1:core1", Remove: true}}}
	g, err := s.Build()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.CheckIndices(); err != nil {
		t.Fatal(err)
	}
	if len(g.Links) != 128+64+32-1 {
		t.Errorf("%d links", len(g.Links))
	}
	agg, _ := g.Lookup("agg1")
	if n := len(g.Nodes[agg].Links); n != 5 {
		t.Errorf("agg1 has %d ports", n)
	}
	for what, link := range map[string]string{"no colon": "agg1", "unknown": "agg1:core9", "gone": "agg1:core5", "bad pattern": "agg[:core1"} {
		s.Change = []LinkChange{{Link: link}}
		if _, err := s.Build(); err == nil || !strings.Contains(err.Error(), "change[0].link") && !strings.Contains(err.Error(), "link") {
			t.Errorf("%s: %v", what, err)
		}
	}
	s = Spec{Generate: "star(2)", Change: []LinkChange{{Link: "h1:s1", Remove: true}}}
	if _, err := s.Build(); err == nil {
		t.Error("a host without a link is accepted")
	}
}
